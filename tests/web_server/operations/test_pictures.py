"""Screenshots: their size, parts of them, and pages that are still changing; keys and holds."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import pytest
from PIL import Image
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/pictured"] = """<!doctype html><title>Pictured</title><style>body { margin: 0 }
    div { position: absolute } #dot { left: 100px; top: 50px; width: 20px; height: 20px;
    background: #000 } #shift { left: 0; top: 300px }</style><div id="dot"></div>
    <script>let resized = 0; onresize = () => { resized += 1; document.title = 'resized' };
    matchMedia('(resolution: 1dppx)').onchange = () => { document.title = 'other resolution' };
    </script>"""
PAGES["/pictured-far"] = """<!doctype html><title>Far</title><style>body { margin: 0;
    height: 4000px } div { position: absolute; left: 100px; top: 2000px; width: 20px; height: 20px;
    background: #000 } p { position: absolute; left: 400px; top: 2000px; color: #eee }</style>
    <div></div><p>Here</p>"""
PAGES["/late-picture"] = """<!doctype html><title>Late</title><style>body { margin: 0 }</style>
    <canvas id="c" width="400" height="300"></canvas><script>
    // a worker's message is not a timer, so that settling does not wait for it
    const source = new Blob(['setTimeout(() => postMessage(1), 400)']);
    const worker = new Worker(URL.createObjectURL(source));
    worker.onmessage = () => c.getContext('2d').fillRect(100, 50, 20, 20);</script>"""
PAGES["/held"] = """<!doctype html><title>Held</title><style>body { margin: 0 }</style>
    <div id="pad" style="width:400px;height:300px;background:#ddd"></div><p id="said">-</p>
    <textarea id="area" style="position:absolute;left:0;top:400px">one two</textarea><script>
    let down = 0; const say = (text) => { said.textContent = text };
    pad.onpointerdown = (e) => { down = e.timeStamp };
    pad.onpointerup = (e) => say(`held ${Math.round(e.timeStamp - down) >= 700} ${e.button}`);
    pad.onpointermove = (e) => say(`at ${e.clientX} ${e.clientY}`);
    pad.onclick = (e) => { if (e.detail === 3) say('three clicks') };
    onkeydown = (e) => { down = e.timeStamp };
    onkeyup = (e) => say(`${e.key} for long: ${e.timeStamp - down >= 700}`);</script>"""
PAGES["/tiles"] = """<!doctype html><title>Tiles</title><style>
    @keyframes up { from { top: 25px; opacity: 1 } to { top: -50px; opacity: 0 } }
    @keyframes pop { 0% { transform: scale(0) } 100% { transform: scale(1) } }
    #gain { position: absolute } .moved #gain { animation: up 900ms ease-in both }
    .moved #tile { animation: pop 200ms 100ms backwards }</style>
    <div id="game"><div id="gain">+4</div><div id="tile">2</div></div><script>
    let ends = 0; game.onanimationend = (e) => { ends += e.animationName === 'up' ? 10 : 1;
      document.title = `ended ${ends}` };
    onkeydown = () => { game.className = 'moved' }; onclick = onkeydown;</script>"""
PAGES["/loaded-again"] = """<title>-</title><p>hi</p><script>
    document.title = performance.getEntriesByType('navigation')[0].type</script>"""


def image_of(view: dict[str, Any], kind: str = "nonboxed_screenshot") -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(view[kind])))
    return image.convert("L")


def dark_box(image: Image.Image) -> tuple[int, int, int, int] | None:
    return image.point(lambda v: 255 * (v < 128)).getbbox()


def test_screenshots_are_scaled_to_a_limit(client: Client) -> None:
    client.open("/pictured")
    whole = client.tree(screenshot="plain")
    assert image_of(whole).size == (1280, 720) and whole["imageScale"] == 1
    half = client.tree(screenshot="both", imageMax=640, imageFormat="jpeg")
    assert image_of(half).size == image_of(half, "boxed_screenshot").size == (640, 360)
    assert half["imageScale"] == 0.5 and dark_box(image_of(half)) == (50, 25, 60, 35)


def test_a_part_is_enlarged_and_the_page_does_not_notice(client: Client) -> None:
    client.open("/pictured")
    part = {"x": 90, "y": 40, "width": 160, "height": 90}
    view = client.tree(screenshot="plain", region=part, imageMax=640)
    assert image_of(view).size == (640, 360) and view["imageScale"] == 4
    assert dark_box(image_of(view)) == (40, 40, 120, 120)
    assert image_of(client.tree(screenshot="plain")).size == (1280, 720)
    assert client.tree(screenshot="none")["title"] == "Pictured"


def test_a_part_of_a_scrolled_page_is_a_part_of_what_is_visible(client: Client) -> None:
    client.open("/pictured-far")
    client.act("scroll_to", text="Here")
    scrolled = client.tree(screenshot="plain")
    dot = dark_box(image_of(scrolled))
    assert scrolled["scroll"]["y"] > 0 and dot is not None
    part = {"x": dot[0] - 10, "y": dot[1] - 10, "width": 80, "height": 40}
    view = client.tree(screenshot="plain", region=part, imageMax=80)
    assert dark_box(image_of(view)) == (10, 10, 30, 30)
    assert client.tree(screenshot="none")["scroll"] == scrolled["scroll"]


def test_a_steady_screenshot_waits_for_a_page_that_shows_nothing_yet(client: Client) -> None:
    client.open("/late-picture")
    assert dark_box(image_of(client.tree(screenshot="plain", steady=True))) == (100, 50, 120, 70)


def test_the_observation_has_the_position_of_the_mouse(client: Client) -> None:
    client.open("/held")
    assert client.view["pointer"] == []
    client.act("move", x=30.5, y=40.25)
    assert client.view["pointer"] == [30.5, 40.25] and "at 30.5 40.25" in client.view["yaml"]


def test_a_button_and_a_key_can_be_held(client: Client) -> None:
    client.open("/held")
    client.act("click_at", x=50, y=50, hold=750)
    assert "held true 0" in client.view["yaml"] and "held 750 ms (50, 50)" in client.message
    client.act("click_at", x=50, y=50)
    assert "held false 0" in client.view["yaml"]
    client.act("press", keys=["ArrowUp"], hold=750)
    assert "ArrowUp for long: true" in client.view["yaml"]
    client.act("press", keys=["ArrowUp"])
    assert "ArrowUp for long: false" in client.view["yaml"]


def test_three_clicks_are_a_triple_click(client: Client) -> None:
    client.open("/held")
    client.act("triple_click_at", x=50, y=50)
    assert "three clicks" in client.view["yaml"] and "triple-clicked" in client.message


def test_a_page_can_be_loaded_again(client: Client) -> None:
    client.open("/loaded-again")
    assert client.view["title"] == "navigate"
    client.act("reload")
    assert client.view["title"] == "reload"
    assert re.search(r"loaded the page again; the page is now \S+/loaded-again", client.message)


def test_a_key_does_not_wait_for_long_animations(client: Client) -> None:
    client.open("/tiles")
    client.act("press", keys=["ArrowLeft"])
    assert client.view["title"] == "ended 1"  # the new tile stands still, and the gain still rises
    client.open("/tiles")
    client.act("click_at", x=600, y=600)
    assert client.view["title"] == "ended 11"
