"""Any `Computer` as an environment: its actions, pictures and results."""

from __future__ import annotations

import io
from typing import Any

import pytest
from drawn_computers import DrawnComputer

from ck_pro.computer import Computer, ScreenEnv
from ck_pro.computer.view import bytes_of, decoded
from ck_pro.events import BrowserAction, ComputerObservation, ErrorObservation
from ck_pro.events.computer_schema import computer_action


def does(env: ScreenEnv, action: str, **given: Any) -> Any:
    return env.execute(computer_action({"action": action, **given}))


def test_a_computer_of_the_protocol_needs_no_base_class() -> None:
    computer = DrawnComputer()
    assert isinstance(computer, Computer)
    env = ScreenEnv(computer)
    seen = env.observe()
    assert decoded(bytes_of(seen.image)).size == (200, 150) and seen.text == ""


def test_each_action_calls_the_method_of_its_name() -> None:
    computer = DrawnComputer()
    env = ScreenEnv(computer)
    does(env, "click", x=10, y=20, button="right")
    does(env, "double_click", x=1, y=2)
    does(env, "triple_click", x=3, y=4)
    does(env, "scroll", scroll_y=300)
    does(env, "type", text="hi\n")
    does(env, "keypress", keys=["CTRL", "A"])
    does(env, "move", x=10.6, y=2)
    does(env, "drag", path=[[1, 2], [3, 4]])
    does(env, "wait", ms=5)
    does(env, "screenshot")
    assert computer.calls == [
        ("click", 10, 20, "right"),
        ("double_click", 1, 2),
        *[("double_click", 3, 4), ("click", 3, 4, "left")],
        ("scroll", 100, 75, 0, 300),
        ("type", "hi\n"),
        ("keypress", ["CTRL", "A"]),
        ("move", 11, 2),
        ("drag", [{"x": 1, "y": 2}, {"x": 3, "y": 4}]),
        ("wait", 5),
    ]


def test_a_result_names_the_region_that_changed() -> None:
    env = ScreenEnv(DrawnComputer())
    assert does(env, "click", x=100, y=50).text == (
        "click 100,50: done; the picture changed in 20x20 at 100,50"
    )
    same = does(env, "move", x=5, y=5)
    assert same.text == "move 5,5: done; the picture did not change"


def test_large_screens_are_scaled_and_points_mapped_back() -> None:
    computer = DrawnComputer((400, 240))
    env = ScreenEnv(computer, max_side=200)
    assert decoded(bytes_of(env.observe().image)).size == (200, 120)
    seen = does(env, "click", x=100, y=60)
    assert computer.calls == [("click", 200, 120, "left")]
    assert "12x12 at 99,59" in seen.text or "10x10 at 100,60" in seen.text
    does(env, "drag", path=[[0, 0], [199, 119]])
    assert computer.calls[-1] == ("drag", [{"x": 0, "y": 0}, {"x": 398, "y": 238}])


def test_a_zoom_shows_a_region_at_full_resolution_in_the_next_observation() -> None:
    computer = DrawnComputer((400, 240))
    computer.squares = [(100, 60)]
    env = ScreenEnv(computer, max_side=200)
    done = does(env, "zoom", region=[50, 30, 50, 30])
    assert done.text == "zoom 50x30 at 50,30: the next step shows it in 200x120"
    (picture,) = env.observe().pictures
    assert picture.caption == "Zoom of 50x30 at 50,30, 200x120"
    image = decoded(bytes_of(picture.image))
    assert image.size == (200, 120)
    dark = image.convert("L").point(lambda v: 255 * (v < 128)).getbbox()
    assert dark is not None and dark[:2] == (0, 0)
    assert max(abs(side - 40) for side in dark[2:]) <= 2
    assert env.observe().pictures == ()
    outside = does(env, "zoom", region=[5000, 0, 10, 10])
    assert isinstance(outside, ErrorObservation) and "outside the screen" in outside.text


def test_the_first_picture_is_taken_when_two_looks_agree() -> None:
    late = ScreenEnv(DrawnComputer(loading=3)).observe()
    assert late.image == ScreenEnv(DrawnComputer()).observe().image


def test_a_picture_of_each_action_is_optional() -> None:
    env = ScreenEnv(DrawnComputer(), picture_after_each_act=True)
    does(env, "click", x=10, y=20)
    does(env, "type", text="x")
    captions = [p.caption for p in env.observe().pictures]
    assert captions == ["After click 10,20", "After type 'x'"]


def test_screens_that_show_the_same_have_the_same_content() -> None:
    env = ScreenEnv(DrawnComputer())
    first, still = env.observe(), does(env, "move", x=1, y=1)
    assert isinstance(still, ComputerObservation) and still.content == first.content
    assert does(env, "click", x=9, y=9).content != first.content


def test_actions_that_fail_are_observations() -> None:
    computer = DrawnComputer()
    env = ScreenEnv(computer)
    for given, reason in (
        ({"action": "click", "x": 200, "y": 0}, "(200, 0) is outside the screen, 200 x 150"),
        ({"action": "click", "x": 1, "y": 1, "ms": 900}, "this computer's click takes no ms"),
        ({"action": "keypress", "keys": ["A"], "ms": 900}, "keypress takes no ms"),
    ):
        seen = env.execute(computer_action(given))
        assert isinstance(seen, ErrorObservation) and reason in seen.text
    assert computer.calls == []
    assert isinstance(env.execute(BrowserAction(name="goto", value="x")), ErrorObservation)


def test_a_computer_that_the_caller_opened_stays_open() -> None:
    with DrawnComputer() as computer:
        env = ScreenEnv(computer)
        env.observe()
        lease = env.suspend()
        assert lease is not None and ScreenEnv(computer, suspended=lease).taken_up
        env.close()
        assert computer.entered == 1
        env.execute(computer_action({"action": "click", "x": 1, "y": 1}))
        assert not ScreenEnv(computer, suspended=lease).taken_up


@pytest.mark.parametrize("image", ["!", "AAAA"])
def test_a_screenshot_that_is_no_image_is_reported(image: str) -> None:
    from ck_pro.exceptions import EnvironmentFailure

    computer = DrawnComputer()
    computer.screenshot = lambda: image  # type: ignore[method-assign]
    with pytest.raises(EnvironmentFailure, match="the screenshot is not an image"):
        ScreenEnv(computer).observe()


def test_jpeg_noise_is_no_change() -> None:
    from PIL import Image, ImageDraw

    from ck_pro.computer import ScreenView

    image = Image.new("RGB", (320, 200), "white")
    ImageDraw.Draw(image).text((20, 20), "The quick brown fox", fill="navy")

    def jpeg(quality: int) -> bytes:
        out = io.BytesIO()
        image.save(out, "JPEG", quality=quality)
        return out.getvalue()

    view = ScreenView(320, 200)
    view.show(jpeg(90))
    assert view.show(jpeg(80)).changed == ()
    assert view.show(jpeg(80), pointer=(100, 100)).changed == ()
    ImageDraw.Draw(image).rectangle((200, 100, 201, 120), fill="black")  # a caret
    assert view.show(jpeg(80)).changed == ()
    ImageDraw.Draw(image).rectangle((200, 100, 230, 120), fill="black")
    (region,) = view.show(jpeg(80)).changed
    assert abs(region.x - 200) <= 16 and abs(region.width - 31) <= 16
