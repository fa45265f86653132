"""`Framebuffer`: the screen of Xvfb, read from its memory-mapped file.

Source of the format: X11/XWDFile.h (X Window Dump, version 7).
"""

from __future__ import annotations

import mmap
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from ck_pro.exceptions import EnvironmentFailure

if TYPE_CHECKING:
    from PIL.Image import Image

_HEADER = struct.Struct(">25I")
_VERSION = 7
_COLOR_SIZE = 12


class Framebuffer:
    """The pixels of an X server started with `-fbdir`.

    Args:
        path: the server's file, `Xvfb_screen0`.

    Attributes:
        width, height: of the screen in pixels.

    Raises:
        EnvironmentFailure: the file is not a framebuffer of 32 bits per pixel.
    """

    def __init__(self, path: Path):
        with path.open("rb") as file:
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        fields = _HEADER.unpack_from(self._memory)
        size, version, _, _, self.width, self.height = fields[:6]
        bits, self._stride, colors = fields[11], fields[12], fields[19]
        if version != _VERSION or bits != 32:
            raise EnvironmentFailure(f"{path} is not a framebuffer of 32 bits per pixel")
        self._start = size + colors * _COLOR_SIZE

    def image(self) -> Image:
        """Return the current screen."""
        from PIL import Image

        pixels = self._pixels()
        size = (self.width, self.height)
        return Image.frombuffer("RGB", size, pixels, "raw", "BGRX", self._stride, 1).copy()

    def checksum(self) -> int:
        """Return a number that changes with the screen."""
        return zlib.crc32(self._pixels())

    def close(self) -> None:
        """Release the memory."""
        self._memory.close()

    def _pixels(self) -> bytes:
        return self._memory[self._start : self._start + self._stride * self.height]
