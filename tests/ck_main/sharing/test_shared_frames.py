"""Frames of browser steps, and the animated picture of them."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from viewer_runs import RunWriter

from ck_main.sharing import drawing
from ck_main.sharing.animation import MAX_FRAMES, durations, gif_of, limited
from ck_main.sharing.drawing import WIDTH, draw_frames
from ck_main.sharing.frames import Frame, frames_of, with_answer
from ck_main.viewer.runs.journal_run import JournalRun
from ck_pro.exceptions import InputError


def image(colour: str, kind: str = "WEBP") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (640, 360), colour).save(out, kind, lossless=True)
    return out.getvalue()


def url(colour: str) -> str:
    return f"data:image/webp;base64,{base64.b64encode(image(colour)).decode()}"


def picture(colour: str, **facts: Any) -> dict[str, Any]:
    return {"image": url(colour), "width": 1280, "height": 720, "url": "http://s.test/", **facts}


def frames_with(folder: Path, *pictures: dict[str, Any], kind: str = "picture") -> list[Frame]:
    run = RunWriter(folder, "pictured")
    calls = (
        ("click", {"id": 3}, "click [3] link 'Help': now at http://s.test/help"),
        ("type", {"id": 4}, "type [4] textbox 'Name' 'x': now value: x"),
    )
    run.step(0, thought="Look first.", calls=calls)
    for one in pictures:
        run.append(kind, one, i=0)
    run.finish()
    reader = JournalRun(folder)
    assert reader.refresh()
    return frames_of(reader)


def frame(data: bytes, **facts: Any) -> Frame:
    given = {"width": 1280, "height": 720, "targets": (), "step": 1, "agent": "a", "caption": "c"}
    return Frame(**{"image": data, "url": "", **given, **facts})


def test_each_action_has_a_frame_with_target_and_caption(tmp_path: Path) -> None:
    start = picture("white", elements={"3": [1, 2, 3, 4]})
    click = picture("white", call=0, targets=[[10, 20, 30, 40]])
    typed = picture("blue", call=1, targets=[[50, 60, 70, 80]])
    first, second = frames_with(tmp_path, start, click, typed)
    assert first.caption == "click [3] link 'Help': now at http://s.test/help"
    assert (first.targets, first.step, first.agent) == (((10, 20, 30, 40),), 0, "ck_agent")
    assert second.caption.startswith("type [4]") and second.url == "http://s.test/"


def test_a_page_without_action_has_the_thought_as_caption(tmp_path: Path) -> None:
    [only] = frames_with(tmp_path, picture("white"))
    assert (only.caption, only.acts) == ("Look first.", False)


def test_the_answer_is_shown_over_the_last_picture(tmp_path: Path) -> None:
    click = picture("white", call=0, targets=[])
    frames = with_answer(frames_with(tmp_path, click, picture("green")), "42\nnow")
    assert [f.caption for f in frames][1:] == ["Answer: 42 now"]
    assert frames[1].image == image("green") and not frames[1].targets
    assert len(with_answer(frames_with(tmp_path / "b", click), "42")) == 2


def test_a_run_without_step_pictures_uses_the_screens_of_its_computer(tmp_path: Path) -> None:
    screen = {"kind": "computer", "text": "clicked", "current_url": "http://s.test/"}
    facts = {"call_id": "", "acknowledged_safety_checks": [], "image": url("red")}
    [only] = frames_with(tmp_path, {**screen, **facts}, kind="screen")
    assert (only.caption, only.url, only.targets) == ("clicked", "http://s.test/", ())


@pytest.mark.parametrize(
    "bad", ["blob:nothing", "data:image/svg+xml;base64,AAAA", 7, "data:image/webp;base64,A"]
)
def test_a_picture_that_is_missing_gives_no_frame(tmp_path: Path, bad: Any) -> None:
    assert frames_with(tmp_path, {**picture("white"), "image": bad}) == []


def test_damaged_boxes_are_left_out(tmp_path: Path) -> None:
    targets = [[1, 2], "x", [1, 2, 3, None], [1, 2, -3, 4]]
    [only] = frames_with(tmp_path, picture("white", call=0, targets=targets))
    assert only.targets == ((1, 2, 0, 4),)


def test_the_target_is_marked_where_it_is() -> None:
    [drawn] = draw_frames([frame(image("white"), targets=((640.0, 360.0, 200.0, 100.0),))])
    scale = WIDTH / 1280
    middle = round(740 * scale)
    red, green, _ = drawn.getpixel((middle, round(360 * scale) - 2))
    assert red > 180 and green < 120
    assert drawn.getpixel((middle, round(410 * scale))) == (255, 255, 255)
    assert drawn.getpixel((100, 100)) == (255, 255, 255)


@pytest.mark.parametrize("box", [(640.0, 5000.0, 10.0, 10.0), (-900.0, 10.0, 5.0, 5.0)])
def test_a_target_out_of_view_is_an_arrow_at_the_edge(box: tuple[float, ...]) -> None:
    plain, marked = draw_frames([frame(image("white")), frame(image("white"), targets=(box,))])
    assert plain.tobytes() != marked.tobytes()


@pytest.mark.parametrize("box", [(0, 0, 1e9, 1e9), (-1e9, -1e9, 2e9, 2e9), (1e300, 1e300, 1, 1)])
def test_boxes_of_any_size_are_drawn(box: tuple[float, ...]) -> None:
    assert [*draw_frames([frame(image("white"), targets=(box,))])]


def test_pictures_of_several_sizes_give_frames_of_one_size() -> None:
    tall = io.BytesIO()
    Image.new("RGB", (400, 800), "red").save(tall, "PNG")
    sizes = {i.size for i in draw_frames([frame(image("white")), frame(tall.getvalue())])}
    assert len(sizes) == 1


def test_the_gif_has_a_frame_per_action_and_time_to_read() -> None:
    frames = [frame(image("white"), caption="x" * 100), frame(image("blue")), frame(image("red"))]
    colours, shown = [(255, 255, 255), (0, 0, 255), (255, 0, 0)], []
    with Image.open(io.BytesIO(gif_of(frames))) as gif:
        assert (gif.format, gif.n_frames, gif.info["loop"]) == ("GIF", 3, 0)
        for n, colour in enumerate(colours):
            gif.seek(n)
            shown.append(gif.info["duration"])
            pixel = gif.convert("RGB").getpixel((9, 9))
            assert all(abs(a - b) < 12 for a, b in zip(pixel, colour, strict=True))
    assert [abs(a - b) < 10 for a, b in zip(shown, durations(frames), strict=True)] == [True] * 3
    assert shown[0] > shown[1] and shown[2] >= 3000


def test_the_gif_keeps_the_colour_of_a_small_mark() -> None:
    gradient = io.BytesIO()
    Image.linear_gradient("L").resize((640, 360)).convert("RGB").save(gradient, "PNG")
    targets = ((600.0, 900.0, 10.0, 10.0),)
    with Image.open(io.BytesIO(gif_of([frame(gradient.getvalue(), targets=targets)]))) as gif:
        colours = [colour for _, colour in gif.convert("RGB").getcolors(1000) or []]
    assert any(red > 200 and blue < 60 for red, _, blue in colours)


def test_damaged_images_are_left_out_and_none_is_an_error() -> None:
    assert len([*draw_frames([frame(b"no image"), frame(image("white"))])]) == 1
    with pytest.raises(InputError, match="missing or damaged"):
        gif_of([frame(b"no image")])


def test_an_image_of_many_pixels_is_damaged_without_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = io.BytesIO()
    Image.new("1", (1200, 1200)).save(many, "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1_000_000)
    monkeypatch.setattr(drawing, "_MAX_PIXELS", 500_000)
    assert len([*draw_frames([frame(many.getvalue()), frame(image("white"))])]) == 1


def test_secrets_of_the_environment_are_masked_in_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "Help': now at")
    [only] = frames_with(tmp_path, picture("white", call=0, targets=[]))
    assert only.caption == "click [3] link '*** http://s.test/help"
    [*_, end] = with_answer([only], "Help': now at home")
    assert end.caption == "Answer: *** home"


def test_long_runs_keep_the_first_frames_and_the_last() -> None:
    frames = [frame(b"", caption=str(n)) for n in range(MAX_FRAMES + 5)]
    kept = limited(frames)
    assert len(kept) == MAX_FRAMES and kept[-1].caption == str(MAX_FRAMES + 4)
