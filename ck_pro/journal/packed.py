"""Compress closed journals with zstd: `events.jsonl.zst` replaces `events.jsonl`.

Each conversion writes a temporary file, calls `fsync`, renames it, and only then removes the other
form. A kill at any moment therefore leaves at least one complete journal. If it leaves both forms,
they are equal, and `events.jsonl` is used. A lock on the folder keeps processes from opening and
compressing a journal at the same time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

from ck_pro.exceptions import JournalError

EVENTS_FILE = "events.jsonl"
COMPRESSED_FILE = "events.jsonl.zst"
LEVEL = 9
"""Level of zstd; higher levels cost much more time for a few percent (`docs/trajectories.md`)."""
_WINDOW_LOG = range(17, 28)
"""The window covers the whole file, since prompts repeat old text, up to 128 MB, the default limit
of decompressors."""
_PIECE = 2**20


def require_zstd() -> Any:
    """Import the zstd module: Python's own from 3.14 on, else its backport.

    Raises:
        JournalError: the backport is not installed.
    """
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return import_module(name)
    except ImportError:
        raise JournalError(
            f'compressed journals need the package {name}: pip install "ck-pro[zstd]"'
        ) from None


def is_journal(folder: Path) -> bool:
    """Return whether a folder has a journal, in either form."""
    return (folder / EVENTS_FILE).is_file() or (folder / COMPRESSED_FILE).is_file()


@contextmanager
def open_events(folder: Path, *, seekable: bool = False) -> Iterator[BinaryIO]:
    """Open a journal's lines as a binary file, in either form.

    Args:
        folder: of the journal.
        seekable: decompress it to an anonymous temporary file first.

    Raises:
        JournalError: the journal is missing or cannot be read; also during reading.
    """
    path, file = _open_any(folder)
    with file, _read_errors(path):
        if not (seekable and path.name == COMPRESSED_FILE):
            yield file
            return
        with cast(BinaryIO, TemporaryFile()) as unpacked:
            try:
                _copy(file, path, unpacked)
            except OSError as e:
                raise JournalError(f"cannot unpack {path} for reading: {_reason(e)}") from None
            unpacked.seek(0)
            yield unpacked


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Convert errors of reading a file to a `JournalError`."""
    try:
        yield
    except (OSError, EOFError) as e:
        raise JournalError(f"cannot read {path}: {_reason(e)}") from None
    except Exception as e:
        if type(e).__name__ != "ZstdError":  # a class of a package that may be missing
            raise
        raise JournalError(f"cannot read {path}: broken: {e}") from None


def _copy(source: BinaryIO, path: Path, target: BinaryIO) -> None:
    """Copy a file; a read error raises `JournalError`, a write error `OSError`."""
    while True:
        with _read_errors(path):
            piece = source.read(_PIECE)
        if not piece:
            return
        target.write(piece)


def _open_any(folder: Path) -> tuple[Path, BinaryIO]:
    plain, packed = folder / EVENTS_FILE, folder / COMPRESSED_FILE
    # twice: another process may convert the journal between two attempts
    for path in (plain, packed, plain, packed):
        try:
            if path is plain:
                return path, path.open("rb")
            path.stat()  # report a missing journal before a missing package
            return path, cast(BinaryIO, require_zstd().open(path, "rb"))
        except FileNotFoundError:
            continue
        except OSError as e:
            raise JournalError(f"cannot read {path}: {_reason(e)}") from None
    raise JournalError(f"cannot read {plain}: No such file or directory")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


# --- changing the form -------------------------------------------------------------------------


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock a journal's folder to open, compress or move its journal; waits for the lock.

    Raises:
        OSError: the folder cannot be opened.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def compress_journal(folder: Path | str, *, level: int = LEVEL) -> tuple[int, int]:
    """Compress a closed journal; a compressed one stays unchanged.

    Args:
        folder: of the journal.
        level: of zstd, 1 to 22.

    Returns:
        Bytes before and after.

    Raises:
        JournalError: the journal is missing, a process has it open, it cannot be written, or the
            package for zstd is missing. The journal is then unchanged.
    """
    folder = Path(folder)
    plain, packed = folder / EVENTS_FILE, folder / COMPRESSED_FILE
    zstd = require_zstd()
    try:
        with locked_folder(folder):
            if not plain.exists() and packed.exists():
                with open_events(folder) as lines:
                    return _length(lines), packed.stat().st_size
            with plain.open("rb+") as source:
                _lock_file(source, plain)
                _write_atomically(packed, lambda f: _pack(zstd, level, source, f), times_of=plain)
                if not _starts_with(plain, packed, whole=True):
                    packed.unlink()
                    raise JournalError(f"{packed} does not match {plain}, which is kept")
                plain.unlink()
                sync_folder(folder)
                return source.tell(), packed.stat().st_size
    except OSError as e:
        raise JournalError(f"cannot compress {plain}: {_reason(e)}") from None


def restore_journal(folder: Path) -> None:
    """Decompress a journal to append events; the caller must hold the folder's lock.

    Raises:
        OSError: it cannot be written.
        JournalError: it cannot be read, or the folder has a different uncompressed journal.
    """
    plain, packed = folder / EVENTS_FILE, folder / COMPRESSED_FILE
    if not packed.exists():
        return
    if not plain.exists():
        with _open_any(folder)[1] as lines:
            _write_atomically(plain, lambda f: _copy(lines, packed, f), times_of=packed)
    elif not _starts_with(plain, packed):
        raise JournalError(f"{folder} has two different journals; move {packed.name} away")
    packed.unlink()
    sync_folder(folder)


def _lock_file(file: BinaryIO, path: Path) -> None:
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(f"{path} is in use by another process") from None


def _pack(zstd: Any, level: int, source: BinaryIO, target: BinaryIO) -> None:
    bits = os.fstat(source.fileno()).st_size.bit_length()
    options = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: min(max(bits, _WINDOW_LOG[0]), _WINDOW_LOG[-1]),
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    with zstd.open(target, "wb", options=options) as packing:
        shutil.copyfileobj(source, packing, _PIECE)


def _write_atomically(path: Path, write: Callable[[BinaryIO], object], *, times_of: Path) -> None:
    """Write a file completely or not at all, with the times of another file."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        stat = times_of.stat()
        os.utime(partial, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    sync_folder(path.parent)


def _starts_with(plain: Path, packed: Path, *, whole: bool = False) -> bool:
    """Return whether the plain file starts with (`whole`: equals) the decompressed one."""
    with plain.open("rb") as a, cast(BinaryIO, require_zstd().open(packed, "rb")) as b:
        while piece := b.read(_PIECE):
            if a.read(len(piece)) != piece:
                return False
        return not whole or not a.read(1)


def _length(file: BinaryIO) -> int:
    return sum(len(piece) for piece in iter(lambda: file.read(_PIECE), b""))


def sync_folder(folder: Path) -> None:
    """Call `fsync` on a folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
