"""Where the labels of marks are placed, and which elements get a mark."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageDraw

from web_server.observe import marks
from web_server.observe.marks import Box, draw_marks


def screen(*icons: tuple[int, int, int, int]) -> Image.Image:
    """A white screen with crossed squares."""
    image = Image.new("RGB", (300, 200), "white")
    draw = ImageDraw.Draw(image)
    for left, top, right, bottom in icons:
        draw.line((left, top, right, bottom), fill="black", width=2)
        draw.line((left, bottom, right, top), fill="black", width=2)
    return image


def drawn(image: Image.Image, boxes: list[Box]) -> Image.Image:
    out = io.BytesIO()
    image.save(out, "PNG")
    return Image.open(io.BytesIO(draw_marks(out.getvalue(), boxes, "png"))).convert("RGB")


def differs(image: Image.Image, marked: Image.Image, area: Any) -> bool:
    return ImageChops.difference(image.crop(area), marked.crop(area)).getbbox() is not None


def test_a_label_covers_neither_its_icon_nor_its_neighbours() -> None:
    icons = [(100 + 30 * n, 80, 119 + 30 * n, 99) for n in range(4)]
    image = screen(*icons)
    boxes = [Box(10 + n, left, top, 20, 20) for n, (left, top, *_) in enumerate(icons)]
    marked = drawn(image, boxes)
    for left, top, right, bottom in icons:
        assert not differs(image, marked, (left + 1, top + 1, right, bottom))
    assert differs(image, marked, (90, 60, 220, 80)) or differs(image, marked, (90, 101, 220, 120))


def test_labels_do_not_cover_each_other() -> None:
    image = screen((100, 80, 119, 99), (120, 80, 139, 99))
    places: list[Any] = []
    place = marks.label_place

    def recorded(*given: Any) -> Any:
        places.append(place(*given))
        return places[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marks, "label_place", recorded)
        drawn(image, [Box(101, 100, 80, 20, 20), Box(102, 120, 80, 20, 20)])
    (a, b) = places
    assert min(a[2], b[2]) <= max(a[0], b[0]) or min(a[3], b[3]) <= max(a[1], b[1])


def test_an_invisible_handle_gets_no_mark_but_an_empty_canvas_does() -> None:
    image = screen((100, 80, 119, 99))
    handle, icon, canvas = Box(1, 10, 10, 8, 8), Box(2, 100, 80, 20, 20), Box(3, 150, 120, 100, 60)
    marked = drawn(image, [handle, icon, canvas])
    assert not differs(image, marked, (0, 0, 60, 40))
    assert differs(image, marked, (90, 60, 130, 120)) and differs(
        image, marked, (150, 120, 250, 180)
    )


def test_a_label_inside_a_large_box_is_allowed_at_the_edge_of_the_image() -> None:
    image = screen()
    marked = drawn(image, [Box(5, 0, 0, 300, 200)])
    assert differs(image, marked, (0, 0, 300, 200))


def test_boxes_scale_with_the_picture() -> None:
    assert Box(1, 10, 20, 30, 40).scaled(0.5) == Box(1, 5, 10, 15, 20)
