"""The mouse by distances and within elements; texts selected by their words."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/sliders"] = """<title>Sliders</title>
<input type="range" aria-label="Native" min="0" max="100" value="50"
  style="width:216px;margin:0" oninput="document.title='native '+this.value">
<input type="range" aria-label="Backwards" dir="rtl" value="0" style="width:216px;margin:0"
  oninput="document.title='backwards '+this.value">
<div id="knob" role="slider" tabindex="0" aria-label="Knob" aria-valuenow="0"
  style="position:absolute;left:100px;top:200px;width:20px;height:20px;background:red"></div>
<canvas id="pad" aria-label="Pad" width="200" height="100"
  style="position:absolute;left:300px;top:200px;border:5px solid"></canvas><script>
  knob.onmousedown = () => {
    onmousemove = (e) => { knob.style.left = e.clientX - 10 + 'px';
      knob.setAttribute('aria-valuenow', Math.round(e.clientX - 110)); };
    onmouseup = () => { onmousemove = null; };
  };
  let from;
  pad.onmousedown = (e) => { from = `${e.offsetX},${e.offsetY}`; };
  pad.onmouseup = (e) => { document.title = `${from} to ${e.offsetX},${e.offsetY}`; };
  pad.onclick = (e) => { pad.setAttribute('aria-label', `at ${e.offsetX},${e.offsetY}`); };
</script>"""

PAGES["/words"] = """<title>Words</title><p id="out">-</p><p>The quick brown <b>fox jumps</b> over
  the lazy dog.</p><p>It is the dog's <a href="/two">own day</a>, says the dog.</p>
<p style="user-select:none">not to be taken</p><p style="text-transform:uppercase">loud words</p>
<div id="host"></div><p style="margin-top:2000px">far below</p>
<iframe srcdoc="<p>framed words</p>" style="margin-top:900px"></iframe>
<script>
  host.attachShadow({mode: 'open'}).innerHTML = '<p>words in the shade</p>';
  document.onmouseup = () => { out.textContent = 'marked ' + getSelection(); };
  document.onselectionchange = () => { document.title = String(getSelection()); };
</script>"""


def test_dragging_by_a_distance(client: Client) -> None:
    client.open("/sliders")
    assert "native 75" in client.act("drag", "slider 'Native'", deltaX=50)
    assert client.message.startswith("dragged slider 'Native' by (50, 0)")
    assert "native 55" in client.act("drag", "slider 'Native'", deltaX=-40)
    assert "backwards 25" in client.act("drag", "slider 'Backwards'", deltaX=-50)
    assert "value: 40" in client.act("drag", "slider 'Knob'", deltaX=40, deltaY=3)
    client.act("drag", "slider 'Knob'", deltaX=5000, status=400)
    assert "outside the viewport" in client.message


def test_points_within_an_element(client: Client) -> None:
    client.open("/sliders")
    pad = client.id_of("Canvas 'Pad'")
    path = [{"x": 15, "y": 15}, {"x": 50, "y": 70}, {"x": 105, "y": 85}]
    client.act("drag_path", targetId=pad, path=path)
    assert client.view["title"] == "10,10 to 100,80"
    assert "at 25,35" in client.act("click_at", targetId=pad, x=30, y=40)
    client.act("move", targetId=pad, x=1, y=2)
    assert client.message.startswith("moved the mouse to (1, 2) of Canvas 'at 25,35'")
    client.act("click_at", targetId=pad, x=300, y=1, status=400)
    assert "which is 210 x 110" in client.message


@pytest.mark.parametrize(
    ("asked", "selected"),
    [
        ("quick brown fox jumps over the", "quick brown fox jumps over the"),
        ("BROWN  FOX", "brown fox"),
        ("own day", "own day"),
        ("loud words", "LOUD WORDS"),
        ("far below", "far below"),
    ],
)
def test_a_text_is_selected_by_its_words(client: Client, asked: str, selected: str) -> None:
    client.open("/words")
    client.act("select_text", text=asked)
    assert client.message.startswith(f"selected '{' '.join(asked.split())}'")
    assert client.view["title"] == selected and client.view["url"].endswith("/words")


def test_selecting_presses_and_releases_the_mouse(client: Client) -> None:
    client.open("/words")
    client.act("select_text", text="the dog")
    assert "the first of 2 such places" in client.message
    assert "'marked The quick'" in client.act("select_text", text="The quick")
    client.act("select_text", "StaticText 'It is the dog")
    assert client.view["title"] == "It is the dog's own day, says the dog."


def test_texts_in_shadow_trees_and_frames(client: Client) -> None:
    client.open("/words")
    client.act("select_text", text="in the shade")
    assert client.message.startswith("selected 'in the shade'")
    client.act("select_text", text="framed words")
    assert client.message.startswith("selected 'framed words'")


def test_what_cannot_be_selected_is_said(client: Client) -> None:
    client.open("/words")
    client.act("select_text", status=400)
    client.act("select_text", text="no such words", status=404)
    assert client.message.startswith("'no such words' is not shown on the page")
    client.act("select_text", text="to be taken", status=409)
    client.go("/cover")
    client.act("select_text", text="Below", status=409)
    assert "covered by 'dialog Cookies" in client.message


PAGES["/places"] = """<title>Places</title><a href="#there">Go there</a>
    <div id=low style="position:absolute;left:0;top:100px;width:200px;height:100px"
        onclick="1">Low</div>
    <a href="#high" style="position:absolute;left:0;top:100px;width:60px;height:60px">High</a>"""


def test_an_address_that_changes_alone_is_told(client: Client) -> None:
    client.open("/places")
    client.act("click", "link 'Go there'")
    assert (
        client.message == f"clicked link 'Go there'; the address is now {client.site}/places#there"
    )
    client.act("click", "link 'Go there'")
    assert client.message == "clicked link 'Go there'; nothing changed"


def test_a_click_on_a_point_that_something_else_covers_says_so(client: Client) -> None:
    client.open("/places")
    low = client.id_of("generic 'Low'")
    client.act("click_at", targetId=low, x=150, y=50)
    assert client.message.startswith("clicked (150, 50) of generic 'Low'; ")
    client.act("click_at", targetId=low, x=10, y=10)
    assert "(10, 10) of generic 'Low', where 'link High (id " in client.message
