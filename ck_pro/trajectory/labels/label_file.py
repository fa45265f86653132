"""The file of labels: one JSON object per line, only appended to, beside the output rows."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO

from ck_pro.exceptions import InputError, OutputError
from ck_pro.journal import is_journal
from ck_pro.json_lines import json_line
from ck_pro.trajectory.labels.label import Label, Target
from ck_pro.trajectory.reading.sources import Problem

SUFFIX = ".labels.jsonl"
MAX_LINE = 16 * 2**20
"""Bytes of a line."""
_BOM = b"\xef\xbb\xbf"


def is_label_file(path: Path) -> bool:
    """Return whether a path has the name of a label file, such as "runs/a.labels.jsonl"."""
    return path.name.endswith(SUFFIX)


def without_label_files(
    inputs: Sequence[Path], on_skip: Callable[[Path], object] = lambda path: None
) -> list[Path]:
    """Return the inputs that are not label files: `runs/*.jsonl` names both.

    Args:
        inputs: what the user named.
        on_skip: called with each label file.

    Raises:
        InputError: all inputs are label files.
    """
    skipped = [path for path in inputs if is_label_file(path)]
    if skipped and len(skipped) == len(inputs):
        first = skipped[0]
        raise InputError(f"{first} has labels, not runs; name the output {_runs_of(first)}")
    for path in skipped:
        on_skip(path)
    return [path for path in inputs if not is_label_file(path)]


def label_file_of(path: Path) -> Path:
    """Return the label file of an input: `runs/a.labels.jsonl` for `runs/a.jsonl` and `runs/a/`.

    The journal of a task in a run's folder belongs to the run. A journal on its own has its file
    beside its folder.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - keeps the name of a symbolic link
    if not path.is_dir():
        return path.with_name(f"{path.name.removesuffix('.jsonl')}{SUFFIX}")
    run = path
    while is_journal(run) and (is_journal(run.parent) or _is_run(run.parent)):
        run = run.parent
    return run.with_name(f"{run.name}{SUFFIX}")


def _runs_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(SUFFIX) + ".jsonl")


def _is_run(folder: Path) -> bool:
    """Return whether a folder is the run directory of a file of rows."""
    rows = folder.with_name(f"{folder.name}.jsonl")
    return rows.exists() or (folder / "status.json").exists()


def unused_label_files(inputs: Iterable[Path], used: Iterable[Path]) -> list[tuple[Path, int]]:
    """Return the label files beside inputs that are not in use, with their number of labels."""
    known = {path.resolve() for path in used}
    found = {path: label_file_of(path) for path in inputs}
    out: dict[Path, int] = {}
    for path in found.values():
        if path.resolve() not in known and path.is_file():
            with suppress(InputError):
                out[path] = len(LabelFile(path).current())
    return [(_near(path), count) for path, count in out.items() if count]


def _near(path: Path) -> Path:
    """Return a path as short as it can be written here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


class LabelFile:
    """A label file; any number of processes may read it and append to it.

    Args:
        path: of the file; created with the first label.
    """

    def __init__(self, path: Path):
        self.path = path

    def read(self) -> tuple[list[Label], list[Problem]]:
        """Return all labels in order, and the lines that are not labels.

        A line that is being written, or whose writer was killed, is such a problem, too.

        Raises:
            InputError: the file cannot be read.
        """
        labels: list[Label] = []
        problems: list[Problem] = []
        try:
            with self.path.open("rb") as file:
                for number, line in _lines(file):
                    found = _parsed(self.path, number, line)
                    if isinstance(found, Label):
                        labels.append(found)
                    elif found is not None:
                        problems.append(found)
        except OSError as e:
            raise InputError(f"cannot read the labels {self.path}: {e.strerror}") from None
        return labels, problems

    def current(self) -> dict[Target, Label]:
        """Return the last label of each target, without those taken back; {} without a file.

        Raises:
            InputError: the file cannot be read.
        """
        found = CurrentLabels(self.path)
        found.refresh()
        return found.labels

    def append(self, label: Label) -> Label:
        """Add a label, and sync it to the disk; return it with its time.

        A line that another writer left incomplete ends first, so it harms no other line.

        Raises:
            OutputError: it cannot be written; the file is unchanged.
            InputError: it is too long.
        """
        label = label if label.when else replace(label, when=_now())
        line = json_line(label.to_line())
        if len(line) > MAX_LINE:
            raise InputError(f"a label has at most {MAX_LINE:,} bytes, this one {len(line):,}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.path) as fd:
                _append(fd, line)
        except OSError as e:
            raise OutputError(f"cannot write the labels {self.path}: {e.strerror}") from None
        return label


class CurrentLabels:
    """The last label of each target of a file, kept up to date while the file grows.

    Args:
        path: of the file, which need not exist.

    Attributes:
        labels: by target, without those taken back.
        by_id: the same by task id; None for targets without one.
        problems: lines that are not labels.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self.labels: dict[Target, Label] = {}
        self.by_id: dict[Any, dict[Target, Label]] = {}
        self.problems: list[Problem] = []
        self._torn: list[Problem] = []
        self._inode, self._at, self._number = 0, 0, 0
        self._open_end: int | None = None
        """End of a label whose line may grow, since it lacks its newline."""

    def all_problems(self) -> list[Problem]:
        """Return the problems, with that of an incomplete last line."""
        return [*self.problems, *self._torn]

    def refresh(self) -> None:
        """Read the lines that were added; all lines if the file was replaced.

        Raises:
            InputError: the file cannot be read.
        """
        with self._lock:
            try:
                with self.path.open("rb") as file:
                    stat = os.fstat(file.fileno())
                    changed_end = self._open_end not in (None, stat.st_size)
                    if stat.st_ino != self._inode or stat.st_size < self._at or changed_end:
                        self._reset()
                        self._inode = stat.st_ino
                    self._read_new(file)
            except FileNotFoundError:
                self._reset()
            except OSError as e:
                raise InputError(f"cannot read the labels {self.path}: {e.strerror}") from None

    def _read_new(self, file: BinaryIO) -> None:
        file.seek(self._at)
        self._torn = []
        for number, line in _lines(file, self._number):
            found = _parsed(self.path, number, line)
            whole = line.endswith(b"\n")
            if isinstance(found, Label):
                self._take(found)
                self._open_end = None if whole else file.tell()
            elif found is not None:
                (self.problems if whole else self._torn).append(found)
            if whole:  # else it is read again
                self._at, self._number = file.tell(), number

    def _take(self, label: Label) -> None:
        near = self.by_id.setdefault(label.target["id"], {})
        for labels in (self.labels, near):
            labels.pop(label.target, None)
            if not label.empty:
                labels[label.target] = label


def _lines(file: BinaryIO, number: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the next lines with their numbers; of a line that is too long, only a part."""
    while line := file.readline(MAX_LINE + 1):
        number += 1
        rest = line
        while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE + 1)
        yield number, line.removeprefix(_BOM) if number == 1 else line


def _parsed(path: Path, number: int, line: bytes) -> Label | Problem | None:
    """Return the label or the problem of a line; None for a blank line."""
    if not line.strip():
        return None
    where = f"{path}, line {number}"
    try:
        if len(line) > MAX_LINE:
            raise InputError(f"longer than {MAX_LINE:,} bytes")
        return Label.parse(line, where)
    except InputError as e:
        torn = str(e) == "not JSON" and not line.endswith(b"\n")
        return Problem(where, "incomplete last line" if torn else str(e))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file for appending while no other writer has it open."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            try:
                same = os.path.samestat(os.fstat(fd), path.stat())
            except FileNotFoundError:
                same = False
            if same:  # else an editor replaced the file meanwhile
                yield fd
                return
        finally:
            os.close(fd)


def _append(fd: int, line: bytes) -> None:
    end = os.fstat(fd).st_size
    torn = end > 0 and os.pread(fd, 1, end - 1) != b"\n"
    left = memoryview(b"\n" + line if torn else line)
    try:
        while left:
            left = left[os.write(fd, left) :]
        os.fsync(fd)
    except OSError:
        os.ftruncate(fd, end)
        raise
