"""Files that a client uploads: stored in the session's folder, and given to Chromium by path.

Chromium reads a file when a page asks for its bytes, so large uploads pass neither the DevTools
pipe nor Playwright's helper process.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path

from web_server.contract import UploadFile
from web_server.errors import BadRequest, NotFound, TooLarge
from web_server.session.downloads import Downloads
from web_server.view import one_line

MAX_BYTES = 500_000_000
"""Limit of all uploads of a session. They are kept: a page may read its files later."""
_MAX_NAME = 255  # bytes, the limit of common file systems
_CHUNK = 4_000_000  # characters of base64 to decode at once; a multiple of four


class Uploads:
    """The uploads of one session.

    Args:
        folder: where the files are stored; created with the first one.
        downloads: the session's downloads, which may be uploaded by their wire paths.
        max_bytes: size limit of all uploads together.
    """

    def __init__(self, folder: Path, downloads: Downloads, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._downloads = downloads
        self._max_bytes = max_bytes
        self._used = 0
        self._number = 0

    async def keep(self, files: Sequence[UploadFile | str]) -> list[Path]:
        """Store files, and return their paths in the same order.

        Args:
            files: contents, or paths of `downloaded_file_path`.

        Raises:
            BadRequest: a content is not base64.
            NotFound: the session has no download with a path.
            TooLarge: the uploads of the session exceed the limit.
        """
        return [
            await asyncio.to_thread(self._write, file)
            if isinstance(file, UploadFile)
            else self._download(file)
            for file in files
        ]

    def _download(self, wire_path: str) -> Path:
        path = self._downloads.find(wire_path)
        if path is None:
            asked = one_line(wire_path)[:60]
            raise NotFound(
                f"files: '{asked}' is not in downloaded_file_path, and the server reads no other "
                "path: send {name, buffer} with the content as base64"
            )
        return path

    def _write(self, file: UploadFile) -> Path:
        size = len(file.buffer) * 3 // 4
        if self._used + size > self._max_bytes:
            raise TooLarge(
                f"files: '{one_line(file.name)[:80]}' is too large: the uploads of one browser are "
                f"limited to {self._max_bytes:,} bytes together"
            )
        # Each file has a folder: several may have the same name.
        self._number += 1
        path = self._folder / str(self._number) / file_name(file.name)
        path.parent.mkdir(parents=True)
        self._used += size
        try:
            with path.open("wb") as out:
                for start in range(0, len(file.buffer), _CHUNK):
                    part = file.buffer[start : start + _CHUNK]
                    out.write(base64.b64decode(part, validate=True))
        except ValueError:  # from binascii, or for characters outside ASCII
            self._used -= size
            path.unlink()
            raise BadRequest(
                f"files: the buffer of '{one_line(file.name)[:60]}' is not base64"
            ) from None
        return path


def file_name(name: str) -> str:
    """Return a client's name for a file as one path component."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    last = "".join(letter for letter in last if letter.isprintable()).strip()
    if last in ("", ".", ".."):
        return "file"
    stem, dot, suffix = last.rpartition(".")
    if not stem or len(suffix) > 10:
        stem, dot, suffix = last, "", ""
    while len(f"{stem}{dot}{suffix}".encode()) > _MAX_NAME:
        stem = stem[:-1]
    return f"{stem}{dot}{suffix}"
