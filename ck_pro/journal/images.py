"""Store the images of a journal in separate files, named by the hash of their bytes.

The writer replaces an image's data URL with a reference, `blob:<sha256>.<ext>`, and writes the file
before the line that refers to it. It escapes other texts that start with `blob:` as `blob::`.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ck_pro.exceptions import JournalError
from ck_pro.journal.packed import sync_folder

BLOBS_FOLDER = "blobs"
MAX_BYTES = 256 * 2**20
"""Limit for a stored file that is read."""
BLOB, ESCAPED = "blob:", "blob::"
"""Prefix of a reference to an image, and of an escaped text."""

MAY_HAVE_IMAGES = re.compile(f'"(?:data:image/|{BLOB})')
"""Matches JSON text with values that `ImageWriter.encode` may change."""
_DATA_URL = re.compile(r"data:image/([a-z0-9.+-]+);base64,(.+)", re.DOTALL)
_BLOB_URL = re.compile(r"blob:([0-9a-f]{64}\.[a-z0-9.+-]+)")
_BLOB_NAME = re.compile(r"[0-9a-f]{64}\.[a-z0-9]+")


class ImageWriter:
    """Write images to files.

    Args:
        folder: of the journal; None writes nothing.
        sync: whether to call `fsync` on files and their folder.
    """

    def __init__(self, folder: Path | None, *, sync: bool):
        self._folder, self._sync = folder, sync

    def put(self, content: bytes, ext: str) -> str:
        """Store bytes once under their hash; return `<sha256>.<ext>`.

        Raises:
            JournalError: the file cannot be written; a partial file is removed.
        """
        name = f"{hashlib.sha256(content).hexdigest()}.{ext}"
        if self._folder is None:
            return name
        path = self._folder / BLOBS_FOLDER / name
        if _size(path) != len(content):  # a power failure may have truncated the file
            try:
                self._write(path, content)
            except OSError as e:
                raise JournalError(f"cannot write {path}: {e.strerror}") from None
        return name

    def encode(self, value: Any) -> Any:
        """Return `value` with each image's data URL replaced by a reference to a file."""
        if isinstance(value, str):
            if value.startswith(BLOB):
                return ESCAPED + value[len(BLOB) :]
            found = _DATA_URL.fullmatch(value) if value.startswith("data:image/") else None
            if found is None:
                return value
            content = _decoded(found[2])
            if content is None:
                return value
            return f"{BLOB}{self.put(content, found[1])}"
        if isinstance(value, dict):
            return {k: self.encode(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.encode(v) for v in value]
        return value

    def clear_partial(self) -> None:
        """Remove the partial files of a killed writer."""
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
                partial.unlink()  # free the space on a full disk
            raise
        if self._sync:
            sync_folder(path.parent)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _decoded(text: str) -> bytes | None:
    """Decode base64; return None if the bytes would not encode to the same text.

    A truncated data URL is such a text.
    """
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return content if base64.b64encode(content).decode() == text else None


def _content(path: Path) -> bytes:
    """Read a stored file. Folders that others made may contain pipes and devices instead.

    Raises:
        OSError: it cannot be read, is not a file, or is too large.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        if facts.st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it has more than {MAX_BYTES:,} bytes")
        return file.read()


class BlobReader:
    """The blobs of a journal, by name.

    Args:
        folder: of the journal.
    """

    def __init__(self, folder: Path):
        self._blobs = folder / BLOBS_FOLDER

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a blob; None if they are missing or have changed."""
        if _BLOB_NAME.fullmatch(name) is None:
            return None
        try:
            content = _content(self._blobs / name)
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == name.split(".", 1)[0] else None


class ImageReader:
    """Load the images of a journal as data URLs; equal images are the same string object.

    Args:
        folder: of the journal.
        keep: whether to cache them in memory.
    """

    def __init__(self, folder: Path, *, keep: bool = True):
        self._blobs = folder / BLOBS_FOLDER
        self._keep = keep
        self._urls: dict[str, str] = {}

    def decode(self, value: Any) -> Any:
        """Return `value` with each reference replaced by the image's data URL.

        Raises:
            JournalError: the file cannot be read, or its bytes have changed.
        """
        if isinstance(value, str):
            if value.startswith(ESCAPED):
                return BLOB + value[len(ESCAPED) :]
            found = _BLOB_URL.fullmatch(value) if value.startswith(BLOB) else None
            return value if found is None else self._url(found[1])
        if isinstance(value, dict):
            return {k: self.decode(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.decode(v) for v in value]
        return value

    def _url(self, name: str) -> str:
        known = self._urls.get(name)
        if known is not None:
            return known
        try:
            content = _content(self._blobs / name)
        except OSError as e:
            raise JournalError(f"cannot read {self._blobs / name}: {e.strerror}") from None
        digest, kind = name.split(".", 1)
        if hashlib.sha256(content).hexdigest() != digest:
            raise JournalError(f"{self._blobs / name} is damaged: its bytes have changed")
        url = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
        if self._keep:
            self._urls[name] = url
        return url
