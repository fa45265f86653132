"""Set-of-marks: boxes with ids drawn on a screenshot, outside the page.

A label is placed where it hides the least: the flattest free place at the edge of its box, outside
the other boxes and labels. An element without any visible part gets no mark.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

_COLORS = ("#d7263d", "#1b7f5c", "#1f5fbf", "#b35c00", "#7a2fb5", "#00798c")
_FORMATS = {"png": "PNG", "jpeg": "JPEG"}
_FONT_SIZE = 11
_LABEL_HEIGHT = 10
_CELL = 4  # resolution of the map of visible content, in pixels
_FLAT = 12  # differences of brightness that are not visible content
_MAX_HANDLE = 30  # a larger box without content may be an empty canvas, which has a use
_OTHER_BOX, _OTHER_LABEL, _OWN_CONTENT = 2.0, 40.0, 3.0

Rectangle = tuple[int, int, int, int]
"""Left, top, right and bottom, in pixels; right and bottom are exclusive."""


@dataclass(frozen=True, slots=True)
class Box:
    """The box of an element, in CSS pixels of the main frame's viewport."""

    id: int
    x: int
    y: int
    width: int
    height: int

    def scaled(self, factor: float) -> Box:
        """Return the box in a picture that is scaled by a factor."""
        if factor == 1:
            return self
        sides = (round(side * factor) for side in (self.x, self.y, self.width, self.height))
        return Box(self.id, *sides)


def draw_marks(image: bytes, boxes: list[Box], image_format: str) -> bytes:
    """Draw a numbered box around each visible element of a screenshot.

    Args:
        image: the encoded screenshot.
        boxes: the boxes in pixels of the screenshot; parts outside the image are left out.
        image_format: "png" or "jpeg", for the result.

    Raises:
        ValueError: unknown format.
    """
    from PIL import Image, ImageDraw, ImageFont

    if image_format not in _FORMATS:
        raise ValueError(f"image format {image_format!r}: use 'png' or 'jpeg'")
    with Image.open(io.BytesIO(image)) as source:
        canvas = source.convert("RGB")
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(_FONT_SIZE)
    content = ContentMap(canvas)
    areas = {box.id: area for box in boxes if (area := _clipped(box, canvas)) is not None}
    areas = {n: area for n, area in areas.items() if content.shows(area)}
    labels: list[Rectangle] = []
    for number, area in areas.items():
        color = _COLORS[number % len(_COLORS)]
        left, top, right, bottom = area
        draw.rectangle((left, top, right - 1, bottom - 1), outline=color, width=1)
        size = (round(draw.textlength(str(number), font=font)) + 3, _LABEL_HEIGHT)
        reach = (left - size[0], top - size[1], right + size[0], bottom + size[1])
        others = [o for n, o in areas.items() if n != number and _overlap(o, reach)]
        near = [label for label in labels if _overlap(label, reach)]
        labels.append(label_place(area, size, canvas.size, content, others, near))
    for (number, _), place in zip(areas.items(), labels, strict=True):
        left, top, right, bottom = place
        draw.rectangle((left, top, right - 1, bottom - 1), fill=_COLORS[number % len(_COLORS)])
        draw.text((left + 2, (top + bottom) / 2), str(number), "white", font, anchor="lm")
    return _encoded(canvas, image_format)


class ContentMap:
    """How much visible content each part of an image has.

    Args:
        image: the screenshot without marks.
    """

    def __init__(self, image: Image):
        from PIL import ImageFilter

        edges = image.convert("L").filter(ImageFilter.FIND_EDGES)
        # the filter copies the outermost pixels, which are not edges
        edges.paste(0, (0, 0, edges.width, 1))
        edges.paste(0, (0, 0, 1, edges.height))
        edges.paste(0, (0, edges.height - 1, edges.width, edges.height))
        edges.paste(0, (edges.width - 1, 0, edges.width, edges.height))
        self._edges = edges.point(lambda level: 255 * (level > _FLAT))
        small = self._edges.reduce(_CELL)
        self._columns, self._levels = small.width, small.tobytes()
        self._rows = small.height

    def shows(self, area: Rectangle) -> bool:
        """Whether an element of this area is visible, or too large for an invisible handle."""
        left, top, right, bottom = area
        if min(right - left, bottom - top) > _MAX_HANDLE:
            return True
        return self._edges.crop(area).getbbox() is not None

    def within(self, area: Rectangle) -> float:
        """Return the share of an area that has content, from 0 to 1."""
        left, top, right, bottom = area
        columns = range(left // _CELL, min((right - 1) // _CELL + 1, self._columns))
        rows = range(top // _CELL, min((bottom - 1) // _CELL + 1, self._rows))
        if not columns or not rows:
            return 0.0
        levels = (self._levels[row * self._columns + column] for row in rows for column in columns)
        return sum(levels) / (255 * len(columns) * len(rows))


def label_place(
    area: Rectangle,
    size: tuple[int, int],
    canvas: tuple[int, int],
    content: ContentMap,
    others: list[Rectangle],
    labels: list[Rectangle],
) -> Rectangle:
    """Return where the label of a box hides the least.

    Args:
        area: the box.
        size: width and height of the label.
        canvas: width and height of the image.
        content: of the image.
        others: the boxes of the other elements.
        labels: the labels so far.
    """
    # a box around this one is not beside it
    beside = [other for other in others if not _contains(other, area)]

    def cost(place: Rectangle) -> float:
        whole = _size(place)
        own = _overlap(place, area) / whole
        covered = max((_overlap(place, other) / whole for other in beside), default=0.0)
        labelled = sum(_overlap(place, label) for label in labels) / whole
        hidden = content.within(place) * (1 + _OWN_CONTENT * own)
        return hidden + _OTHER_BOX * covered + _OTHER_LABEL * labelled

    return min(_candidates(area, size, canvas), key=cost)


def _candidates(
    area: Rectangle, size: tuple[int, int], canvas: tuple[int, int]
) -> Iterator[Rectangle]:
    """Yield places for a label inside the image: around the box, then within its corners."""
    left, top, right, bottom = area
    width, height = size
    across = sorted({left, right - width, (left + right - width) // 2})
    down = sorted({top, bottom - height, (top + bottom - height) // 2})
    places = [
        *((x, top - height) for x in across),
        *((x, bottom) for x in across),
        *((x, y) for x in (left - width, right) for y in down),
        *((x, y) for x in (left, right - width) for y in (top, bottom - height)),
    ]
    for x, y in places:
        x = min(max(0, x), max(0, canvas[0] - width))
        y = min(max(0, y), max(0, canvas[1] - height))
        yield x, y, x + width, y + height


def _clipped(box: Box, image: Image) -> Rectangle | None:
    """Return the part of a box that is inside the image; None if there is none."""
    left, top = max(box.x, 0), max(box.y, 0)
    right, bottom = min(box.x + box.width, image.width), min(box.y + box.height, image.height)
    return (left, top, right, bottom) if right > left and bottom > top else None


def _overlap(a: Rectangle, b: Rectangle) -> int:
    """Return the common area of two rectangles in square pixels."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(0, width) * max(0, height)


def _contains(outer: Rectangle, inner: Rectangle) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and outer[2] >= inner[2]
        and outer[3] >= inner[3]
    )


def _size(area: Rectangle) -> int:
    return max(1, (area[2] - area[0]) * (area[3] - area[1]))


def _encoded(canvas: Image, image_format: str) -> bytes:
    out = io.BytesIO()
    if image_format == "jpeg":
        canvas.save(out, "JPEG", quality=80)
    else:
        canvas.save(out, "PNG", compress_level=1)
    return out.getvalue()
