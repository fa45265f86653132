"""Set-of-marks: boxes with ids drawn on a screenshot, outside the page."""

from __future__ import annotations

import io
from dataclasses import dataclass

_COLORS = ("#d7263d", "#1b7f5c", "#1f5fbf", "#b35c00", "#7a2fb5", "#00798c")
_FORMATS = {"png": "PNG", "jpeg": "JPEG"}


@dataclass(frozen=True, slots=True)
class Box:
    """The box of an element, in CSS pixels of the main frame's viewport."""

    id: int
    x: int
    y: int
    width: int
    height: int


def draw_marks(image: bytes, boxes: list[Box], image_format: str) -> bytes:
    """Draw a numbered box around each element of a screenshot.

    Args:
        image: the encoded screenshot, one image pixel per CSS pixel.
        boxes: the boxes; parts outside the image are left out.
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
    font = ImageFont.load_default(12)
    for box in boxes:
        color = _COLORS[box.id % len(_COLORS)]
        right = min(box.x + box.width, canvas.width - 1)
        bottom = min(box.y + box.height, canvas.height - 1)
        left, top = max(box.x, 0), max(box.y, 0)
        if right <= left or bottom <= top:
            continue
        draw.rectangle((left, top, right, bottom), outline=color, width=2)
        label = str(box.id)
        width = int(draw.textlength(label, font=font)) + 4
        # Above the box if there is room, so that the label hides little of it.
        label_top = top - 14 if top >= 14 else top
        label_left = min(left, canvas.width - width)
        draw.rectangle((label_left, label_top, label_left + width, label_top + 14), fill=color)
        draw.text((label_left + 2, label_top), label, fill="white", font=font)
    encoded = io.BytesIO()
    if image_format == "jpeg":
        canvas.save(encoded, "JPEG", quality=80)
    else:
        canvas.save(encoded, "PNG", compress_level=1)
    return encoded.getvalue()
