"""Files that a client sends for upload: written to the session's own folder, given by path.

Chromium reads a file by itself when a page asks for its bytes, so a large upload passes neither
the DevTools pipe nor the browser library's helper process.
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
"""So much may all uploads of one session take: a page may read its files at any later time."""
_MAX_NAME = 255  # bytes, of all file systems that count
_STEP = 4_000_000  # characters of base64 that are decoded at once; a multiple of four


class Uploads:
    """What one session uploaded, until its end.

    Args:
        folder: where the files are kept; made with the first one.
        downloads: of the session, which may be uploaded again by their wire paths.
        max_bytes: how much all files together may take.
    """

    def __init__(self, folder: Path, downloads: Downloads, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._downloads = downloads
        self._max_bytes = max_bytes
        self._taken = 0
        self._number = 0

    async def keep(self, files: Sequence[UploadFile | str]) -> list[Path]:
        """Where the files are now, in their order.

        Args:
            files: contents that were sent along, or paths of `downloaded_file_path`.

        Raises:
            BadRequest: a content is not base64.
            NotFound: a path is not that of a download of this session.
            TooLarge: the session has uploaded too much.
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
                f"files: '{asked}' is none of downloaded_file_path, and no other path is read: "
                "send {name, buffer} with the content as base64"
            )
        return path

    def _write(self, file: UploadFile) -> Path:
        size = len(file.buffer) * 3 // 4
        if self._taken + size > self._max_bytes:
            raise TooLarge(
                f"files: the uploads of one browser may take {self._max_bytes:,} bytes together: "
                f"'{file.name[:80]}' is one too many"
            )
        # A folder for each file: several may have the same name.
        self._number += 1
        path = self._folder / str(self._number) / file_name(file.name)
        path.parent.mkdir(parents=True)
        self._taken += size
        try:
            with path.open("wb") as out:
                for start in range(0, len(file.buffer), _STEP):
                    part = file.buffer[start : start + _STEP]
                    out.write(base64.b64decode(part, validate=True))
        except ValueError:  # binascii's own, and characters beyond ASCII
            self._taken -= size
            path.unlink()
            raise BadRequest(
                f"files: the buffer of '{one_line(file.name)[:60]}' is not base64"
            ) from None
        return path


def file_name(name: str) -> str:
    """A client's name for a file as one path component, otherwise as it is."""
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
