"""Takes members out of archives within limits: size, ratio, number, and names that stay inside."""

from __future__ import annotations

import contextlib
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from .limits import MAX_MEMBERS, MAX_RATIO, MAX_UNPACKED
from .problem import ToolError

_FREE = 10 << 20
_CHUNK = 1 << 20
_XML_START = 4096
_left = [MAX_UNPACKED]
"""Bytes that may still be unpacked; each call runs in another process (`in_child`)."""


@contextlib.contextmanager
def at_most(size: int) -> Iterator[None]:
    """Let `save` unpack at most so many bytes, and not count them afterwards."""
    before = _left[0]
    _left[0] = min(before, size)
    try:
        yield
    finally:
        _left[0] = before


def save(source: IO[bytes], name: str, packed: int) -> Path:
    """Write one member into a new temporary folder.

    Args:
        source: of its bytes.
        name: of the member; only its last component is used.
        packed: its packed size in bytes; 0 if unknown.

    Raises:
        ToolError: it unpacks to more than the limits.
    """
    plain = PurePosixPath(name.replace("\\", "/")).name or "member"
    target = Path(tempfile.mkdtemp(prefix="member-")) / plain[-120:]
    size = 0
    with target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            check_size(name, size, packed)
            _left[0] -= len(chunk)
            if _left[0] < 0:
                raise ToolError(f"{name!r} unpacks to more than the limit of this call")
            file.write(chunk)
    return target


def check_size(name: str, size: int, packed: int) -> None:
    """Raise a `ToolError` if so many bytes from so few packed ones are a bomb."""
    if size > MAX_UNPACKED:
        raise ToolError(f"{name!r} unpacks to more than {MAX_UNPACKED >> 20} MB")
    if packed and size > _FREE and size > packed * MAX_RATIO:
        raise ToolError(f"{name!r} unpacks to more than {MAX_RATIO} times its size: a bomb")


def check_office_zip(path: Path) -> None:
    """Check a ZIP of XML files before a library reads all of it.

    Raises:
        ToolError: it is damaged, unpacks to too much, or declares XML entities.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise ToolError(f"it has more than {MAX_MEMBERS:,} members")
            for info in members:
                check_size(info.filename, info.file_size, info.compress_size)
            check_size(path.name, sum(info.file_size for info in members), 0)
            for info in members:
                if info.filename.endswith((".xml", ".rels")) and not info.flag_bits & 1:
                    with archive.open(info) as file:
                        if b"<!DOCTYPE" in file.read(_XML_START):
                            raise ToolError(f"{info.filename!r} declares XML entities: refused")
    except (zipfile.BadZipFile, EOFError) as error:
        raise ToolError(f"the file is damaged: {error}") from None
