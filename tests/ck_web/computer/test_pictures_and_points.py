"""What a vision model needs of a browser: pictures, points, zoom and results."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_site import browser_settings, serve
from PIL import Image

from ck_pro.computer.view import bytes_of, decoded
from ck_pro.events import ErrorObservation
from ck_pro.events.computer_schema import computer_action
from ck_pro.exceptions import BrowserServerError, ToolError
from ck_web import BrowserComputer, ComputerEnv, WebEnv
from ck_web.actions import parse_action
from ck_web.browser import shared_servers

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>Pad</title><style>
  body { margin: 0; background: white } * { box-sizing: border-box }
  canvas, input, button, p { position: absolute; margin: 0 }
  #pad { left: 0; top: 0 } #name { left: 1000px; top: 100px; width: 400px; height: 60px }
  #go { left: 1000px; top: 300px; width: 300px; height: 80px } #said { left: 0; top: 1300px }
</style>
<canvas id="pad" width="800" height="800"></canvas><input id="name" aria-label="Name">
<button id="go">Greet</button><p id="said">-</p><script>
  const pen = pad.getContext('2d'), say = (text) => { said.textContent = text };
  pen.fillRect(200, 100, 20, 20);
  pad.onclick = (e) => { say(`clicked ${e.clientX},${e.clientY} ${e.detail}`);
    pen.fillRect(e.clientX, e.clientY, 40, 40) };
  pad.onpointermove = (e) => { said.title = `${e.clientX},${e.clientY}` };
  document.title = performance.getEntriesByType('navigation')[0].type;
  go.onclick = () => say('Hello ' + document.getElementById('name').value);
</script>"""
LARGE = {"viewport_width": 2560, "viewport_height": 1440}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with serve({"*": PAGE}) as url:
        yield f"{url}/"
        shared_servers.stop_servers()


@pytest.fixture(scope="module")
def large(site: str) -> Iterator[ComputerEnv]:
    """A screen of 2560 x 1440 pixels, shown in 1280 x 720."""
    env = ComputerEnv(browser_settings(target_url=site, **LARGE))
    yield env
    env.stop()


def does(env: ComputerEnv, **given: Any) -> Any:
    return env.execute(env.named(computer_action(given)))


def test_a_step_picture_marks_the_point_of_an_action(large: ComputerEnv) -> None:
    large.observe()
    picture = large.picture(computer_action({"action": "click", "x": 150, "y": 200}))
    assert picture is not None and (picture["width"], picture["height"]) == (2560, 1440)
    assert picture["targets"] == [[300, 400, 0, 0]] and picture["elements"]
    assert decoded(bytes_of(picture["image"])).size == (720, 405)
    drag = {"action": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}
    dragged = large.picture(computer_action(drag))
    assert dragged is not None and dragged["targets"] == [[2, 4, 0, 0], [6, 8, 0, 0]]
    assert large.picture(computer_action({"action": "screenshot"})) is None


def test_a_large_screen_is_scaled_and_points_are_mapped_back(large: ComputerEnv) -> None:
    assert decoded(bytes_of(large.observe().image)).size == (1280, 720)
    seen = does(large, action="click", x=150, y=200)
    assert "clicked 300,400 1" in large.get_state().current_accessibility_tree
    assert "20x20 at 150,200" in seen.text
    does(large, action="triple_click", x=150.5, y=200)
    assert "clicked 301,400 3" in large.get_state().current_accessibility_tree
    outside = does(large, action="click", x=1280, y=10)
    assert isinstance(outside, ErrorObservation)


def test_results_have_no_ids_and_the_focus_has_a_place(large: ComputerEnv) -> None:
    seen = does(large, action="click", x=600, y=65)
    assert seen.text.endswith("(textbox 'Name')")
    typed = does(large, action="type", text="Ada")
    assert "textbox 'Name' value: Ada" in typed.text and "[" not in typed.text
    assert "Focus: textbox 'Name', 200x30 at 500,50" in large.observe().text


def test_a_zoom_is_sharper_than_the_picture(large: ComputerEnv) -> None:
    done = does(large, action="zoom", region=[90, 40, 80, 45])
    assert done.text == "zoom 80x45 at 90,40: the next step shows it in 640x360"
    (picture,) = large.observe().pictures
    image = decoded(bytes_of(picture.image)).convert("L")
    assert image.size == (640, 360)
    assert image.point(lambda v: 255 * (v < 128)).getbbox() == (80, 80, 160, 160)
    assert large.observe().pictures == ()
    assert isinstance(does(large, action="zoom", region=[2000, 0, 9, 9]), ErrorObservation)


def test_the_web_agent_gets_scaled_unmarked_and_enlarged_pictures(
    site: str, tmp_path: Path
) -> None:
    settings = browser_settings(target_url=site, **LARGE)
    env = WebEnv(settings, workdir=tmp_path)
    try:
        env.execute(parse_action("screenshot 1"))
        marked = env.observe()
        assert marked.text.endswith("Screenshot: 1280 x 720 pixels")
        assert decoded(bytes_of(marked.image)).size == (1280, 720)
        env.execute(parse_action("screenshot 1 unmarked"))
        plain = env.observe()
        assert plain.image != marked.image
        env.execute(parse_action("screenshot 1 region 90,40 80,45"))
        part = env.observe()
        assert "only the 80x45 pixels at 90,40" in part.text
        dark = decoded(bytes_of(part.image)).convert("L").point(lambda v: 255 * (v < 128))
        assert dark.getbbox() == (80, 80, 160, 160)
        assert env.observe().image == plain.image or "1280 x 720" in env.observe().text
        env.execute(parse_action("click_at 150 200"))
        assert "clicked 300,400" in env.get_state().current_accessibility_tree
        env.execute(parse_action("click_at 150 200 hold 0.6"))
        env.execute(parse_action("reload"))
        assert "RootWebArea 'reload'" in env.get_state().current_accessibility_tree
    finally:
        env.close()


def test_a_browser_follows_the_protocol_of_computers(site: str, tmp_path: Path) -> None:
    described = BrowserComputer(site, web_env=browser_settings(), workdir=tmp_path)
    assert (described.environment, described.dimensions) == ("browser", (1280, 720))
    with pytest.raises(BrowserServerError, match="not open"):
        described.screenshot()
    with described as computer:
        assert computer.is_open and computer.get_current_url() == site
        assert Image.open(io.BytesIO(base64.b64decode(computer.screenshot()))).size == (1280, 720)
        computer.move(5, 5)
        computer.click(1100, 130)
        computer.type("Ada")
        computer.keypress(["CTRL", "A"])
        computer.type("Eve")
        computer.click(x=1100, y=340, button="left")
        computer.double_click(10, 400)
        computer.triple_click(20, 400)
        computer.drag([{"x": 10, "y": 10}, {"x": 50, "y": 50}])
        computer.scroll(100, 100, 0, 700)
        assert "Hello Eve" not in computer.get_current_url()
        assert decoded(bytes_of(computer.zoom([190, 90, 40, 40]))).size == (160, 160)
        computer.wait(10)
        computer.reload()
        with pytest.raises(ToolError, match="outside"):
            computer.click(5000, 5)
    assert not computer.is_open
