"""Widgets as pages have them: parts that lie over each other, hidden fields, shadow trees."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/stand-in"] = """<title>Stand-in</title><div style="position:relative;height:40px">
    <select aria-label="Native" onchange="document.title=this.value"><option>one<option>two</select>
    <div style="position:absolute;inset:0;background:#eee" tabindex="0">one</div></div>"""
PAGES["/put-back"] = """<title>Back</title><div style="position:relative;height:40px">
    <select aria-label="Native" onchange="setTimeout(() => { this.value = 'one' }, 50)">
    <option>one<option>two</select><div style="position:absolute;inset:0;background:#eee"
    tabindex="0">one</div></div>"""
PAGES["/parts"] = """<title>Parts</title><style>.box{position:relative;width:200px;height:30px}
    .box>*{position:absolute;left:0;top:0;width:100%;height:100%}</style>
    <div class="box" onclick="document.title='opened'"><div><input role="combobox" readonly
    aria-label="Fruit" style="width:100%;opacity:0"></div><span>Pick one</span></div>
    <div class="box"><button onclick="document.title='wrong'">Under</button>
    <button onclick="document.title='wrong too'">Over</button></div>
    <span id="thumb" style="display:block;position:relative;width:20px;height:20px;background:red"
    onmousedown="document.title='held'"><input type="range" aria-label="Volume"
    style="position:absolute;width:20px;height:20px;margin:0;opacity:0;clip-path:inset(50%)"></span>
    <div class="box"><button onclick="document.title='bought'">Buy</button><b>Sold out</b></div>
    <div style="clip-path:inset(100%)"><button>Folded</button></div>"""
PAGES[
    "/outer-button"
] = """<title>Outer</title><x-seg></x-seg><script>customElements.define('x-seg',
    class extends HTMLElement { connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML =
    '<button style="pointer-events:none">Second</button>';
    this.style.display = 'inline-block'; this.onclick = () => { document.title = 'chosen' } } })
    </script>"""
PAGES["/drawn-editor"] = """<title>Editor</title><div style="position:relative;width:400px;
    height:100px"><textarea aria-label="Code" style="position:absolute;width:1px;height:1em;
    padding:0;border:0"></textarea><pre id="text" style="position:relative;background:#eee"
    >old text</pre></div><div id="veil" hidden style="position:fixed;inset:0;background:#fff"></div>
    <button onclick="veil.hidden=false">Veil</button><script>
    const area = document.querySelector('textarea'); let all = false;
    area.onkeydown = (e) => { if (e.ctrlKey && e.key === 'a') all = true;
      else if (e.key === 'Delete' && all) text.textContent = '' };
    area.oninput = () => { text.textContent = (all ? '' : text.textContent) + area.value;
      all = false; area.value = '' };</script>"""
PAGES["/role-free-list"] = """<title>List</title><div role="combobox" tabindex="0"
    aria-label="Colour" onclick="list.hidden=false">none</div>
    <p onclick="document.title='wrong'">Green</p>
    <div id="list" hidden><div onclick="document.title='red'">Red</div>
    <div onclick="document.title='green'">Green</div></div>"""
PAGES["/stubborn"] = """<title>Stubborn</title><div contenteditable role="textbox" aria-label="Rich"
    onbeforeinput="event.preventDefault()">kept</div>"""
PAGES["/shadow-life"] = """<title>Shadow</title><x-box></x-box><script>
    class Box extends HTMLElement { connectedCallback() {
    const root = this.attachShadow({mode: 'open'});
    root.innerHTML = `<style>section { height: 0; overflow: hidden; transition: height .4s }
    .on { height: 150px } p { margin-top: 100px } div { height: 200px; overflow: auto }</style>
    <button>Say</button><button>Grow</button><output></output><section><p>deep down</p></section>
    <div>${'<i>row</i><br>'.repeat(99)}</div>`;
    const [say, grow] = root.querySelectorAll('button');
    say.onclick = () => { root.querySelector('output').textContent = 'said' };
    grow.onclick = () => { root.querySelector('section').className = 'on' } } }
    customElements.define('x-box', Box)</script>"""


def test_an_option_behind_its_stand_in_is_chosen_like_by_select(client: Client) -> None:
    client.open("/stand-in")
    assert "Tab 0 (current): two" in client.act("click", targetId="option 'two'")


def test_a_choice_that_its_stand_in_puts_back_is_told(client: Client) -> None:
    client.open("/put-back")
    client.act("select", "combobox 'Native'", actionValue="two")
    assert "selected 'two', which the page changed to 'one' then" in client.message


def test_what_lies_over_a_part_of_the_same_control_is_no_cover(client: Client) -> None:
    client.open("/parts")
    assert "Tab 0 (current): opened" in client.act("click", "combobox 'Fruit'")
    assert "Tab 0 (current): held" in client.act("drag", "slider 'Volume'", deltaX=10, deltaY=0)
    assert "Tab 0 (current): held" in client.act("click", "button 'Under'", status=409)
    assert "is covered by 'button Over" in client.message
    client.act("click", "button 'Buy'", status=409)
    assert "is covered by" in client.message


def test_what_is_clipped_away_is_not_said_to_be_covered(client: Client) -> None:
    client.open("/parts")
    client.act("click", "button 'Folded'", status=409)
    assert "is not visible in its place" in client.message


def test_a_button_that_leaves_the_mouse_to_its_host_is_clicked(client: Client) -> None:
    client.open("/outer-button")
    assert "Tab 0 (current): chosen" in client.act("click", "button 'Second'")


def test_an_editor_that_draws_its_own_text_is_typed_into(client: Client) -> None:
    client.open("/drawn-editor")
    tree = client.act("type", "textbox 'Code'", actionValue="new words")
    assert "new words" in tree and "old text" not in tree
    assert "new words" not in client.act("clear", "textbox 'Code'")
    client.act("click", "button 'Veil'")
    client.act("type", "textbox 'Code'", actionValue="unseen", status=409)


def test_what_opens_is_chosen_from_whatever_its_role(client: Client) -> None:
    client.open("/role-free-list")
    tree = client.act("select", "combobox 'Colour'", actionValue="green")
    assert "Tab 0 (current): green" in tree


def test_an_editor_that_refuses_a_text_is_told(client: Client) -> None:
    client.open("/stubborn")
    client.act("type", "textbox 'Rich'", actionValue="other")
    assert client.message.startswith("typed 'other' into textbox 'Rich'; it holds 'kept' now")


def test_shadow_trees_are_watched_waited_for_searched_and_scrolled(client: Client) -> None:
    client.open("/shadow-life")
    client.act("click", "button 'Say'")
    assert client.message == "clicked button 'Say'; the page changed"
    assert "deep down" in client.act("click", "button 'Grow'")
    client.act("wait_for", text="said", timeout=3000)
    assert "is on the page" in client.message
    client.act("scroll", actionValue="down")
    assert "turned the wheel" not in client.message


PAGES["/still"] = """<title>Still</title><canvas id="c" width="200" height="100"></canvas>
    <button onclick="c.getContext('2d').fillRect(0, 0, 9, 9)">Draw</button>"""
PAGES["/marked"] = "<title>Marked</title><input aria-label='Name' value='Ada'><button>B</button>"
PAGES["/throw"] = """<title>Throw</title><div id="d" style="position:absolute;left:20px;top:60px;
    width:60px;height:60px;background:#ccf" role="img" aria-label="Puck"></div><script>
    let held = false, moves = [];
    d.onmousedown = (e) => { held = true; e.preventDefault() };
    onmousemove = (e) => { if (!held) return; moves.push([e.clientX, performance.now()]);
      d.style.left = e.clientX - 30 + 'px' };
    onmouseup = () => { held = false; const [[from, then], [to, now]] = moves.slice(-2);
      const flung = Math.abs(to - from) / (now - then) > 0.1;
      document.title = (flung ? 'flung from ' : 'laid at ') + to };</script>"""
PAGES["/deaf-sort"] = """<title>Deaf</title><style>li{height:30px;background:#ddd;
    transition:transform .2s}</style><ul id="list"><li draggable="true">one<li draggable="true">two
    <li draggable="true">three</ul><script>let held = null, deafUntil = 0;
    list.ondragstart = (e) => { held = e.target };
    list.ondragover = (e) => { e.preventDefault(); const over = e.target;
      if (performance.now() < deafUntil || over === held || over === list) return;
      over.after(held); deafUntil = performance.now() + 150;
      over.animate([{transform: 'translateY(30px)'}, {transform: 'none'}], 150) };
    list.ondragend = () => {
      document.title = [...list.children].map((i) => i.textContent.trim()).join(' ') }</script>"""


def test_nothing_changed_is_not_said_where_a_canvas_may_have(client: Client) -> None:
    client.open("/still")
    client.act("click", "button 'Draw'")
    assert client.message == "clicked button 'Draw'"


def test_a_selection_is_a_change(client: Client) -> None:
    client.open("/marked")
    client.act("click", "textbox 'Name'")
    client.act("press", keys=["Control+a"])
    assert client.message == "pressed Control+a; the page changed"
    client.act("click", "button 'B'")
    assert client.message.endswith("nothing changed")
    client.act("type_text", text="lost")
    assert client.message == "typed 'lost' at button 'B' [4]; nothing changed"


def test_a_drag_ends_at_rest(client: Client) -> None:
    client.open("/throw")
    assert "Tab 0 (current): laid at 250" in client.act(
        "drag", "image 'Puck'", deltaX=200, deltaY=0
    )


def test_a_list_that_is_deaf_while_it_makes_room_is_sorted(client: Client) -> None:
    client.open("/deaf-sort")
    three = client.id_of("listitem 'three'")
    tree = client.act("drag", "listitem 'one'", toId=three)
    assert "Tab 0 (current): two three one" in tree


PAGES["/polls"] = """<title>Polls</title><p id="n"></p><button onclick="n.textContent='pressed '
    + (this.k = (this.k || 0) + 1)">Press</button><script>const look = () => setTimeout(look, 250);
    look(); document.querySelector('button').addEventListener('click', look)</script>"""


def test_a_page_that_looks_again_and_again_is_not_waited_for(client: Client) -> None:
    client.open("/polls")
    for number in (1, 2):
        tree = client.act("click", "button 'Press'")
        assert f"pressed {number}" in tree
        assert not client.view["events"]


PAGES["/ripple"] = """<title>Ripple</title><style>button { position: relative; overflow: hidden }
    i { position: absolute; inset: 0; pointer-events: none; background: red }</style><button
    onclick="const drop = this.appendChild(document.createElement('i'));
    drop.animate([{transform: 'scale(0)'}, {transform: 'scale(9)'}], 900).playbackRate = 0.001"
    >Splash</button>"""


def test_the_ripple_of_a_button_is_not_waited_for(client: Client) -> None:
    client.open("/ripple")
    client.act("click", "button 'Splash'")
    assert not client.view["events"]


PAGES["/carried"] = """<title>Carried</title><button>Card</button><script>
    const card = document.querySelector('button'); card.onkeydown = (e) => {
      if (e.key !== ' ') return; card.onkeydown = null;
      setTimeout(() => { onkeydown = (e) => { document.title += ' ' + e.key } }) };</script>"""


def test_keys_follow_one_another_as_the_page_takes_them(client: Client) -> None:
    client.open("/carried")
    client.act("click", "button 'Card'")
    tree = client.act("press", keys=["Space", "ArrowUp", "ArrowDown"])
    assert "Tab 0 (current): Carried ArrowUp ArrowDown" in tree


PAGES["/asked-lists"] = """<title>Asked</title>
    <input list=fruits aria-label=Fruit><datalist id=fruits><option value=ap>Apple<option>Pear
    </datalist><input role=combobox aria-label=City id=city><div role=listbox id=cities></div>
    <p id=out></p><div role=slider tabindex=0 aria-label=Volume aria-valuenow=1>.</div>
    <section inert><button>Asleep</button></section><script>
    city.oninput = () => {
        cities.textContent = '';
        for (const name of ['Lima', 'Lisbon']) {
            if (!city.value || !name.startsWith(city.value)) continue;
            const item = document.createElement('div');
            item.role = 'option';
            item.textContent = name;
            item.onclick = () => { out.textContent = 'chose ' + name; cities.textContent = ''; };
            cities.append(item);
        }
    };</script>"""


def test_lists_that_show_what_is_typed_are_chosen_from(client: Client) -> None:
    client.open("/asked-lists")
    tree = client.act("select", "combobox 'Fruit'", actionValue="Apple")
    assert client.message.startswith("selected 'ap' in combobox 'Fruit'")
    assert "combobox 'Fruit' value: ap" in tree
    assert "chose Lima" in client.act("select", "combobox 'City'", actionValue="Lima")


def test_what_takes_no_text_or_is_inert_says_so(client: Client) -> None:
    client.open("/asked-lists")
    client.act("type", "slider 'Volume'", actionValue="7", status=409)
    assert client.message.endswith(
        "is not a field that takes text: press the arrow keys on it, or drag it"
    )
    client.act("click", "StaticText 'Asleep'", status=409)
    assert "'Asleep' is disabled" in client.message


PAGES["/boxed"] = """<title>Boxed</title><div role=combobox id=box tabindex=0
    style="height: 40px; width: 400px; padding: 8px"><input role=combobox aria-label=Plan
    style="pointer-events: none; width: 20px"></div><ul role=listbox id=list></ul><p id=out></p>
    <script>box.onmousedown = () => {
        list.innerHTML = '<li role=option>Basic</li><li role=option>Pro</li>';
        const take = (event) => { out.textContent = 'took ' + event.target.textContent; };
        for (const item of list.children) item.onclick = take;
    };</script>"""


def test_a_field_that_lets_the_mouse_through_to_its_box_opens_that(client: Client) -> None:
    client.open("/boxed")
    assert "took Pro" in client.act("select", "combobox 'Plan'", actionValue="Pro")


PAGES["/enter"] = """<title>Enter</title><button onclick="out.textContent = 'pressed'">Wipe</button>
    <input type=date aria-label=Day><input type=color aria-label=Tint>
    <select aria-label=Size><option>S<option>L</select>
    <input type=week aria-label=Week onkeydown="out.textContent = event.key + this.value">
    <p id=out>idle</p>"""


@pytest.mark.parametrize(
    ("line", "value"), [("Date 'Day'", "2025-01-02"), ("ColorWell", "#00ff00"), ("combobox", "L")]
)
def test_enter_after_a_value_that_was_set_goes_nowhere_else(
    client: Client, line: str, value: str
) -> None:
    client.open("/enter")
    client.act("press", "button 'Wipe'", keys=["Shift"])  # takes the focus
    tree = client.act("type", line, actionValue=value, needEnter=True)
    assert "'idle'" in tree
    assert f"value: {value}" in tree


def test_enter_after_a_week_goes_to_its_field(client: Client) -> None:
    client.open("/enter")
    tree = client.act("type", "DateTime 'Week'", actionValue="2025-W05", needEnter=True)
    assert "Enter2025-W05" in tree
