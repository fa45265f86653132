"""Read and write files in a run's working directory, where model-written code also writes.

The code may create links that lead elsewhere, and change them at any moment. So a path is opened
folder by folder from an open directory, and links are never followed.
"""

from __future__ import annotations

import base64
import contextlib
import mimetypes
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from ck_pro.exceptions import ToolError

_MAX_NAME = 120
_MAX_UPLOAD = 50_000_000  # bytes; the server accepts no more


def safe_name(name: str, default: str = "download") -> str:
    """Sanitize a file name from a web site: no folders, no leading dot.

    Letters of any script, digits, spaces and `-_.,+()@=` stay. Other characters become `_`.
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = re.sub(r"[^\w \-.,+()@=]", "_", last).strip(" .")
    stem, dot, suffix = plain.rpartition(".")
    if not stem or len(suffix) > 20:
        stem, dot, suffix = plain, "", ""
    # the limit is in bytes, and a letter may have four
    while len((stem + dot + suffix).encode()) > _MAX_NAME:
        stem = stem[:-1]
    return stem + dot + suffix or default


def write_inside(root: Path, relative: str, data: bytes, *, unique: bool = False) -> str:
    """Write a file under `root`, with its folders.

    Args:
        root: the working directory.
        relative: path below it; an absolute path must be below it too.
        data: the content.
        unique: choose another name (`x-2.csv`) if the file exists, instead of replacing it.

    Returns:
        The path of the file, relative to `root`, with slashes.

    Raises:
        ToolError: the path leads out of the working directory or cannot be written.
    """
    parts = _parts(root, relative)
    try:
        with _folder(root, parts[:-1]) as folder:
            write = _create_unique if unique else _replace
            name = write(folder, parts[-1], data)
    except OSError as e:
        raise ToolError(f"cannot write {relative!r}: {e.strerror or e}") from None
    return "/".join([*parts[:-1], name])


def check_writable(root: Path, relative: str) -> None:
    """Check a path for `write_inside`, before the content is fetched.

    Raises:
        ToolError: the path leads out of the working directory.
    """
    _parts(root, relative)


def read_inside(root: Path, relative: str, limit: int) -> bytes:
    """Return the content of a file under `root`.

    Args:
        root: the working directory.
        relative: path below it; an absolute path must be below it too.
        limit: maximum number of bytes.

    Raises:
        ToolError: the path leads out of the working directory, or cannot be read as a file.
    """
    parts = _parts(root, relative)
    # O_NONBLOCK: opening a named pipe must not block
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with (
            _folder(root, parts[:-1], make=False) as folder,
            os.fdopen(os.open(parts[-1], flags, dir_fd=folder), "rb") as file,
        ):
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise ToolError(f"{relative!r} is not a plain file")
            data = file.read(limit + 1)
    except OSError as e:
        raise ToolError(f"cannot read {relative!r}: {e.strerror or e}") from None
    if len(data) > limit:
        raise ToolError(f"{relative!r} has more than {limit:,} bytes")
    return data


def upload_files(root: Path, paths: Iterable[str]) -> list[dict[str, str]]:
    """Return files under `root` for an upload request: name, media type and content in base64.

    Raises:
        ToolError: a file cannot be read, or the files are too large.
    """
    files, left = [], _MAX_UPLOAD
    for path in paths:
        data = read_inside(root, path, left)
        left -= len(data)
        media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
        name = path.rstrip("/").rsplit("/", 1)[-1]
        content = base64.b64encode(data).decode()
        files.append({"name": name, "mimeType": media_type, "buffer": content})
    return files


def _parts(root: Path, relative: str) -> tuple[str, ...]:
    try:
        os.fsencode(relative)
    except UnicodeError:
        raise ToolError("a path cannot contain half a character") from None
    if "\0" in relative:
        raise ToolError("a path cannot contain a NUL character")
    path = PurePosixPath(relative)
    if path.is_absolute():
        base = next((b for b in (root, root.resolve()) if path.is_relative_to(b)), None)
        if base is None:
            raise ToolError(f"{relative!r} is outside the working directory; use a plain name")
        path = path.relative_to(base)
    if ".." in path.parts or not path.parts:
        raise ToolError(f"{relative!r} is not a file in the working directory; use a plain name")
    return path.parts


@contextlib.contextmanager
def _folder(root: Path, parts: tuple[str, ...], *, make: bool = True) -> Iterator[int]:
    """Open a directory below `root`, created if missing; a link on the way is an error."""
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=current)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            below = os.open(part, flags, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _create_unique(folder: int, name: str, data: bytes) -> str:
    """Write the file under the first free name; return the name."""
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    number, tried = 1, name
    while True:
        try:
            _create(folder, tried, data)
            return tried
        except FileExistsError:
            number += 1
            tried = f"{stem}-{number}{dot}{suffix}"


def _replace(folder: int, name: str, data: bytes) -> str:
    """Write the file under this name, atomically; replace a file or link of that name."""
    temporary = f".{secrets.token_hex(8)}.part"
    try:
        _create(folder, temporary, data)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return name


def _create(folder: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as out:
        out.write(data)
