"""The output file: append rows, repair damage, and find out which tasks have a row."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ck_main.output.output_files import check_output, folder_of, superseded_path, write_advice
from ck_main.output.row import (
    NOT_A_ROW,
    Outcome,
    examine,
    outcome_in,
    parse_row,
    row_line,
    torn_ids,
)
from ck_main.output.row_schema import OutputRow
from ck_pro.exceptions import OutputError

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MARK_BYTES = 4096
_MAX_TRUNCATIONS = 100


class RowFile:
    """The output file: rows are read from it and appended to it; it is never truncated.

    `append` forces a row to the disk before it returns. A torn line (of a killed writer, or of a
    file that another program truncated) moves to `<file>.torn`, so that every line is a row.

    Several processes may use one file at the same time. One of them may replace it by a file with
    the same rows in another order (`sort`) or with fewer rows (`take_out`). Each access first
    checks whether another program truncated the file. If so, it reads the file again and adds the
    ids of the missing rows to `lost`.

    Args:
        path: the file; created with its folder if it does not exist.

    Raises:
        OutputError: the file cannot be written, or has lines that are not rows.
    """

    def __init__(self, path: Path):
        self.path = path
        self.folder = folder_of(path)
        """The folder with one folder per task: the path of the file without its suffix."""
        self.repaired = 0
        """Bytes of torn lines that were moved to `<file>.torn`."""
        self.done: dict[str, Outcome] = {}
        """Outcomes of all rows in the file, by task id."""
        self.lost: set[str] = set()
        """Ids of rows that were read once and are missing now: a program truncated the file."""
        self.torn: set[str] = set()
        """Ids that torn lines name."""
        self._replaced: set[str] = set()
        """Ids of the rows in a file that was replaced; the new file should have them."""
        self._read_to, self._lines = 0, 0
        self._places: list[tuple[str, int, int]] = []  # id, offset and length of every line
        self._damaged: list[tuple[int, int]] = []  # offset and length
        self._mark = b""
        self._lock = threading.Lock()
        try:
            check_output(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = self._open()
        except OSError as e:
            raise self._unwritable(e) from None
        try:
            with self._locked():
                self._remove_rewriting()  # the file of a killed writer
                self._refresh()
        except BaseException:
            os.close(self._fd)
            raise

    def has(self, task_id: str) -> bool:
        """Whether the file has a row for this task now, written by any process."""
        self.refresh()
        return task_id in self.done

    def refresh(self) -> None:
        """Read the rows that other processes have added."""
        with self._locked():
            self._refresh()

    def restore(self, row: OutputRow) -> bool:
        """Append a row again if it is `lost`; return whether it was.

        Raises:
            OutputError: see `append`.
        """
        with self._locked():
            self._refresh()
            if str(row["id"]) not in self.lost:
                return False
            self._write(row_line(row), str(row["id"]))
        return True

    def append(self, row: OutputRow) -> None:
        """Append a row.

        Raises:
            OutputError: the row cannot be written; the file is unchanged.
        """
        self._append(row_line(row), str(row["id"]))

    def _append(self, line: bytes, name: str) -> None:
        with self._locked():
            self._refresh()
            self._write(line, name)

    def _write(self, line: bytes, name: str) -> None:
        """Append a task's line to the locked file, whose last line is complete."""
        before = os.fstat(self._fd).st_size
        try:
            done = 0
            while done < len(line):
                done += os.write(self._fd, line[done:])
            os.fsync(self._fd)
        except OSError as e:
            with suppress(OSError):  # otherwise the next access removes the torn line
                os.ftruncate(self._fd, before)
            raise self._unwritable(e) from None
        self._refresh()
        if name not in self.done:  # a program truncated the file just now
            self.lost = self.lost | {name}

    def take_out(self, ids: Collection[str], to: Path) -> int:
        """Move rows to the end of another row file; return their number.

        If the process is killed, each row is in one of the two files or in both.

        Raises:
            OutputError: a file cannot be written; the output is unchanged.
        """
        with self._locked():
            self._reread()
            moved = [p for p in self._places if p[0] in ids]
            if not moved:
                return 0
            with RowFile(to) as other, self.path.open("rb") as source:
                known = set(map(session_of, other._rows()))
                for name, offset, length in moved:
                    source.seek(offset)
                    line = source.read(length)
                    if session_of(json.loads(line)) not in known:  # a killed run moved it already
                        other._append(line, name)
            self._rewrite([p for p in self._places if p[0] not in ids])
        return len(moved)

    def sort(self, ids: Sequence[str]) -> None:
        """Put the rows of these tasks first, in this order; the order of the others is kept.

        Raises:
            OutputError: the file cannot be written; it is unchanged.
        """
        with self._locked():
            self._reread()
            place = {name: n for n, name in enumerate(ids)}
            rows = sorted(self._places, key=lambda p: place.get(p[0], len(place)))
            if rows != self._places:
                self._rewrite(rows)

    def _rows(self) -> Iterator[OutputRow]:
        """Yield all rows."""
        with self.path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield json.loads(line)

    def _rewrite(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Replace the locked file by one with only these lines, in this order."""
        path = self._rewriting
        fd = -1
        try:
            fd = os.open(path, _FLAGS | os.O_TRUNC, os.fstat(self._fd).st_mode & 0o777)
            fcntl.flock(fd, fcntl.LOCK_EX)  # before other processes can open it
            for name, offset, length in places:
                line = os.pread(self._fd, length, offset)
                if len(line) < length or line.find(b"\n") != length - 1:
                    self.lost = self.lost | {name}  # truncated meanwhile
                    continue
                while line:
                    line = line[os.write(fd, line) :]
            os.fsync(fd)
            path.replace(self.path.resolve())
        except OSError as e:
            if fd >= 0:
                os.close(fd)
                self._remove_rewriting()
            raise self._unwritable(e) from None
        self._switch_to(fd, {name for name, _, _ in places} - self.lost)
        self._read()

    def _remove_rewriting(self) -> None:
        try:
            self._rewriting.unlink(missing_ok=True)
        except OSError as e:
            raise self._unwritable(e) from None

    @property
    def _rewriting(self) -> Path:
        target = self.path.resolve()
        return target.with_name(f".{target.name}.rewriting")

    def close(self) -> None:
        """Close the file; later calls have no effect."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file against other threads and processes."""
        with self._lock:
            if self._fd < 0:  # a thread of an interrupted run
                raise OutputError(f"the output {self.path} is closed")
            self._lock_file()
            try:
                yield
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock_file(self) -> None:
        """Lock the file that is at the output's path now: another process may have replaced it."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            while not self._is_current():
                self._record_truncation()
                # if a person removed the output, its rows are not expected in the new one
                rows = set(self.done) if self.path.exists() else set()
                self._switch_to(self._open(), rows)
                fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as e:
            raise self._unwritable(e) from None

    def _record_truncation(self) -> None:
        """Add to `lost` the rows that a replaced file lost by truncation."""
        if self._is_unchanged():
            return
        present = set()
        with os.fdopen(os.dup(self._fd), "rb") as file:
            file.seek(0)
            for line in file:
                outcome = outcome_in(line)
                if outcome is not None:
                    present.add(outcome.id)
        self.lost = self.lost | (set(self.done) - present)

    def _is_current(self) -> bool:
        try:
            named = self.path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._fd))

    def _open(self) -> int:
        return os.open(self.path, _FLAGS, 0o644)

    def _switch_to(self, fd: int, rows: set[str]) -> None:
        """Switch to another open file, which should have these rows; forget what was read."""
        os.close(self._fd)
        self._replaced |= rows
        self._fd = fd
        self._forget()

    def _forget(self) -> None:
        self._read_to, self._lines = 0, 0
        self._places, self._damaged, self.done = [], [], {}
        self._mark = b""

    def _refresh(self) -> None:
        """Read the added lines of the locked file, and repair it.

        Raises:
            OutputError: another program keeps truncating the file.
        """
        for _ in range(_MAX_TRUNCATIONS):
            self._read()
            if self._repair():
                return
        raise OutputError(
            f"another program keeps truncating the output {self.path}: stop that program, then "
            "repeat the command to resume"
        )

    def _reread(self) -> None:
        """Read the whole file again, because an editor may have changed any line."""
        known = set(self.done)
        self._forget()
        self._refresh()
        self.lost = self.lost | (known - set(self.done))

    def _read(self) -> None:
        """Read the complete lines that were added; all lines if the file was truncated."""
        try:
            known = set(self.done)
            self._remove_hole()
            if not self._is_unchanged():
                self._forget()
            with self.path.open("rb") as file:
                file.seek(self._read_to)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._lines += 1
                    self._add_line(line)
                    self._read_to += len(line)
            self._mark = self._last_row()
        except OSError as e:
            raise self._unwritable(e) from None
        self.lost = (self.lost | known | self._missing()) - set(self.done)

    def _missing(self) -> set[str]:
        """Return the rows that a new file lacks because it was truncated at once."""
        missing, self._replaced = self._replaced - set(self.done), set()
        if not missing:
            return missing
        moved = superseded_path(self.path)
        if moved.exists():  # `take_out` has removed these
            with moved.open("rb") as file:
                missing -= {found.id for found in map(outcome_in, file) if found is not None}
        return missing

    def _remove_hole(self) -> None:
        """Remove the hole at the end of a file that another program extended."""
        size = os.fstat(self._fd).st_size
        if size <= self._read_to:
            return
        try:
            hole = os.lseek(self._fd, self._read_to, os.SEEK_HOLE)
        except OSError as e:
            if e.errno != errno.ENXIO:
                raise
            return  # truncated meanwhile
        if hole >= size:
            return
        try:
            os.lseek(self._fd, hole, os.SEEK_DATA)
        except OSError as e:
            if e.errno != errno.ENXIO:
                raise
            self.repaired += size - hole  # no data follows the hole
            os.ftruncate(self._fd, hole)

    def _is_unchanged(self) -> bool:
        """Whether the last row that was read is still at its offset."""
        return os.fstat(self._fd).st_size >= self._read_to and self._last_row() == self._mark

    def _last_row(self) -> bytes:
        """Return the first and last bytes of the last row that was read."""
        if not self._places:
            return b""
        _, offset, length = self._places[-1]
        size = min(length, _MARK_BYTES)
        ends = (offset, offset + length - size)
        return b"".join(os.pread(self._fd, size, at) for at in ends)

    def _add_line(self, line: bytes) -> None:
        if not line.strip():
            return
        damaged = 0
        try:
            outcome = parse_row(line)
        except NOT_A_ROW:
            damage = examine(line)
            if damage is None:
                raise OutputError(
                    f"--output {self.path}, line {self._lines}: is not an output row; remove "
                    "the line, or name another file"
                ) from None
            damaged = damage.size
            self._damaged.append((self._read_to, damaged))
            self.torn = self.torn.union(damage.torn)
            if damage.outcome is None:
                return
            outcome = damage.outcome
        self.done[outcome.id] = outcome
        self._places.append((outcome.id, self._read_to + damaged, len(line) - damaged))

    def _repair(self) -> bool:
        """Move torn lines to `<file>.torn`, and add a missing newline to a complete row.

        Returns:
            False if the file must be read again.
        """
        try:
            size = os.fstat(self._fd).st_size
            if size > self._read_to and self._ends_in_row(size):
                os.write(self._fd, b"\n")
                return False
            if size < self._read_to:
                return False
            parts = [*self._damaged, (self._read_to, size - self._read_to)]
            for at, length in parts:
                self._move_torn(at, length)
            if self._damaged:
                self._rewrite(self._places)
            elif size > self._read_to:
                os.ftruncate(self._fd, self._read_to)
        except OSError as e:
            raise self._unwritable(e) from None
        return True

    def _ends_in_row(self, size: int) -> bool:
        tail = os.pread(self._fd, size - self._read_to, self._read_to)
        try:
            parse_row(tail)
        except NOT_A_ROW:
            self.torn = self.torn.union(torn_ids(tail))
            return False
        return True

    def _move_torn(self, at: int, length: int) -> None:
        """Append a part of the file to `<file>.torn`, without the null bytes around it."""
        if not length:
            return
        self.repaired += length
        torn = os.pread(self._fd, length, at).strip(b"\0\r\n")
        if torn:
            with self.path.with_name(self.path.name + ".torn").open("ab") as file:
                file.write(torn + b"\n")

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(
            f"cannot write the output {self.path}: {error.strerror}; existing rows are kept; "
            + write_advice(error)
        )


def session_of(row: OutputRow) -> str:
    """Return the id of a row's session."""
    return str(row["session"]["id"])
