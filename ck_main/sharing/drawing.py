"""Draw frames: the picture of the page, the target of the action, and a caption below."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ck_main.sharing.frames import Box, Frame
from ck_pro.exceptions import ConfigError, InputError

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

WIDTH = 720
_BAR = 62
_MARGIN = 10
_FONT, _SMALL_FONT = 15, 12
_LINES = 2
_ARROW = 22
_LINE = 5
"""Width of the line around a target with its pale edges, in pixels."""
_SMALLEST = 24
"""Smallest side of a mark in pixels."""
_INK, _PALE, _GROUND = (250, 250, 250), (176, 190, 204), (22, 28, 38)
_TARGET, _FAILED, _HALO = (230, 69, 20), (214, 40, 57), (255, 255, 255)
MARK_COLOURS = (_TARGET, _FAILED, _HALO)
_FONTS = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "Arial.ttf", "Helvetica.ttc")
_FORMATS = ("WEBP", "PNG", "JPEG", "GIF")
_MAX_PIXELS = 40_000_000


def require_pillow() -> None:
    """Check that Pillow is installed.

    Raises:
        ConfigError: it is missing; the message says how to install it.
    """
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise ConfigError('pictures need the package Pillow: pip install "ck-pro[web]"') from None


def readable(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames whose image can be read.

    Raises:
        InputError: there are none.
    """
    found = [frame for frame in frames if _opened(frame.image) is not None]
    if not found:
        raise InputError("the pictures of this run are missing or damaged")
    return found


def draw_frames(frames: Sequence[Frame]) -> Iterator[Image]:
    """Yield the frames as images of one size; see `readable`."""
    height = max(map(_height, frames), default=0)
    for frame in frames:
        picture = _opened(frame.image)
        if picture is not None:
            yield _drawn(frame, picture, height)


def _height(frame: Frame) -> int:
    """Return the height of a frame's picture, from the head of its image; 0 if it is damaged."""
    try:
        with _source(frame.image) as source:
            return _scaled_height(source.width, source.height)
    except _damage():
        return 0


def _scaled_height(width: int, height: int) -> int:
    return max(1, min(2 * WIDTH, round(height * WIDTH / width)))


def _opened(data: bytes) -> Image | None:
    """Return an image, scaled to the width of frames; None if it is damaged or too large."""
    from PIL import Image

    try:
        with _source(data) as source:
            picture = source.convert("RGB")
    except _damage():
        return None
    size = (WIDTH, _scaled_height(picture.width, picture.height))
    scaled: Image.Image = picture.resize(size, Image.Resampling.LANCZOS)
    return scaled


def _source(data: bytes) -> Image:
    """Open an image; its pixels are read later.

    Raises:
        ValueError: it has too many pixels.
    """
    from PIL import Image

    with warnings.catch_warnings():  # the limit below is lower than that of Pillow's warning
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        source = Image.open(io.BytesIO(data), formats=_FORMATS)
    if source.width * source.height > _MAX_PIXELS:
        raise ValueError("too many pixels")
    return source


def _damage() -> tuple[type[Exception], ...]:
    """Return the errors of damaged or too large images."""
    from PIL import Image

    return (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


def _drawn(frame: Frame, picture: Image, height: int) -> Image:
    from PIL import Image, ImageDraw

    canvas = Image.new("RGB", (WIDTH, height + _BAR), _GROUND)
    colour = _FAILED if frame.failed else _TARGET
    if frame.width > 0 and frame.height > 0:
        draw = ImageDraw.Draw(picture)
        scale_x, scale_y = picture.width / frame.width, picture.height / frame.height
        for x, y, width, height_ in frame.targets:
            box = (x * scale_x, y * scale_y, width * scale_x, height_ * scale_y)
            _mark(draw, box, picture.width, picture.height, colour)
    canvas.paste(picture, (0, 0))
    _write(ImageDraw.Draw(canvas), frame, height)
    return canvas


def _mark(draw: ImageDraw, box: Box, width: int, height: int, colour: tuple[int, int, int]) -> None:
    """Mark a target: a rectangle, a ring around a point, or an arrow at the edge towards it."""
    x, y, w, h = box
    if y >= height or y + h < 0 or x >= width or x + w < 0:
        _point_outside(draw, (x + w / 2, y + h / 2), width, height, colour)
        return
    if w < 1 or h < 1:
        for radius, ink, line in ((13, _HALO, 6), (13, colour, 3)):
            place = (x - radius, y - radius, x + radius, y + radius)
            draw.ellipse(place, outline=ink, width=line)
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=colour)
        return
    # outlines are drawn inwards: the lines stay outside of the target
    pad_x, pad_y = max(_LINE + 1.0, (_SMALLEST - w) / 2), max(_LINE + 1.0, (_SMALLEST - h) / 2)
    left, top = max(1.0, x - pad_x), max(1.0, y - pad_y)
    right, bottom = min(width - 2.0, x + w + pad_x), min(height - 2.0, y + h + pad_y)
    right, bottom = max(left + 4, right), max(top + 4, bottom)
    draw.rounded_rectangle((left, top, right, bottom), radius=6, outline=_HALO, width=_LINE)
    inner = (left + 1, top + 1, right - 1, bottom - 1)
    draw.rounded_rectangle(inner, radius=5, outline=colour, width=_LINE - 2)


def _point_outside(
    draw: ImageDraw,
    point: tuple[float, float],
    width: int,
    height: int,
    colour: tuple[int, int, int],
) -> None:
    x, y = min(max(point[0], _ARROW), width - _ARROW), min(max(point[1], _ARROW), height - _ARROW)
    dx = (point[0] > width) - (point[0] < 0)
    dy = (point[1] > height) - (point[1] < 0)
    size = _ARROW / 2
    tip = (x + 1.6 * size * dx, y + 1.6 * size * dy)
    back = (x - size * dx, y - size * dy)
    side = (1.3 * size * dy, 1.3 * size * dx)
    wings = ((back[0] - side[0], back[1] - side[1]), (back[0] + side[0], back[1] + side[1]))
    draw.polygon([tip, *wings], fill=colour, outline=_HALO, width=3)


def _write(draw: ImageDraw, frame: Frame, top: int) -> None:
    """Write step, agent and address in one line, and the caption below it."""
    small, font = _font(_SMALL_FONT), _font(_FONT)
    space = WIDTH - 2 * _MARGIN
    head = " · ".join(filter(None, [f"Step {frame.step}", frame.agent, frame.url]))
    draw.text((_MARGIN, top + 5), _cut(draw, head, small, space), font=small, fill=_PALE)
    for n, line in enumerate(_wrapped(draw, frame.caption, font, space)):
        draw.text((_MARGIN, top + 21 + 19 * n), line, font=font, fill=_INK)


def _font(size: int) -> FreeTypeFont | ImageFont:
    from PIL import ImageFont

    for name in _FONTS:
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def _cut(draw: ImageDraw, text: str, font: FreeTypeFont | ImageFont, space: float) -> str:
    """Return the text, shortened with an ellipsis to a width in pixels."""
    if draw.textlength(text, font=font) <= space:
        return text
    while text and draw.textlength(text + "…", font=font) > space:
        text = text[:-1]
    return text + "…"


def _wrapped(draw: ImageDraw, text: str, font: FreeTypeFont | ImageFont, space: float) -> list[str]:
    """Break text into at most two lines; the second one is shortened."""
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < _LINES - 1:
        line = words.pop(0)
        while words and draw.textlength(f"{line} {words[0]}", font=font) <= space:
            line += f" {words.pop(0)}"
        lines.append(_cut(draw, line, font, space))
    return [*lines, _cut(draw, " ".join(words), font, space)] if words else lines
