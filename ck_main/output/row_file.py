"""The output: the file that rows are appended to and never lost from."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ck_main.output.damaged_rows import (
    NOT_A_ROW,
    examine,
    outcome_in,
    parse_row,
    torn_ids,
)
from ck_main.output.output_files import (
    check_output,
    folder_of,
    superseded_path,
    tries_path,
    write_advice,
)
from ck_main.output.row import (
    Outcome,
    build_row,
    count_steps,
    row_from_events,
    row_line,
    row_of,
    task_facts,
    tokens_of,
)
from ck_pro.exceptions import OutputError

__all__ = [
    "Outcome",
    "RowFile",
    "build_row",
    "check_output",
    "count_steps",
    "folder_of",
    "row_from_events",
    "row_line",
    "row_of",
    "superseded_path",
    "task_facts",
    "tokens_of",
    "tries_path",
    "write_advice",
]


_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MARK_BYTES = 4096
_MOST_TRUNCATIONS = 100


class RowFile:
    """The output file: read for what is done, appended to, never truncated.

    A row is written with one call and forced to the disk before `append` returns. A torn
    line (its writer was killed, or the file was truncated) moves to `<file>.torn`, so that each row
    is a line. Each access checks first that the rows read before are still there: when a program
    truncates the file in place, it is read again, and `lost` has the ids of the missing rows.
    Several processes may append to one file, while another puts a file of the same rows in
    another order, or of fewer, in its place (`take_out`, `sort`).

    Args:
        path: the file; made, with its folder, when missing.

    Raises:
        OutputError: it cannot be written, or holds something else than rows.
    """

    def __init__(self, path: Path):
        self.path = path
        self.repaired = 0
        """Bytes of torn lines that were moved to `<file>.torn`."""
        self.done: dict[str, Outcome] = {}
        """Outcome by task id of every row in the file."""
        self.lost: set[str] = set()
        """Ids of rows that were read and are missing since a program truncated the file."""
        self.torn: set[str] = set()
        """Ids of rows of which a torn line was found, as far as it names them."""
        self._read_to, self._lines = 0, 0
        self._places: list[tuple[str, int, int]] = []  # id, offset and length of every line
        self._damaged: list[tuple[int, int]] = []  # offset and length
        self._mark = b""
        self._lock = threading.Lock()
        try:
            check_output(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = self._opened()
        except OSError as e:
            raise self._unwritable(e) from None
        try:
            with self._locked():
                self._remove_rewriting()  # its writer was killed
                self._refresh()
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def folder(self) -> Path:
        """Where the tasks' own folders are: the file's name without its ending."""
        return folder_of(self.path)

    def has(self, task_id: str) -> bool:
        """Whether the file has this task's row by now, written by whomever."""
        self.refresh()
        return task_id in self.done

    def refresh(self) -> None:
        """Take in the rows that other processes have added."""
        with self._locked():
            self._refresh()

    def restore(self, row: Mapping[str, Any]) -> bool:
        """Add the row of a task again if it is one of the `lost` ones; whether it was.

        Raises:
            OutputError: see `append`.
        """
        with self._locked():
            self._refresh()
            if str(row["id"]) not in self.lost:
                return False
            self._write(row_line(row))
        return True

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row.

        Raises:
            OutputError: it could not be written; the file is as it was before.
        """
        self._append(row_line(row))

    def _append(self, line: bytes) -> None:
        with self._locked():
            self._refresh()
            self._write(line)

    def _write(self, line: bytes) -> None:
        """Write a line to the file, which is locked and begins a line at its end."""
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
        name = parse_row(line).id
        if name not in self.done:  # the file was truncated at this moment
            self.lost = self.lost | {name}

    def take_out(self, ids: Collection[str], to: Path) -> int:
        """Move rows to the end of another file of rows; returns how many.

        Wherever it is killed, each row is in one of the two files, or in both.

        Raises:
            OutputError: a file could not be written; the rows are where they were.
        """
        with self._locked():
            self._reread()
            moved = [p for p in self._places if p[0] in ids]
            if not moved:
                return 0
            with RowFile(to) as other, self.path.open("rb") as source:
                known = set(map(session_of, other._contents()))
                for _, offset, length in moved:
                    source.seek(offset)
                    line = source.read(length)
                    if session_of(json.loads(line)) not in known:  # a killed run had come so far
                        other._append(line)
            self._rewrite([p for p in self._places if p[0] not in ids])
        return len(moved)

    def sort(self, ids: Sequence[str]) -> None:
        """Put the rows of these tasks first, in this order; the others keep theirs.

        Raises:
            OutputError: the file could not be written; it is as it was.
        """
        with self._locked():
            self._reread()
            place = {name: n for n, name in enumerate(ids)}
            rows = sorted(self._places, key=lambda p: place.get(p[0], len(place)))
            if rows != self._places:
                self._rewrite(rows)

    def _contents(self) -> Iterator[dict[str, Any]]:
        """All rows, one at a time."""
        with self.path.open("rb") as file:
            for line in file:
                if line.strip():
                    yield json.loads(line)

    def _rewrite(self, places: Sequence[tuple[str, int, int]]) -> None:
        """Put a file with these lines in the place of the present one, which is locked."""
        path = self._rewriting
        fd = -1
        try:
            fd = os.open(path, _FLAGS | os.O_TRUNC, os.fstat(self._fd).st_mode & 0o777)
            fcntl.flock(fd, fcntl.LOCK_EX)  # before anybody can find it under the output's name
            for name, offset, length in places:
                line = os.pread(self._fd, length, offset)
                if len(line) < length or line.find(b"\n") != length - 1:
                    self.lost = self.lost | {name}  # the file was truncated meanwhile
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
        self._become(fd)
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
        """Release the file; harmless when repeated."""
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
        """Alone among the threads of this process and among processes."""
        with self._lock:
            if self._fd < 0:  # a thread that an interrupted run left behind
                raise OutputError(f"the output {self.path} is closed")
            self._lock_file()
            try:
                yield
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _lock_file(self) -> None:
        """Lock the file that has the output's name now: it may have been replaced."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            while not self._is_current():
                self._note_truncation()
                self._become(self._opened())
                fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as e:
            raise self._unwritable(e) from None

    def _note_truncation(self) -> None:
        """Note the rows that a file lost by truncation before another one took its place."""
        if self._holds_what_was_read():
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

    def _opened(self) -> int:
        return os.open(self.path, _FLAGS, 0o644)

    def _become(self, fd: int) -> None:
        """Continue with another file, from its beginning."""
        os.close(self._fd)
        self._fd = fd
        self._forget()

    def _forget(self) -> None:
        self._read_to, self._lines = 0, 0
        self._places, self._damaged, self.done = [], [], {}
        self._mark = b""

    def _refresh(self) -> None:
        """Read what was added, and repair the file, which is locked.

        Raises:
            OutputError: a program truncates it again and again.
        """
        for _ in range(_MOST_TRUNCATIONS):
            self._read()
            if self._repair():
                return
        raise OutputError(
            f"the output {self.path} is truncated again and again by another program; end that "
            "program, the same command continues"
        )

    def _reread(self) -> None:
        """Read the whole file again: an editor may have changed any of its lines."""
        known = set(self.done)
        self._forget()
        self._refresh()
        self.lost = self.lost | (known - set(self.done))

    def _read(self) -> None:
        """Take in the whole lines since the last reading; all lines if the file was truncated."""
        try:
            known = set(self.done)
            self._cut_hole()
            if not self._holds_what_was_read():
                self._forget()
            with self.path.open("rb") as file:
                file.seek(self._read_to)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._lines += 1
                    self._take(line)
                    self._read_to += len(line)
            self._mark = self._last_row()
        except OSError as e:
            raise self._unwritable(e) from None
        self.lost = (self.lost | known) - set(self.done)

    def _cut_hole(self) -> None:
        """Cut off the hole at the end of a file that a program has extended."""
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
            self.repaired += size - hole  # there is no data behind it
            os.ftruncate(self._fd, hole)

    def _holds_what_was_read(self) -> bool:
        """Whether the last row that was read is still in its place."""
        return os.fstat(self._fd).st_size >= self._read_to and self._last_row() == self._mark

    def _last_row(self) -> bytes:
        """The first and last bytes of the last row that was read."""
        if not self._places:
            return b""
        _, offset, length = self._places[-1]
        size = min(length, _MARK_BYTES)
        ends = (offset, offset + length - size)
        return b"".join(os.pread(self._fd, size, at) for at in ends)

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        damaged = 0
        try:
            outcome = parse_row(line)
        except NOT_A_ROW:
            damage = examine(line)
            if damage is None:
                raise OutputError(
                    f"--output {self.path}, line {self._lines}: is not an output row; name another "
                    "file, or remove the line"
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
        """Move torn lines away; a whole row that only lacks its newline gets it.

        Returns:
            False if the file was truncated meanwhile, and must be read again.
        """
        try:
            size = os.fstat(self._fd).st_size
            if size > self._read_to and self._ends_in_row(size):
                os.write(self._fd, b"\n")
                return False
            if size < self._read_to:
                return False
            pieces = [*self._damaged, (self._read_to, size - self._read_to)]
            for at, length in pieces:
                self._keep_torn(at, length)
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

    def _keep_torn(self, at: int, length: int) -> None:
        """Append a piece of the file to `<file>.torn`, without the null bytes around it."""
        if not length:
            return
        self.repaired += length
        piece = os.pread(self._fd, length, at).strip(b"\0\r\n")
        if piece:
            with self.path.with_name(self.path.name + ".torn").open("ab") as torn:
                torn.write(piece + b"\n")

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(
            f"cannot write the output {self.path}: {error.strerror}; existing rows are kept; "
            + write_advice(error)
        )


def session_of(row: Mapping[str, Any]) -> str:
    """The id of a row's session."""
    return str(row["session"]["id"])
