"""Write training rows as JSON lines, Parquet, or a folder of JSON files.

A writer uses temporary names and renames the files when the export is complete, so an interrupted
export never looks complete.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ck_pro.exceptions import InputError, OutputError
from ck_pro.trajectory.reading.big_json import Pairs, json_pieces

_GROUP_BYTES = 16 * 2**20
_GROUP_ROWS = 1000
_NUMBERED = re.compile(r"\d{5}-.*\.json")


class RowSink(Protocol):
    """Gets the rows of an export; `Writer` is the usual one."""

    files: list[Path]

    def write(self, row: Mapping[str, Any] | Pairs, task_id: str = "") -> None:
        """Add a row."""
        ...

    def commit(self) -> None:
        """Complete the output."""
        ...

    def abandon(self) -> None:
        """Remove an incomplete output; no effect after `commit`."""
        ...


class Writer(ABC):
    """Write rows one by one.

    A row may be generated during writing (see `json_pieces`). If that fails, the writer removes
    the partial row, and can write the next one.

    Args:
        path: of the output; with `shard_rows`, of a set of files `<name>-00000<suffix>`, ...
        shard_rows: rows per file; None for one file.
        force: whether to replace an existing output.

    Raises:
        OutputError: the output exists already, or cannot be written.
    """

    makes_folder = False
    """Whether the output is a folder; `--force` of a file format never removes a folder."""

    def __init__(self, path: Path, *, shard_rows: int | None = None, force: bool = False):
        self.path, self.shard_rows = path, shard_rows
        self.files: list[Path] = []
        """Final paths of the files."""
        self._partial: list[Path] = []
        self._in_file = 0
        if path.is_dir() and not self.makes_folder:
            raise OutputError(f"{path} is a folder; name a file in it")
        require_no_device(path)
        self._stale = _present(path, sharded=shard_rows is not None)
        if self._stale and not force:
            raise OutputError(f"{self._stale[0]} exists already; give --force to replace it")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise OutputError(f"cannot make the folder {path.parent}: {e.strerror}") from None

    def write(self, row: Mapping[str, Any] | Pairs, task_id: str = "") -> None:
        """Add a row.

        Args:
            row: the row.
            task_id: used in the file name by formats with one file per row.

        Raises:
            OutputError: the row cannot be written.
        """
        full = self.shard_rows is not None and self._in_file >= self.shard_rows
        try:
            if not self.files or full:
                self._next_file()
            self._write(row, task_id)
        except OSError as e:
            raise OutputError(f"cannot write {self.path}: {e.strerror or e}") from None
        self._in_file += 1

    def commit(self) -> None:
        """Give the files their final names; they replace the previous files.

        Raises:
            OutputError: they cannot be written.
        """
        try:
            if not self.files:
                self._next_file()
            self._close()
            for old in self._stale:
                _discard(old)
            for partial, final in zip(self._partial, self.files, strict=True):
                partial.replace(final)
        except OSError as e:
            raise OutputError(f"cannot write {self.path}: {e.strerror or e}") from None

    def abandon(self) -> None:
        """Remove all traces of a failed export; no effect after `commit`."""
        with suppress(OSError):  # most likely a full disk, which was reported already
            self._close()
        for partial in self._partial:
            _discard(partial)

    def _next_file(self) -> None:
        self._close()
        final = self.path
        if self.shard_rows is not None:
            final = final.with_name(f"{final.stem}-{len(self.files):05d}{final.suffix}")
        partial = final.with_name(f".{final.name}.partial")
        _discard(partial)  # left by an export that was killed
        self._open(partial)
        self.files.append(final)
        self._partial.append(partial)
        self._in_file = 0

    @abstractmethod
    def _open(self, path: Path) -> None:
        """Start a file."""

    @abstractmethod
    def _write(self, row: Any, task_id: str) -> None:
        """Add a row to the open file."""

    @abstractmethod
    def _close(self) -> None:
        """Complete the open file, if there is one."""


def require_no_device(path: Path) -> None:
    """Check that an output is a regular path, which can be renamed into place.

    Raises:
        OutputError: it is standard output, a pipe or a device, which a file would replace.
    """
    if str(path) == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
        raise OutputError(
            f"{path}: the output is renamed when it is complete, so it cannot be standard output, "
            "a pipe or a device; name a file"
        )


def _discard(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _present(path: Path, *, sharded: bool) -> list[Path]:
    if not sharded:
        return [path] if path.exists() else []
    name = re.compile(rf"{re.escape(path.stem)}-\d{{5}}{re.escape(path.suffix)}")
    folder = path.parent
    return sorted(p for p in folder.iterdir() if name.fullmatch(p.name)) if folder.is_dir() else []


class JsonLinesWriter(Writer):
    """One JSON object per line."""

    _file: BinaryIO | None = None

    def _open(self, path: Path) -> None:
        self._file = path.open("wb")

    def _write(self, row: Any, task_id: str) -> None:
        assert self._file is not None
        begin = self._file.tell()
        try:
            self._file.writelines(json_pieces(row))
            self._file.write(b"\n")
        except Exception:
            self._file.seek(begin)
            self._file.truncate()
            raise

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class ParquetWriter(Writer):
    """Parquet with row groups of bounded size.

    Args:
        path: of the output.
        schemas: returns the `pyarrow.Schema` to build tables with, and the one to cast them to.
        shard_rows, force: see `Writer`.

    Raises:
        InputError: pyarrow is not installed.
    """

    def __init__(self, path: Path, schemas: Callable[[], tuple[Any, Any]], **settings: Any):
        try:
            self._arrow = import_module("pyarrow")
            self._parquet = import_module("pyarrow.parquet")
        except ImportError:
            raise InputError(
                'Parquet needs pyarrow: pip install "ck-pro[export]", or give a .jsonl output'
            ) from None
        super().__init__(path, **settings)
        self._plain, self._schema = schemas()
        self._rows: list[Mapping[str, Any]] = []
        self._bytes = 0
        self._out: Any = None

    def _open(self, path: Path) -> None:
        self._out = self._parquet.ParquetWriter(path, self._schema, compression="zstd")

    def _write(self, row: Any, task_id: str) -> None:
        self._rows.append(row)
        self._bytes += _size(row)
        if self._bytes >= _GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            rows = [_encodable(r) for r in self._rows]
            table = self._arrow.Table.from_pylist(rows, schema=self._plain)
            self._out.write_table(table.cast(self._schema))
        self._rows, self._bytes = [], 0

    def _close(self) -> None:
        if self._out is not None:
            try:
                self._flush()
            finally:
                self._rows, self._bytes = [], 0
                out, self._out = self._out, None
                out.close()


class JsonFolderWriter(Writer):
    """A folder with one JSON file per row, named by its number and task id."""

    makes_folder = True

    def __init__(self, path: Path, **settings: Any):
        super().__init__(path, **settings)
        for entry in path.iterdir() if path.is_dir() else ():
            if not _NUMBERED.fullmatch(entry.name):
                raise OutputError(f"{path} is not an export: it has {entry.name}; name another")
        self._folder: Path | None = None
        self._count = 0

    def _open(self, path: Path) -> None:
        path.mkdir()
        self._folder = path

    def _write(self, row: Any, task_id: str) -> None:
        assert self._folder is not None
        task = re.sub(r"[^\w.-]+", "_", task_id)[:60]  # at most 4 bytes per character
        name = f"{self._count:05d}-{task or 'task'}.json"
        try:
            with (self._folder / name).open("wb") as file:
                file.writelines(json_pieces(row))
                file.write(b"\n")
        except Exception:
            (self._folder / name).unlink()
            raise
        self._count += 1

    def _close(self) -> None:
        self._folder = None


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, Sequence):
        return sum(map(_size, value))
    return 8


def _encodable(value: Any) -> Any:
    """Replace halves of surrogate pairs, which Arrow cannot store."""

    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {k: _encodable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_encodable(v) for v in value]
    return value
