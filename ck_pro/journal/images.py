"""Images of a journal: in files of their own, named by the hash of their bytes.

A data URL of an image becomes a reference, `blob:<sha256>.<ext>`, and the file is on its place
before the line that names it. A text that only looks like a reference is written with `blob::`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ck_pro.exceptions import JournalError
from ck_pro.journal.packed import sync_folder

BLOBS_FOLDER = "blobs"
BLOB, ESCAPED = "blob:", "blob::"
"""How a reference to an image begins, and how a text that begins so is stored."""

_DATA_URL = re.compile(r"data:image/([a-z0-9.+-]+);base64,(.+)", re.DOTALL)
_BLOB_URL = re.compile(r"blob:([0-9a-f]{64}\.[a-z0-9.+-]+)")
_BLOB_NAME = re.compile(r"[0-9a-f]{64}\.[a-z0-9]+")


class ImageWriter:
    """Puts images into files.

    Args:
        folder: of the journal; None keeps nothing.
        sync: force files and their names to the disk.
    """

    def __init__(self, folder: Path | None, *, sync: bool):
        self._folder, self._sync = folder, sync

    def put(self, content: bytes, ext: str) -> str:
        """Store bytes once under their hash; returns `<sha256>.<ext>`.

        Raises:
            JournalError: they cannot be written; nothing of them is left.
        """
        name = f"{hashlib.sha256(content).hexdigest()}.{ext}"
        if self._folder is None:
            return name
        path = self._folder / BLOBS_FOLDER / name
        if _size(path) != len(content):  # without power, a file may have lost what was in it
            try:
                self._write(path, content)
            except OSError as e:
                raise JournalError(f"cannot write {path}: {e.strerror}") from None
        return name

    def taken_out(self, value: Any) -> Any:
        """`value` with every data URL of an image moved to a file."""
        if isinstance(value, str):
            if value.startswith(BLOB):  # a text that only looks like a reference
                return ESCAPED + value[len(BLOB) :]
            found = _DATA_URL.fullmatch(value) if value.startswith("data:image/") else None
            if found is None:
                return value
            content = _decoded(found[2])
            if content is None:
                return value
            return f"{BLOB}{self.put(content, found[1])}"
        if isinstance(value, dict):
            return {k: self.taken_out(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.taken_out(v) for v in value]
        return value

    def clear_partial(self) -> None:
        """Remove what a killed writer left half done."""
        if self._folder is not None:
            for partial in (self._folder / BLOBS_FOLDER).glob(".*"):
                partial.unlink()

    def _write(self, path: Path, content: bytes) -> None:
        partial = path.with_name(f".{path.name}.{threading.get_ident()}")
        path.parent.mkdir(exist_ok=True)
        try:
            with partial.open("wb") as file:
                file.write(content)
                if self._sync:
                    file.flush()
                    os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink()  # a full disk needs the room
            raise
        if self._sync:
            sync_folder(path.parent)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _decoded(text: str) -> bytes | None:
    """The bytes that a text stands for; None if they would not read back as the same text, as
    those of a data URL that somebody cut off."""
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return content if base64.b64encode(content).decode() == text else None


class BlobReader:
    """The blobs of a journal, by name.

    Args:
        folder: of the journal.
    """

    def __init__(self, folder: Path):
        self._blobs = folder / BLOBS_FOLDER

    def read(self, name: str) -> bytes | None:
        """Give the bytes under a name; None if they are missing, or are others by now."""
        if _BLOB_NAME.fullmatch(name) is None:
            return None
        try:
            content = (self._blobs / name).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == name.split(".", 1)[0] else None


class ImageReader:
    """The images of a journal as data URLs; equal ones are one object.

    Args:
        folder: of the journal.
        keep: hold them in memory.
    """

    def __init__(self, folder: Path, *, keep: bool = True):
        self._blobs = folder / BLOBS_FOLDER
        self._keep = keep
        self._urls: dict[str, str] = {}

    def put_back(self, value: Any) -> Any:
        """`value` with each reference to an image replaced by it.

        Raises:
            JournalError: its file cannot be read, or holds something else by now.
        """
        if isinstance(value, str):
            if value.startswith(ESCAPED):
                return BLOB + value[len(ESCAPED) :]
            found = _BLOB_URL.fullmatch(value) if value.startswith(BLOB) else None
            return value if found is None else self._url(found[1])
        if isinstance(value, dict):
            return {k: self.put_back(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.put_back(v) for v in value]
        return value

    def _url(self, name: str) -> str:
        known = self._urls.get(name)
        if known is not None:
            return known
        try:
            content = (self._blobs / name).read_bytes()
        except OSError as e:
            raise JournalError(f"cannot read {self._blobs / name}: {e.strerror}") from None
        digest, kind = name.split(".", 1)
        if hashlib.sha256(content).hexdigest() != digest:
            raise JournalError(f"{self._blobs / name} is damaged: its bytes are not those it had")
        url = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
        if self._keep:
            self._urls[name] = url
        return url
