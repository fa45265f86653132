"""Write frames as an animated GIF."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ck_main.sharing.drawing import MARK_COLOURS, draw_frames, readable
from ck_main.sharing.frames import Frame

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_FRAMES = 300
"""Limit for the frames of one file; the first ones and the last one stay."""
_SHOW_MS, _CHAR_MS, _END_MS = 900, 14, 3500
_COLOURS = 160


def limited(frames: list[Frame]) -> list[Frame]:
    """Return at most `MAX_FRAMES` frames: the first ones, and the last one."""
    return frames if len(frames) <= MAX_FRAMES else [*frames[: MAX_FRAMES - 1], frames[-1]]


def durations(frames: list[Frame]) -> list[int]:
    """Return how long each frame is shown, in milliseconds: time to read its caption."""
    times = [_SHOW_MS + _CHAR_MS * len(frame.caption) for frame in frames]
    return [*times[:-1], max(times[-1], _END_MS)]


def gif_of(frames: list[Frame]) -> bytes:
    """Return an animated GIF.

    Raises:
        InputError: no frame has a readable image.
    """
    frames = readable(frames)
    reduced = (_reduced(image) for image in draw_frames(frames))
    out = io.BytesIO()
    next(reduced).save(
        out,
        "GIF",
        save_all=True,
        append_images=reduced,
        duration=durations(frames),
        loop=0,
        optimize=False,
    )
    return out.getvalue()


def _reduced(image: Image) -> Image:
    """Return an image with a palette, which always has the colours of the marks."""
    from PIL import Image as images

    common = image.quantize(_COLOURS, method=images.Quantize.MEDIANCUT)
    palette = images.new("P", (1, 1))
    palette.putpalette([*(common.getpalette() or [])[: 3 * _COLOURS], *sum(MARK_COLOURS, ())])
    return image.quantize(palette=palette, dither=images.Dither.NONE)
