"""Pages that draw themselves: keys, chords and the wheel reach them as from a person."""

from __future__ import annotations

import base64

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/sheet"] = """<title>Sheet</title><canvas id=c width=600 height=400 tabindex=0
    aria-label=Sheet></canvas><button>Bold</button><p id=out></p><script>
    let cells = [['']], row = 0, column = 0;
    addEventListener('keydown', (e) => { if (e.target.localName === 'input') return;
      if (e.key === 'Tab') { e.preventDefault(); column += 1 }
      else if (e.key === 'Enter') { row += 1; column = 0 }
      else if (e.key.length === 1) { cells[row] ||= [];
        cells[row][column] = (cells[row][column] || '') + e.key }
      out.textContent = cells.map((each) => each.join(' | ')).join(' / ') })</script>"""
PAGES["/drawn-list"] = """<title>0</title><canvas id=c width=900 height=600></canvas><script>
    let first = 0; c.onwheel = (e) => { first += Math.sign(e.deltaY); document.title = first };
    </script>"""
PAGES["/pressed"] = """<title>Pressed</title><p id=out></p><script>addEventListener('keydown',
    (e) => { if (e.key.length > 1) return; out.textContent = [e.key, e.code,
    e.ctrlKey ? 'ctrl' : '', e.shiftKey ? 'shift' : ''].filter(Boolean).join(' '); })</script>"""


def test_tabs_and_newlines_are_keys_where_no_field_has_the_focus(client: Client) -> None:
    client.open("/sheet")
    client.act("click", "Canvas 'Sheet'")
    assert "'11 | 12 / 13'" in client.act("type_text", text="11\t12\n13")
    assert f"typed '11 12 13' at Canvas 'Sheet' [{client.id_of('Canvas')}]" in client.message


def test_a_long_text_is_typed_key_by_key_where_no_field_has_the_focus(client: Client) -> None:
    client.open("/sheet")
    assert "a" * 150 in client.act("type_text", text="a" * 150)
    assert "no element has the focus" in client.message
    client.act("type_text", text="a" * 1001, status=409)
    assert "type at most 1,000 at once" in client.message


def test_a_cell_whose_editor_opens_with_the_first_key_gets_the_others_too(client: Client) -> None:
    PAGES["/late-editor"] = """<title>L</title><canvas width=900 height=300></canvas>
        <textarea id=e style="position:absolute;left:-99px;width:9px"></textarea><p id=out></p>
        <script>
        const done = []; addEventListener('keydown', (key) => {
          if (key.key === 'Enter') { key.preventDefault(); done.push(e.value); e.value = '';
            e.blur(); out.textContent = done.join('/'); }
          else if (document.activeElement !== e && key.key.length === 1) { key.preventDefault();
            requestAnimationFrame(() => { e.value = key.key; e.focus() }) } })</script>"""
    client.open("/late-editor")
    assert "'11/12'" in client.act("type_text", text="11\n12\n")


def test_enter_waits_for_the_suggestions_of_a_combobox(client: Client) -> None:
    PAGES["/late-list"] = """<title>L</title><input role=combobox aria-label=City id=city><p id=out>
        </p><script>let found = 'Rome';
        city.oninput = () => setTimeout(() => { found = 'Lima' }, 250);
        city.onkeydown = (e) => { if (e.key === 'Enter') out.textContent = 'took ' + found }
        </script>"""
    client.open("/late-list")
    tree = client.act("type", "combobox 'City'", actionValue="Li", needEnter=True)
    assert "'took Lima'" in tree


def test_what_was_typed_is_reported_with_the_field_that_has_the_focus(client: Client) -> None:
    client.open("/form")
    client.act("click", "textbox 'Notes'")
    client.act("type_text", text="one\ntwo")
    assert client.message == (
        f"typed 'one two' into textbox 'Notes' [{client.id_of('textbox ' + chr(39) + 'Notes')}]; "
        "the page changed"
    )


@pytest.mark.parametrize(
    ("chord", "seen"),
    [
        ("CTRL+SHIFT+Z", "Z KeyZ ctrl shift"),
        ("ctrl+shift+z", "Z KeyZ ctrl shift"),
        ("SHIFT+1", "! Digit1 shift"),
        ("?", "? Slash shift"),
        ("CTRL+A", "a KeyA ctrl"),
        ("shift+/", "? Slash shift"),
        ("Control+-", "- Minus ctrl"),
    ],
)
def test_a_chord_is_what_a_us_keyboard_makes_of_it(client: Client, chord: str, seen: str) -> None:
    client.open("/pressed")
    assert f"'{seen}'" in client.act("press", keys=[chord])


def test_the_wheel_turns_by_notches(client: Client) -> None:
    client.open("/drawn-list")
    client.act("wheel", deltaY=500)
    client.act("wait_for", timeout=50)
    assert client.view["title"] == "5"
    client.act("wheel", deltaY=-300)
    client.act("wait_for", timeout=50)
    assert client.view["title"] == "2"
    client.act("scroll", actionValue="down")
    client.act("wait_for", timeout=50)
    assert client.view["title"] == "8"


def test_files_are_given_to_the_chooser_that_a_click_opened(client: Client) -> None:
    client.open("/form")
    files = [{"name": "x.txt", "buffer": base64.b64encode(b"hi").decode()}]
    client.act("upload", files=files, status=409, elements=True)
    assert "first click the button or field that does" in client.message
    x, y, width, height = client.view["elements"][client.id_of("button 'Document'")]["box"]
    client.act("click_at", x=x + width / 4, y=y + height / 2)
    assert "the page asks for a file" in client.message
    assert "x.txt" in client.act("upload", files=files)
