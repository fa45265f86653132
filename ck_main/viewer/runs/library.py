"""The list of runs of all sources, kept up to date, and the runs that are open."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.viewer.runs.journal_run import JournalRun
from ck_main.viewer.runs.outline import IN_PROGRESS
from ck_main.viewer.runs.row_heads import LinePlace, line_places, row_head
from ck_main.viewer.runs.row_run import RowRun
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.sources import (
    Source,
    folder_names,
    key_of,
    parts_of,
    task_folders,
)
from ck_main.viewer.runs.summaries import (
    COLUMNS,
    Summary,
    short,
    summary_of_head,
    summary_of_outline,
)
from ck_pro.exceptions import InputError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE
from ck_pro.trajectory.reading.attempts import tries_of
from ck_pro.trajectory.reading.sources import Problem, read_line

LIVE_SECONDS = 900.0
"""A journal that has not ended and is older than this is no longer live."""
MAX_OPEN_BYTES = 400_000_000
_MAX_PROBLEMS = 200


@dataclass(eq=False)
class Entry:
    """A run in the list.

    Attributes:
        key: see `sources.key_of`.
        source: its index in the sources.
        number: "1", "2", ... for tries; "attempt-1", ... for attempts that were restarted.
        place: the line of its row; None if there is only a journal.
        earlier: index among the tries of the row; None for the row's own.
        session: id of the row's main session.
        journal: the folder of its journal; None if there is none.
        summary: its line in the table.
        shown: whether it is in the table; earlier tries and attempts are not.
        complete: whether the summary is from the whole run.
        changed: version of the list at its last change.
        state: size and time of its journal at the last reading.
    """

    key: str
    source: int
    task_id: str
    number: str
    place: LinePlace | None = None
    earlier: int | None = None
    session: str = ""
    journal: Path | None = None
    summary: Summary = field(default_factory=dict)
    shown: bool = True
    complete: bool = False
    changed: int = 0
    state: tuple[int, ...] = ()
    checked: bool = False


@dataclass(eq=False)
class _RowsState:
    """How far a file of rows was read."""

    identity: tuple[int, ...] = ()
    at: int = 0
    number: int = 1
    torn: str = ""


class Library:
    """All runs of the sources.

    Args:
        sources: the inputs.

    Attributes:
        problems: lines and files that give no run.
        labels_of: returns the labels of a run for the table.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.labels_of: Callable[[Entry], list[str] | None] = lambda entry: None
        self.sources = list(sources)
        self.problems: list[str] = []
        self.version = 0
        self.changed = threading.Condition()
        self._entries: dict[str, Entry] = {}
        self._by_folder: dict[Path, Entry] = {}
        self._rows = [_RowsState() for _ in sources]
        self._open: OrderedDict[str, _OpenRun] = OrderedDict()
        self._lock = threading.RLock()
        self._scanning = threading.Lock()

    # --- the list ----------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Return the runs in the table, in order of the sources."""
        with self._lock:
            return [entry for entry in self._entries.values() if entry.shown]

    def entry(self, key: str) -> Entry | None:
        """Return a run by its key, also an earlier try or an old attempt."""
        with self._lock:
            found = self._entries.get(key)
        if found is None:
            with self._lock:
                tasks = list(self._entries.values())
            for entry in tasks:
                self.parts(entry)
            found = self._entries.get(key)
        return found

    def line(self, entry: Entry) -> list[Any]:
        """Return a run's line of the table, in order of `COLUMNS`."""
        known = {
            **entry.summary,
            "key": entry.key,
            "source": entry.source,
            "try": entry.number,
            "live": self.is_live(entry),
            "labels": self.labels_of(entry),
        }
        return [known.get(name) for name in COLUMNS]

    def is_live(self, entry: Entry) -> bool:
        """Whether a command is probably writing a run's journal."""
        if entry.journal is None or entry.summary.get("status") not in (IN_PROGRESS, None):
            return False
        return len(entry.state) > 1 and time.time() - entry.state[1] / 1e9 < LIVE_SECONDS

    def lines_since(self, version: int) -> list[list[Any]]:
        """Return the lines of the table that changed after a version."""
        return [self.line(entry) for entry in self.entries() if entry.changed > version]

    def wait(self, version: int, seconds: float, ended: threading.Event) -> int:
        """Wait until the list is newer than a version; return its version."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while self.version <= version and not ended.is_set():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(min(left, 0.5))
        return self.version

    def touch(self, entries: Iterable[Entry]) -> None:
        """Mark runs as changed."""
        with self.changed:
            self.version += 1
            for entry in entries:
                entry.changed = self.version
            self.changed.notify_all()

    # --- scanning ----------------------------------------------------------------------------

    def scan(self) -> bool:
        """Find new rows and journals; return whether there were any."""
        with self._scanning:
            found: list[Entry] = []
            for number, source in enumerate(self.sources):
                if source.rows is not None:
                    found += self._scan_rows(number, source, source.rows)
                if source.folder is not None:
                    found += self._scan_folder(number, source, source.folder)
            if found:
                self.touch(found)
            return bool(found)

    def _scan_rows(self, number: int, source: Source, rows: Path) -> list[Entry]:
        state = self._rows[number]
        try:
            fd = os.open(rows, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return []  # not written yet, or removed
        try:
            facts = os.fstat(fd)
            identity = (facts.st_dev, facts.st_ino)
            if identity != state.identity or facts.st_size < state.at:
                self._forget_rows(number)
                state = self._rows[number] = _RowsState(identity)
            if facts.st_size == state.at:
                return []
            return [e for e in self._new_rows(fd, number, source, state) if e is not None]
        finally:
            os.close(fd)

    def _new_rows(
        self, fd: int, number: int, source: Source, state: _RowsState
    ) -> Iterator[Entry | None]:
        for place in line_places(fd, state.at, state.number):
            if not place.complete and not _is_json(fd, place):
                torn = f"{source.name}, line {place.number}: incomplete (a torn last line?)"
                state.torn = torn
                return
            state.at = place.at + place.length + place.complete
            state.number, state.torn = place.number + 1, ""
            yield self._add_row(fd, number, source, place)

    def _add_row(self, fd: int, number: int, source: Source, place: LinePlace) -> Entry | None:
        head = row_head(fd, place) or _whole_head(source, place)
        if isinstance(head, str):
            self._report(f"{source.name}, line {place.number}: {head}")
            return None
        summary = summary_of_head(head)
        session = head.get("session") or {}
        info = session.get("info") or {}
        task_id = str(head.get("id") or f"line {place.number}")
        summary["id"] = short(task_id)
        tried = info.get("try") if isinstance(info, dict) else None
        nth = str(tried.get("number") or 1) if isinstance(tried, dict) else "1"
        with self._lock:
            key = key_of(source.path, task_id, nth)
            known = self._entries.get(key)
            sid = str(session.get("id") or "")
            while known is not None and known.place is not None and known.place != place:
                nth = f"{nth}, line {place.number}"  # a second row of the same task
                key = key_of(source.path, task_id, nth)
                known = self._entries.get(key)
            entry = known or Entry(key, number, task_id, nth)
            entry.place, entry.session, entry.shown = place, sid, True
            if not (entry.complete and entry.journal is not None):
                entry.summary = summary
            else:
                entry.summary["score"] = summary.get("score", entry.summary.get("score"))
            self._close(key)
            self._entries[key] = entry
            self._hide_others(entry)
        return entry

    def _hide_others(self, entry: Entry) -> None:
        """Take the other tries of a task out of the table, now that its row exists."""
        for folder in self._possible_folders(entry):
            for path in (folder, *(folder / f"try-{n}" for n in range(1, 51))):
                other = self._by_folder.get(path)
                if other is not None and other is not entry:
                    other.shown = False

    def _forget_rows(self, number: int) -> None:
        """Forget the rows of a file that was replaced."""
        with self._lock:
            gone = [e for e in self._entries.values() if e.source == number and e.place is not None]
            for entry in gone:
                self._close(entry.key)
                del self._entries[entry.key]
                if entry.journal is not None:
                    self._by_folder.pop(entry.journal, None)

    def _possible_folders(self, entry: Entry) -> list[Path]:
        folder = self.sources[entry.source].folder
        return [] if folder is None else [folder / name for name in folder_names(entry.task_id)]

    def _scan_folder(self, number: int, source: Source, folder: Path) -> list[Entry]:
        """Find the journals of tasks without a row, and new ones."""
        tasks = [folder] if source.rows is None else list(task_folders(folder))
        with self._lock:
            rows = {
                path
                for entry in self._entries.values()
                if entry.source == number and entry.place is not None
                for path in self._possible_folders(entry)
            }
        found = []
        for task in tasks:
            if task in rows or task in self._by_folder:
                continue
            for part in parts_of(task):
                if part.folder not in self._by_folder and not part.name.startswith("attempt"):
                    found.append(self._add_journal(number, source, task, part.folder, part.name))
        return found

    def _add_journal(
        self, number: int, source: Source, task: Path, folder: Path, name: str
    ) -> Entry:
        task_id = _task_id(folder) or task.name
        key = key_of(source.path, task_id, name)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = Entry(key, number, task_id, name)
                entry.summary = {"id": short(task_id)}
            entry.journal = folder
            self._by_folder[folder] = entry
        return entry

    def _report(self, problem: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)

    def all_problems(self) -> list[str]:
        """Return the problems of the sources, with lines that may only be incomplete."""
        return [*self.problems, *(state.torn for state in self._rows if state.torn)]

    # --- one run -----------------------------------------------------------------------------

    @contextmanager
    def opened(self, entry: Entry) -> Iterator[RunReader]:
        """Open a run, or use it again; read what is new.

        Raises:
            InputError: its row cannot be read.
        """
        with self._lock:
            run = self._open.get(entry.key)
            if run is None:
                run = self._open[entry.key] = _OpenRun()
            self._open.move_to_end(entry.key)
        with run.lock:
            if run.reader is None:
                run.reader = self._new_reader(entry)
            run.reader.refresh()
            yield run.reader
        self._shrink()

    def _new_reader(self, entry: Entry) -> RunReader:
        self.find_journal(entry)
        if entry.journal is not None:
            return JournalRun(entry.journal)
        assert entry.place is not None
        rows = self.sources[entry.source].rows
        assert rows is not None
        record = read_line(rows, entry.place.number, entry.place.at, entry.place.length)
        if isinstance(record, Problem):
            raise InputError(str(record))
        tries = tries_of(record.where, record.row, on_disk=record.on_disk)
        run = RowRun(tries[-1 if entry.earlier is None else entry.earlier])
        run.size = 1_000_000 if record.on_disk else 2 * entry.place.length
        return run

    def find_journal(self, entry: Entry) -> None:
        """Find the journal of a row: that with the same main session."""
        if entry.checked or entry.place is None or entry.journal is not None:
            return
        entry.checked = True
        for task in self._possible_folders(entry):
            for part in parts_of(task):
                if entry.session and _first_session(part.folder) == entry.session:
                    entry.journal = part.folder
                    with self._lock:
                        self._by_folder[part.folder] = entry
                    return

    def parts(self, entry: Entry) -> list[Entry]:
        """Return all tries and old attempts of a run's task, this one included."""
        found = {entry.key: entry}
        self.find_journal(entry)
        folder = entry.journal
        if folder is not None and (folder.name.startswith(("try-", "attempt-"))):
            folder = folder.parent
        source = self.sources[entry.source]
        folders = [folder] if folder is not None else self._possible_folders(entry)
        for task in folders:
            for part in parts_of(task):
                known = self._by_folder.get(part.folder)
                if known is None:
                    known = self._add_journal(entry.source, source, task, part.folder, part.name)
                    known.shown = False
                found[known.key] = known
        return list(found.values())

    def refresh_summary(self, entry: Entry) -> None:
        """Read a run and renew its line of the table."""
        state = journal_state(entry.journal)
        with self.opened(entry) as reader:
            summary = summary_of_outline(reader.outline)
        entry.summary = {**entry.summary, **{k: v for k, v in summary.items() if v is not None}}
        entry.complete, entry.state = True, state

    def _close(self, key: str) -> None:
        with self._lock:
            run = self._open.pop(key, None)
        if run is not None and isinstance(run.reader, JournalRun):
            run.reader.close()

    def _shrink(self) -> None:
        """Close the runs that were not used for the longest time, to bound the memory."""
        with self._lock:
            sizes = {key: run.reader.size for key, run in self._open.items() if run.reader}
            total = sum(sizes.values())
            for key in list(self._open)[:-1]:
                if total <= MAX_OPEN_BYTES and len(self._open) <= 64:
                    return
                run = self._open[key]
                if run.lock.acquire(blocking=False):  # no request uses it
                    total -= sizes.get(key, 0)
                    self._close(key)
                    run.lock.release()


@dataclass(eq=False)
class _OpenRun:
    lock: threading.RLock = field(default_factory=threading.RLock)
    reader: RunReader | None = None


def journal_state(folder: Path | None) -> tuple[int, ...]:
    """Return size and time of a journal; () if there is none."""
    for name in (EVENTS_FILE, COMPRESSED_FILE):
        try:
            facts = (folder / name).stat() if folder is not None else None
        except OSError:
            continue
        if facts is not None:
            return (facts.st_size, facts.st_mtime_ns)
    return ()


def _is_json(fd: int, place: LinePlace) -> bool:
    """Whether an incomplete last line is a whole row."""
    try:
        json.loads(os.pread(fd, place.length, place.at))
    except (ValueError, RecursionError):
        return False
    return True


def _whole_head(source: Source, place: LinePlace) -> dict[str, Any] | str:
    """Return the head of a row that must be parsed as a whole, or what is wrong with it."""
    assert source.rows is not None
    record = read_line(source.rows, place.number, place.at, place.length)
    if isinstance(record, Problem):
        return record.text
    row = record.row
    head = {k: row[k] for k in row if k in ("id", "task", "file", "answer", "_orig", "eval")}
    session = row["session"]
    info = session.get("info")
    head["session"] = {"id": session.get("id"), "info": info if isinstance(info, Mapping) else {}}
    return head


def _first_events(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the first events of a journal that is not compressed or damaged."""
    from ck_pro.journal.packed import open_events

    try:
        with open_events(folder) as file:
            for _ in range(3):
                event = json.loads(file.readline(2**22))
                if isinstance(event, dict):
                    yield event
    except Exception:  # noqa: BLE001 - a damaged journal is reported when it is opened
        return


def _first_session(folder: Path) -> str:
    return next((str(event.get("sid")) for event in _first_events(folder)), "")


def _task_id(folder: Path) -> str:
    """Return the task's id from the first lines of a journal; "" if they do not have it."""
    for event in _first_events(folder):
        data = event.get("data")
        if event.get("kind") == "task" and isinstance(data, dict) and data.get("id"):
            return str(data["id"])
    return ""
