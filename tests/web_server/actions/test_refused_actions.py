"""An action that cannot be done to an element does nothing, and says why and what to do."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

FILE = {"name": "x.txt", "buffer": base64.b64encode(b"hi").decode()}
PAGES["/wrong"] = """<title>Untouched</title><form action="/sent">
    <button>Delete order</button> <button type=button disabled>Off</button>
    <a href="/two">Account</a> <h2>Heading</h2>
    <label>Locked <input disabled value=kept></label>
    <label>Fixed <input readonly value=kept></label>
    <label>Date <input type=date readonly value=2024-01-02></label>
    <img alt="Picture" src="/pixel" width=40 height=40 onclick="document.title='image'">
    <div onclick="document.title='div'">Row action</div>
    <label><input type=checkbox> Agree</label> <label><input type=radio checked> Only</label>
    <label><input type=checkbox disabled> Never</label>
    <select aria-label=Size><option>S<option>L</select>
    <input type=file aria-label=Document> <input type=range aria-label=Volume value=7>
    <input type=color aria-label=Tint value="#112233">
    <div role=menu><div role=menuitem tabindex=0 onclick="document.title='menu'">Sign out</div>
    </div>
    <table><tr onclick="document.title='row'"><td>Ada</td><td>36</td></tr>
    <tr><td>Eve</td><td>12</td></tr></table>
    <canvas width=60 height=30 aria-label=Sheet role=img></canvas>
    <div role=combobox tabindex=0 aria-label=Shade onclick="document.title='shade'">none</div>
    <section aria-label=Pair role=group><input aria-label=One><input aria-label=Two></section>
    <div style="position:relative"><input aria-label=Under><div style="position:absolute;inset:0;
    background:#fff" onclick="document.title='cover'">Cover</div></div></form>
    <script>for (const kind of ['pointerdown', 'mousedown', 'click', 'keydown', 'input', 'change',
    'submit', 'focusin', 'drop', 'beforeinput']) addEventListener(kind, (e) => {
    document.title = kind + ' on ' + e.target.localName; e.preventDefault() }, true)</script>"""

BUTTONS = ("button 'Delete order'", "button 'Off'", "link 'Account'")
REST = ("heading 'Heading'", "image 'Picture'", "generic 'Row action'", "menuitem 'Sign out'")
TABLE = ("LayoutTableRow 'Ada", "Canvas 'Sheet'", "RootWebArea ''")
BOXES = ("checkbox 'Agree'", "radio 'Only'", "checkbox 'Never'")
LISTS = ("combobox 'Size'", "combobox 'Shade'")
FIELDS = ("textbox 'Locked'", "textbox 'Fixed'", "Date 'Date'", "textbox 'Under'", "group 'Pair'")
VALUES = ("slider 'Volume'", "ColorWell 'Tint'")
DOCUMENT = ("button 'Document'",)
ALL = BUTTONS + REST + TABLE + BOXES + LISTS + FIELDS + VALUES + DOCUMENT

CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "type": ({"actionValue": "no such", "needEnter": True}, ALL),
    "clear": ({}, ALL),
    "check": ({}, tuple(x for x in ALL if x not in ("checkbox 'Agree'", "radio 'Only'"))),
    "uncheck": ({}, tuple(x for x in ALL if x != "checkbox 'Agree'")),
    "select": ({"actionValue": "Sign out"}, tuple(x for x in ALL if x != "combobox 'Shade'")),
    "select_option": ({"values": ["S", "L"]}, ALL),
    "upload": ({"files": [FILE]}, tuple(x for x in ALL if x not in DOCUMENT)),
    "press": (
        {"keys": ["Enter"]},
        ("button 'Off'", *REST[:3], *TABLE[:2], "textbox 'Locked'", "checkbox 'Never'"),
    ),
    "drag": (
        {"deltaX": 2, "deltaY": 0},
        (*BUTTONS[:3], "textbox 'Locked'", "textbox 'Under'", *BOXES, "menuitem 'Sign out'"),
    ),
    "click": ({}, ("button 'Off'", "textbox 'Locked'", "textbox 'Under'", "checkbox 'Never'")),
    "hover": ({}, ("button 'Off'", "textbox 'Locked'", "textbox 'Under'", "checkbox 'Never'")),
}


@pytest.mark.parametrize("action", CASES)
def test_an_action_that_cannot_be_done_touches_nothing(client: Client, action: str) -> None:
    more, lines = CASES[action]
    client.open("/wrong")
    url, wrong = client.view["url"], []
    for line in lines:
        target = "1" if line.startswith("RootWebArea") else client.id_of(line)
        body = {"observe": True, "screenshot": "none", "html": False, "targetId": target, **more}
        where = {"browserId": client.browser, "pageId": client.page, "actionName": action}
        reply = client.post("performAction", **where, **body).json()
        said, view = reply.get("error", ""), reply["observation"]
        if not said or (view["title"], view["url"]) != ("Untouched", url):
            wrong.append((line, reply.get("message") or said, view["title"]))
        elif "\n" in said or len(said.split(": ", 1)[-1]) < 8:
            wrong.append((line, said))
    assert wrong == []


SAID = {
    ("type", "button 'Delete order'"): "is not a field that takes text",
    ("type", "checkbox 'Agree'"): "takes no text: use check or uncheck",
    ("type", "button 'Document'"): "takes no text: use upload",
    ("type", "textbox 'Fixed'"): "is read-only: click it first",
    ("type", "group 'Pair'"): "holds 2 fields: give the id of one textbox 'One' [",
    ("type", "generic 'Row action'"): "if a click turns it into a field, click it first",
    ("type", "combobox 'Shade'"): "choose with select",
    ("type", "textbox 'Under'"): "is covered by",
    ("check", "heading 'Heading'"): "cannot be switched on or off: check and uncheck need a check",
    ("check", "button 'Delete order'"): "toggle button; click it only if you mean to press it",
    ("uncheck", "radio 'Only'"): "is a radio button: choose another one instead",
    ("upload", "button 'Delete order'"): "click it first, then upload to it",
    ("press", "heading 'Heading'"): "cannot take the focus: press the keys without an id",
    ("drag", "button 'Delete order'"): "would be clicked by so short a drag",
    ("select", "heading 'Heading'"): "is not a list with the item 'Sign out'",
    ("select", "button 'Delete order'"): "give the id of a list, menu or combo box; if a click",
}


def test_a_refusal_says_why_and_what_fits(client: Client) -> None:
    client.open("/wrong")
    for (action, line), words in SAID.items():
        client.act(action, line, status=409, **CASES[action][0])
        assert words in client.message


def test_an_element_that_left_the_page_is_refused_by_every_action(client: Client) -> None:
    PAGES["/left"] = "<title>L</title><input aria-label=F><button onclick='F.remove()'>B</button>"
    PAGES["/left"] = PAGES["/left"].replace("<input", "<input id=F")
    client.open("/left")
    gone = client.id_of("textbox 'F'")
    client.act("click", "button 'B'")
    for action, (more, _) in CASES.items():
        client.act(action, targetId=gone, status=404, **more)
        assert f"Element [{gone}] is not on the page" in client.message


PAGES["/meant"] = """<title>Meant</title><p id=out></p>
    <div onclick="if (event.target === this) out.textContent='beside'" style="width:600px">
    <b>Town</b><input aria-label=Town></div>
    <div onclick="if (event.target === this) out.textContent='beside'" style="width:600px">
    <input type=checkbox aria-label=Agree></div>
    <div style="position:relative;height:24px;width:200px"><input id=c
    style="position:absolute;left:0;top:0;width:180px"><span
    style="position:absolute;left:4px;top:2px">Search here</span></div>
    <div role=textbox tabindex=0 aria-label=Own id=own style="height:20px;width:90px"></div>
    <div role=grid><div role=row><div role=gridcell tabindex=-1 id=cell>old</div>
    <div role=gridcell tabindex=-1 id=twice>two</div></div></div>
    <script>
    own.onkeydown = (e) => { if (e.key === 'a' && e.ctrlKey) own.textContent = '';
      else if (e.key.length === 1) own.textContent += e.key };
    const edit = (e) => { const i = document.createElement('input'); i.ariaLabel = 'Cell';
      e.target.replaceChildren(i); i.focus(); i.oninput = () => { out.textContent = i.value } };
    cell.onclick = (e) => { if (e.target === cell) edit(e) };
    twice.onkeydown = (e) => { if (e.key === 'F2') edit(e) }</script>"""


def test_what_stands_for_one_field_is_typed_into_without_a_click_on_anything_else(
    client: Client,
) -> None:
    client.open("/meant", elements=True)
    boxes = [key for key, each in client.view["elements"].items() if each.get("clickable")]
    tree = client.act("type", targetId=boxes[0], actionValue="Oslo")
    assert "textbox 'Town' value: Oslo" in tree and "into textbox 'Town'" in client.message
    assert "checkbox 'Agree' checked: true" in client.act("check", targetId=boxes[1])
    assert "'beside'" not in client.view["yaml"]
    tree = client.act("type", "StaticText 'Search here'", actionValue="lamp")
    assert "value: lamp" in tree
    tree = client.act("type", "textbox 'Own'", actionValue="ab c")
    assert "ab c" in tree


def test_cells_of_a_grid_are_clicked_to_become_fields(client: Client) -> None:
    client.open("/meant")
    assert "'new'" in client.act("type", "gridcell 'old'", actionValue="new")
    assert "'other'" in client.act("type", "gridcell 'two'", actionValue="other")


def test_values_are_judged_before_they_are_set(client: Client) -> None:
    PAGES["/judged"] = """<title>J</title><input type=range aria-label=V value=7>
        <input type=color aria-label=C value="#112233">
        <input type=number aria-label=N value=5><script>
        addEventListener('input', () => { document.title = 'changed' })</script>"""
    client.open("/judged")
    for action, line, value in (
        ("type", "slider 'V'", "loud"),
        ("clear", "slider 'V'", ""),
        ("type", "spinbutton 'N'", "many"),
        ("type", "ColorWell 'C'", "red"),
        ("clear", "ColorWell 'C'", ""),
    ):
        client.act(action, line, actionValue=value, status=409)
        assert client.view["title"] == "J"


def test_enter_goes_to_no_button_that_took_the_focus(client: Client) -> None:
    PAGES["/jumps"] = """<title>J</title><input maxlength=2 aria-label=Code oninput="
        if (this.value.length === 2) buy.focus()"><button id=buy onclick="document.title='bought'">
        Buy</button><input aria-label=Free>"""
    client.open("/jumps")
    client.act("type", "textbox 'Code'", actionValue="42", needEnter=True)
    assert client.view["title"] == "J"
    assert "Enter was not pressed, as the focus went to button 'Buy'" in client.message
    client.act("type_text", text="a b", status=409)
    client.act("type_text", text="ab", needEnter=True, status=409)
    assert client.view["title"] == "J" and "a space or Enter would press it" in client.message


def test_no_key_of_several_is_pressed_if_one_is_unknown(client: Client) -> None:
    PAGES["/heard"] = """<title>H</title><input aria-label=F autofocus><script>
        onkeydown = (e) => { document.title = e.key }</script>"""
    client.open("/heard")
    client.act("press", keys=["Control+a", "Nokey"], status=400)
    assert client.view["title"] == "H"


def test_a_choice_is_made_in_the_list_that_was_named(client: Client) -> None:
    PAGES["/two-lists"] = """<title>T</title><div role=menu><div role=menuitem tabindex=0
        onclick="document.title='deleted'">Delete</div></div><ul role=listbox aria-label=First>
        <li role=option onclick="document.title='first'">Same</ul><ul role=listbox
        aria-label=Second><li role=option onclick="document.title='second'">Same</ul>
        <div role=combobox tabindex=0 aria-expanded=false aria-label=Act>x</div>"""
    client.open("/two-lists")
    assert "Tab 0 (current): second" in client.act("select", "listbox 'Second'", actionValue="Same")
    client.act("select", "combobox 'Act'", actionValue="Delete", status=409)
    assert client.view["title"] == "second"


def test_a_name_that_no_item_has_does_not_stay_in_the_field(client: Client) -> None:
    PAGES["/asks"] = """<title>A</title><input role=combobox aria-label=City value=Rome>"""
    client.open("/asks")
    tree = client.act("select", "combobox 'City'", actionValue="Nowhere", status=409)
    assert "combobox 'City' value: Rome" in tree


def test_files_go_to_the_field_that_a_button_stands_for_or_to_the_open_chooser(
    client: Client,
) -> None:
    PAGES["/choosers"] = """<title>C</title><div><input type=file id=near hidden onchange="
        document.title='near ' + this.files[0].name"><button onclick="near.click()">Near</button>
        </div><div><button onclick="const f = document.createElement('input'); f.type = 'file';
        f.onchange = () => { document.title = 'made ' + f.files[0].name }; f.click()">Made</button>
        <button onclick="document.title='deleted'">Delete</button></div>"""
    client.open("/choosers")
    client.act("upload", "button 'Near'", files=[FILE])
    assert client.view["title"] == "near x.txt"
    client.act("upload", "button 'Made'", files=[FILE], status=409)
    client.act("upload", "button 'Delete'", files=[FILE], status=409)
    client.act("click", "button 'Made'")
    assert "the page asks for a file" in client.message
    client.act("upload", "button 'Made'", files=[FILE])
    assert client.view["title"] == "made x.txt"
    client.act("upload", "button 'Delete'", files=[FILE], status=409)
    assert client.view["title"] == "made x.txt"


@pytest.mark.parametrize(
    "html",
    [
        "<button onclick=\"document.title='x'\">Delete</button><input type=file hidden>",
        "<form><input type=file hidden><button>Delete</button></form>",
        "<div><input type=file hidden id=f><label for=f>Pick</label><a href=/two>Delete</a></div>",
    ],
)
def test_a_button_beside_an_unseen_file_field_is_not_taken_for_its_own(
    client: Client, html: str
) -> None:
    PAGES["/beside"] = f"""<title>B</title>{html}<script>addEventListener('change',
        () => {{ document.title = 'given' }}, true)</script>"""
    client.open("/beside")
    line = "link 'Delete'" if "link 'Delete'" in client.view["yaml"] else "button 'Delete'"
    client.act("upload", line, files=[FILE], status=409)
    assert client.view["title"] == "B" and "click it first" in client.message


def test_a_drag_onto_a_covered_element_does_nothing(client: Client) -> None:
    PAGES["/bins"] = """<title>B</title><div id=a role=button style="width:60px;height:30px"
        onmousedown="document.title='held'">Card</div><div style="position:relative;width:200px;
        height:80px"><div role=button style="position:absolute;inset:0">Bin</div><div
        role=dialog aria-label=Note style="position:absolute;inset:0;background:#fff">N</div>"""
    client.open("/bins")
    client.act("drag", "button 'Card'", toId=client.id_of("button 'Bin'"), status=409)
    assert client.view["title"] == "B" and "is covered by 'dialog Note" in client.message


def test_an_approved_text_goes_to_the_field_that_was_described(client: Client) -> None:
    client.open("/meant", elements=True)
    where = {"browserId": client.browser, "pageId": client.page}
    boxes = [key for key, each in client.view["elements"].items() if each.get("clickable")]
    for target, more in (
        (client.id_of("textbox 'Town'"), {"needEnter": True}),
        (boxes[0], {"needEnter": True}),
        (client.id_of("StaticText 'Search here'"), {}),
    ):
        body = {"actionName": "type", "targetId": target, "actionValue": "Oslo", **more}
        found = client.ok("describeAction", **where, **body)
        assert found["target"].startswith("textbox")
        approved = {"expectedTarget": found["target"], "expectedUrl": found["url"]}
        client.act("type", targetId=target, actionValue="Oslo", **more, **approved)
        assert client.message.startswith("typed 'Oslo' into textbox")
