"""Hands: every kind of input on pages made for it, and what can go wrong between mouse and page."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/shy"] = """<title>Shy</title><style>span { display: inline-block; width: 30px; height: 30px;
    background: #ccc } span:hover { content: url(/slow) } #w:hover { margin-left: 10px }</style>
    <span aria-label="Like" role="button" onclick="document.title='liked'"></span>
 <style>i { content: url(/pixel) } i:hover { content: url(/pixel?late) }</style>
    <i id="h" onclick="document.title='heard'"></i><br>
    <span id="w" aria-label="Wander" role="button" onclick="document.title='caught'"></span>
    <div id="veil" hidden style="position:fixed;inset:0;background:#fff"></div>
    <button onmouseenter="veil.hidden=false">Veiled</button>"""
PAGES["/fade"] = """<title>Fade</title><button onclick="let n=10;const t=setInterval(()=>{
    veil.style.opacity=n/10;if(n--===0){clearInterval(t);veil.remove()}},30)">Close</button>
    <div id="veil" style="position:fixed;top:60px;left:0;right:0;bottom:0;background:#eee"></div>
    <button style="position:absolute;top:100px" onclick="document.title='through'">Under</button>"""
PAGES["/inputs"] = """<title>Inputs</title><label>Day <input type="date"></label>
    <label>Time <input type="time"></label><label>Colour <input type="color"></label>
    <label>Size <input type="range" min="0" max="10" value="5"></label>
    <label>Many <select multiple><option>a<option>b<option>c</select></label>
    <label>Town <input list="towns"><datalist id="towns"><option value="Rome"></datalist></label>
    <p id="out"></p><script>for (const kind of ['input', 'change'])
    document.addEventListener(kind, (e) => { out.textContent += ` ${kind}:${e.target.value}` })
    </script>"""
PAGES["/hover"] = """<title>Hover</title><style>ul { display: none } nav:hover ul { display: block }
    </style><nav><b id="m">Products</b><ul><li><a href="/two">Phones</a></li></ul></nav><script>
    m.addEventListener('mouseenter', () => {})</script>"""
PAGES["/boxes"] = (
    """<title>Boxes</title><div role="listbox" aria-label="List" tabindex="0"
    style="height:80px;overflow:auto">"""
    + "".join(f"<div role='option' style='height:20px'>item {i}</div>" for i in range(40))
    + """</div><textarea aria-label="Text" rows="3">"""
    + "line\n" * 60
    + "</textarea>"
)
PAGES["/text-only"] = "<title>T</title><textarea rows='3'>" + "line\n" * 60 + "</textarea>"
PAGES["/canvas"] = """<title>Canvas</title><body style="margin:0"><canvas id="c" width="300"
    height="200" style="display:block"></canvas><p id="out"></p><script>const log = (e) => {
    out.textContent += ` ${e.type}:${e.offsetX},${e.offsetY}:${e.button}${e.shiftKey ? 's' : ''}` };
    for (const kind of ['click', 'dblclick', 'contextmenu']) c.addEventListener(kind, log);
    let down = null; c.addEventListener('mousedown', (e) => { down = e.offsetX });
    c.addEventListener('mouseup', (e) => { if (e.offsetX !== down)
    out.textContent += ` drawn ${down}-${e.offsetX}` })</script>"""
PAGES["/sort"] = """<title>Sort</title><style>li{height:30px;background:#ddd;cursor:move}</style>
    <ul id="list"><li>one<li>two<li>three</ul><script>let held = null;
    list.onmousedown = (e) => { held = e.target; e.preventDefault() };
    document.onmousemove = (e) => { if (!held) return; for (const item of list.children) {
      const box = item.getBoundingClientRect(); if (item !== held && e.clientY > box.top
      && e.clientY < box.bottom && e.clientY > box.top + box.height / 2) item.after(held) } };
    document.onmouseup = () => { held = null;
    document.title = [...list.children].map((i) => i.textContent.trim()).join(' ') }</script>"""
PAGES["/hidden"] = """<title>Hidden</title><p>seen <a href="/two">link</a></p><p hidden>secret</p>
    <p style="visibility:hidden">secret</p><div style="display:none"><b>secret</b></div>
    <iframe srcdoc="<p>framed</p><p hidden>secret</p>"></iframe><script>'secret'</script>"""
PAGES[
    "/chords"
] = """<title>Chords</title><textarea aria-label="Text">one two</textarea><p id="out">
    </p><script>addEventListener('keydown', (e) => { if (e.key === 'K' && e.ctrlKey && e.shiftKey)
    out.textContent = 'chord' })</script>"""


def test_a_click_waits_for_what_the_coming_of_the_mouse_does(client: Client) -> None:
    client.open("/shy")
    assert "Tab 0 (current): liked" in client.act("click", "button 'Like'")
    assert "Tab 0 (current): heard" in client.act("click", "image ''")
    assert "Tab 0 (current): caught" in client.act("click", "button 'Wander'")
    client.act("click", "button 'Veiled'", status=409)
    assert "is covered by" in client.message


def test_an_animation_by_script_is_waited_for(client: Client) -> None:
    client.open("/fade")
    client.act("click", "button 'Close'")
    assert "Tab 0 (current): through" in client.act("click", "button 'Under'")


@pytest.mark.parametrize(
    ("line", "value", "shown"),
    [
        ("Date 'Day'", "2024-02-29", "value: 2024-02-29"),
        ("InputTime 'Time'", "13:45", "value: 13:45"),
        ("ColorWell 'Colour'", "#ff8800", "value: #ff8800"),
        ("slider 'Size'", "8", "value: 8"),
        ("combobox 'Town'", "Oslo", "value: Oslo"),
    ],
)
def test_fields_with_a_picker_of_their_own(
    client: Client, line: str, value: str, shown: str
) -> None:
    client.open("/inputs")
    tree = client.act("type", line, actionValue=value)
    assert shown in tree and f"input:{value}" in tree


def test_values_that_such_fields_cannot_take(client: Client) -> None:
    client.open("/inputs")
    for line in ("Date 'Day'", "InputTime 'Time'"):
        client.act("type", line, actionValue="soon", status=409)
        assert "not 'soon'" in client.message
    assert "value: 10" in client.act("type", "slider 'Size'", actionValue="99")


def test_several_options_at_once(client: Client) -> None:
    client.open("/inputs")
    tree = client.act("select_option", "listbox 'Many'", values=["a", "c"])
    assert "value: a, c" in tree and "change:a" in tree


def test_a_menu_that_hovering_shows(client: Client) -> None:
    client.open("/hover")
    assert "link 'Phones'" not in client.view["yaml"]
    assert "link 'Phones'" in client.act("hover", "generic 'Products'")
    assert "Second page" in client.act("click", "link 'Phones'")


def test_scrolling_inside_an_element(client: Client) -> None:
    tree = client.open("/boxes")
    assert "'item 1'" in tree and "'item 20'" not in tree
    assert "'item 20'" in client.act("scroll_in", "listbox 'List'", y=380)
    client.act("scroll_in", "listbox 'List'", actionValue="down")
    client.act("scroll_in", "listbox 'List'", y=9999)
    client.act("scroll_in", "listbox 'List'", y=10)
    assert "cannot scroll further" in client.message
    client.act("scroll_in", "listbox 'List'", actionValue="around", status=400)
    assert "px above" in client.act("scroll_in", "textbox 'Text'", y=100)
    client.go("/text-only")
    client.act("scroll", actionValue="down")
    assert client.message.startswith("scrolled down")


def test_chords_change_what_they_should(client: Client) -> None:
    client.open("/chords")
    client.act("press", "textbox 'Text'", keys=["Control+a", "Delete"])
    assert "one two" not in client.view["yaml"]
    client.act("type_text", text="new\nlines")
    assert "value: new ↵ lines" in client.view["yaml"]
    assert "'chord'" in client.act("press", keys="ctrl+shift+k")
    for keys in ("", "Nokey", "Control+", "Ctrk+a"):
        client.act("press", keys=keys, status=400)


def test_a_canvas_by_points(client: Client) -> None:
    client.open("/canvas")
    assert "click:20,30:0" in client.act("click_at", x=20, y=30)
    assert "contextmenu:40,50:2" in client.act("click_at", x=40, y=50, button="right")
    assert "click:60,70:0s" in client.act("click_at", x=60, y=70, keys=["Shift"])
    assert "dblclick:80,90:0" in client.act("double_click_at", x=80, y=90)
    tree = client.act("drag_path", path=[{"x": 10, "y": 10}, {"x": 90, "y": 10}])
    assert "drawn 10-90" in tree


def test_dragging_with_the_mouse_alone(client: Client) -> None:
    client.open("/sort")
    second = client.id_of("listitem 'two'")
    client.act("drag", "listitem 'one'", toId=second)
    assert client.view["title"] == "two one three"


def test_reading_tells_only_what_is_shown(client: Client) -> None:
    client.open("/hidden")
    client.act("read")
    assert "seen [link](/two)" in client.message and "framed" in client.message
    assert "secret" not in client.message


def test_pages_see_native_timers_and_nothing_else(client: Client) -> None:
    script = """<title>N</title><p id=o></p><script>
      const names = ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval',
        'requestAnimationFrame', 'cancelAnimationFrame'];
      const odd = names.filter((n) => window[n].toString() !== `function ${n}() { [native code] }`
        || window[n].name !== n || !(n in window) || 'prototype' in window[n]
        || `${Function.prototype.toString.call(window[n])}` !== window[n] + ''
        || Object.getOwnPropertyDescriptor(window, n).enumerable !== true);
      const own = Function.prototype.toString;
      if (own.toString() !== 'function toString() { [native code] }') odd.push('toString');
      if (Object.getOwnPropertyDescriptor(Function.prototype, 'toString').enumerable) odd.push('e');
      const frame = document.createElement('iframe'); document.documentElement.append(frame);
      const clean = Object.keys(frame.contentWindow);
      odd.push(...Object.keys(window).filter((k) => !clean.includes(k) && k !== '0'));
      if (setTimeout(() => {}, 9) + 1 !== setTimeout(() => {}, 9)) odd.push('ids');
      o.textContent = odd.join() || 'all native';</script>"""
    PAGES["/native"] = script
    assert "'all native'" in client.open("/native")


def test_what_stands_out_of_an_element_without_size_is_clicked(client: Client) -> None:
    PAGES["/no-size"] = """<title>Z</title><button onclick="document.title += 'b'" style="width:0;
        height:0;padding:0;border:0"><span style="position:absolute;width:90px;height:20px">Out
        </span></button><div style="height:40px"></div><div role=link tabindex=0 style="height:0"
        onclick="document.title += 't'">Text</div><div style="height:40px"></div><a href="#a"
        style="display:contents" onclick="document.title += 'a'"><p style="height:0"><b
        style="float:left">Floated</b></p></a>"""
    client.open("/no-size")
    for line in ("button 'Out'", "link 'Text'", "link 'Floated'"):
        client.act("click", line)
    assert client.view["title"] == "Zbta"


def test_a_click_on_what_holds_controls_goes_beside_them(client: Client) -> None:
    PAGES["/card"] = """<title>K</title><a href="#k" onclick="document.title += 'c'" style="display:
        block;width:300px;text-align:center;padding:40px 0"><button aria-label="Like" onclick="
        event.preventDefault(); event.stopPropagation(); document.title += 'l'">L</button></a>"""
    client.open("/card")
    client.act("click", "link 'Like'")
    client.act("click", "button 'Like'")
    assert client.view["title"] == "Kcl"


def test_a_box_that_its_page_switches_a_moment_later_is_switched(client: Client) -> None:
    PAGES["/asks-first"] = """<title>A</title><input type=checkbox aria-label=Later onclick="
        event.preventDefault(); setTimeout(() => { this.checked = !this.checked }, 150)">"""
    client.open("/asks-first")
    assert "checked: true" in client.act("check", "checkbox 'Later'")
    assert "switched checkbox 'Later' on" in client.message
