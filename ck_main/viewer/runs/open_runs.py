"""The runs that are open: a cache of readers with a limit for its memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.viewer.runs.entries import Entry, first_session
from ck_main.viewer.runs.journal_run import JournalRun
from ck_main.viewer.runs.large_rows import UnexpectedForm, open_row
from ck_main.viewer.runs.row_heads import LinePlace
from ck_main.viewer.runs.row_run import RowRun
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.sources import parts_of
from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.attempts import Try
from ck_pro.trajectory.reading.big_json import JsonFile, NotJsonError, is_list
from ck_pro.trajectory.reading.sources import Problem, Record, read_line

MAX_BYTES = 400_000_000
"""Limit for the open runs in memory; the last one used stays open whatever its size."""
MAX_RUNS = 64
_LARGE = 8 * 2**20
"""Size of a row in bytes from which it is not read as a whole."""


@dataclass(eq=False)
class _OpenRun:
    lock: threading.RLock = field(default_factory=threading.RLock)
    reader: RunReader | None = None


class OpenRuns:
    """Opens runs, and closes those that were not used for the longest time."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, str], _OpenRun] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def opened(self, entry: Entry, rows: Path | None, tasks: Sequence[Path]) -> Iterator[RunReader]:
        """Open a run, or use it again; read what is new.

        Args:
            entry: the run.
            rows: file of its row.
            tasks: folders that its journal may be in.

        Raises:
            InputError: its row cannot be read.
        """
        find_journal(entry, tasks)
        name = (entry.key, "" if entry.journal else entry.stamp)
        with self._lock:
            run = self._runs.setdefault(name, _OpenRun())
            self._runs.move_to_end(name)
        with run.lock:
            if run.reader is None:
                run.reader = new_reader(entry, rows)
            run.reader.refresh()
            yield run.reader
        self._shrink()

    def close(self) -> None:
        """Close all runs; each opens again when it is used."""
        with self._lock:
            runs, self._runs = list(self._runs.values()), OrderedDict()
        for run in runs:
            with run.lock:
                close(run.reader)

    def _shrink(self) -> None:
        with self._lock:
            sizes = {name: r.reader.size if r.reader else 0 for name, r in self._runs.items()}
            total = sum(sizes.values())
            for name in list(self._runs)[:-1]:
                if total <= MAX_BYTES and len(self._runs) <= MAX_RUNS:
                    return
                run = self._runs[name]
                if run.lock.acquire(blocking=False):  # no request uses it
                    total -= sizes[name]
                    del self._runs[name]
                    close(run.reader)
                    run.lock.release()


def close(reader: RunReader | None) -> None:
    """Close the file of a run."""
    if isinstance(reader, JournalRun):
        reader.close()


def new_reader(entry: Entry, rows: Path | None) -> RunReader:
    """Return a reader of a run's journal, or else of its row.

    Raises:
        InputError: the row cannot be read.
    """
    if entry.journal is not None:
        return JournalRun(entry.journal)
    place = entry.place
    if place is None or rows is None:
        raise InputError(f"{entry.task_id}: its row and its journal were removed")
    record = _record(rows, place)
    if isinstance(record, Problem):
        raise InputError(str(record))
    earlier = earlier_tries(record.row)
    if entry.earlier is not None and entry.earlier < len(earlier):
        session, _ = earlier[entry.earlier]
        attempt = Try(record.where, record.row, session, entry.earlier, None, earlier=True)
    else:
        attempt = Try(record.where, record.row, record.row["session"], 0, None)
    run = RowRun(attempt)
    run.earlier = len(earlier)
    run.size = 1_000_000 if record.on_disk else 3 * place.length
    return run


def _record(rows: Path, place: LinePlace) -> Record | Problem:
    """Read a row; of a large one only the structure."""
    where = f"{rows}, line {place.number}"
    if place.length >= _LARGE:
        try:
            row = open_row(JsonFile(rows), place.at, place.length)
            if isinstance(row.get("session"), Mapping) and is_list(row["session"].get("steps")):
                return Record(where, row, on_disk=True)
        except OSError as e:
            return Problem(where, f"cannot be read: {e.strerror}")
        except (UnexpectedForm, NotJsonError):
            pass  # `read_line` reads other forms, and says what is wrong
    return read_line(rows, place.number, place.at, place.length)


def earlier_tries(row: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Any]]:
    """Return the sessions of a row's earlier, failed tries, each with its `eval`."""
    found = []
    tries = row.get("previous_failed_sessions")
    for one in tries if is_list(tries) else ():
        session = one.get("session", one) if isinstance(one, Mapping) else None
        if isinstance(session, Mapping) and is_list(session.get("steps")):
            found.append((session, one.get("eval")))
    return found


def find_journal(entry: Entry, tasks: Sequence[Path]) -> None:
    """Find the journal of a row: that with the same main session."""
    if entry.searched or entry.place is None or entry.journal is not None or not entry.session:
        return
    entry.searched = True
    for task in tasks:
        for part in parts_of(task):
            if first_session(part.folder) == entry.session:
                entry.journal = part.folder
                return
