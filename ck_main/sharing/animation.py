"""Write frames as an animated GIF."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ck_main.sharing.drawing import draw_frames
from ck_main.sharing.frames import Frame
from ck_pro.exceptions import InputError

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
    images = drawn(frames)
    reduced = [_reduced(image) for image in images]
    out = io.BytesIO()
    reduced[0].save(
        out,
        "GIF",
        save_all=True,
        append_images=reduced[1:],
        duration=durations(frames)[: len(reduced)],
        loop=0,
        optimize=False,
    )
    return out.getvalue()


def drawn(frames: list[Frame]) -> list[Image]:
    """Return the frames as images.

    Raises:
        InputError: there is none with a readable image.
    """
    images = draw_frames(frames)
    if not images:
        raise InputError("the pictures of this run are missing or damaged")
    return images


def _reduced(image: Image) -> Image:
    from PIL import Image as images

    return image.quantize(_COLOURS, method=images.Quantize.MEDIANCUT, dither=images.Dither.NONE)
