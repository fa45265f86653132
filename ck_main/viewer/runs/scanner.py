"""Find the rows and journals of one source, also those that appear later."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ck_main.viewer.runs.entries import Entry, task_id_of
from ck_main.viewer.runs.row_heads import LinePlace, line_mark, line_places, row_head
from ck_main.viewer.runs.sources import Source, folder_names, key_of, parts_of, task_folders
from ck_main.viewer.runs.summaries import short, summary_of_head
from ck_pro.trajectory.reading.sources import Problem, read_line

_MARK_BYTES = 4096
_MAX_PROBLEMS = 100
_BATCH = 500


class Scanner:
    """The runs of one source. A row and its journal are one run.

    Args:
        number: index of the source.
        source: the source.

    Attributes:
        entries: runs by key, in the order in which they were found.
        gone: runs whose rows were removed.
        problems: lines that give no run.
        torn: an incomplete last line, as a problem; "" if there is none.
    """

    def __init__(self, number: int, source: Source) -> None:
        self.number, self.source = number, source
        self.entries: dict[str, Entry] = {}
        self.gone: list[Entry] = []
        self.problems: list[str] = []
        self.torn = ""
        self._journals: dict[str, list[Entry]] = {}
        """Runs with a journal, by the name of the task's folder."""
        self._row_names: set[str] = set()
        self._identity: tuple[int, ...] = ()
        self._at, self._line, self._start = 0, 1, 0
        """How far the rows were read: position, number of the next line, checksum of the start."""

    def scan(self, report: Callable[[list[Entry]], None]) -> None:
        """Find new runs.

        Args:
            report: called with runs that are new or have changed, in groups.
        """
        batch: list[Entry] = []
        for entry in self._scan():
            batch.append(entry)
            if len(batch) >= _BATCH:
                report(batch)
                batch = []
        if batch:
            report(batch)

    def _scan(self) -> Iterator[Entry]:
        if self.source.rows is not None:
            yield from self._scan_rows(self.source.rows)
        if self.source.folder is not None:
            yield from self._scan_folder(self.source.folder)

    # --- rows --------------------------------------------------------------------------------

    def _scan_rows(self, rows: Path) -> Iterator[Entry]:
        try:
            fd = os.open(rows, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return  # not written yet, or removed
        try:
            facts = os.fstat(fd)
            identity = (facts.st_dev, facts.st_ino)
            start = zlib.crc32(os.pread(fd, _MARK_BYTES, 0)[: self._at])
            replaced = identity != self._identity or start != self._start
            if replaced or facts.st_size < self._at:
                yield from self._forget_rows(identity)
            if facts.st_size > self._at:
                yield from self._new_rows(fd)
                self._start = zlib.crc32(os.pread(fd, _MARK_BYTES, 0)[: self._at])
        finally:
            os.close(fd)

    def _forget_rows(self, identity: tuple[int, ...]) -> list[Entry]:
        """Forget the rows of a file that was replaced; return them, taken out of the table."""
        gone = [entry for entry in self.entries.values() if entry.place is not None]
        for entry in gone:
            entry.shown = False
            del self.entries[entry.key]
        self.gone += gone
        for name, entries in self._journals.items():
            self._journals[name] = [entry for entry in entries if entry not in gone]
        self._row_names = set()
        self._identity, self._at, self._line, self._start = identity, 0, 1, 0
        return gone

    def _new_rows(self, fd: int) -> Iterator[Entry]:
        for place in line_places(fd, self._at, self._line):
            if not place.complete and not _is_json(fd, place):
                self.torn = (
                    f"{self.source.name}, line {place.number}: incomplete (a torn last line?)"
                )
                return
            self._at = place.at + place.length + place.complete
            self._line, self.torn = place.number + 1, ""
            yield from self._add_row(fd, place)

    def _add_row(self, fd: int, place: LinePlace) -> Iterator[Entry]:
        head = row_head(fd, place) or self._whole_head(place)
        if isinstance(head, str):
            if len(self.problems) < _MAX_PROBLEMS:
                self.problems.append(f"{self.source.name}, line {place.number}: {head}")
            return
        session = head.get("session") or {}
        task_id = str(head.get("id") or f"line {place.number}")
        entry = self._entry_of_row(place, task_id, _try_of(session))
        entry.place, entry.session = place, str(session.get("id") or "")
        entry.mark = line_mark(fd, place)
        entry.shown, entry.complete, entry.searched = True, False, False
        entry.summary = {**summary_of_head(head), "id": short(task_id)}
        names = folder_names(task_id)
        self._row_names.update(names)
        for other in (other for name in names for other in self._journals.get(name, ())):
            if other is not entry and other.shown and other.place is None:
                other.shown = False  # an earlier try of the same task
                yield other
        yield entry

    def _entry_of_row(self, place: LinePlace, task_id: str, nth: str) -> Entry:
        """Return the run of a row: that of its journal, or a new one."""
        key = key_of(self.source.path, task_id, nth)
        known = self.entries.get(key)
        while known is not None and known.place is not None:
            nth = f"{nth}, line {place.number}"  # a second row of the same task
            key = key_of(self.source.path, task_id, nth)
            known = self.entries.get(key)
        entry = known or Entry(key, self.number, task_id, nth)
        self.entries[key] = entry
        return entry

    def _whole_head(self, place: LinePlace) -> dict[str, Any] | str:
        """Return the head of a row that must be parsed as a whole, or what is wrong with it."""
        assert self.source.rows is not None
        record = read_line(self.source.rows, place.number, place.at, place.length)
        if isinstance(record, Problem):
            return record.text
        row = record.row
        head = {k: row[k] for k in ("id", "task", "file", "answer", "_orig", "eval") if k in row}
        session = row["session"]
        info = session.get("info")
        info = info if isinstance(info, Mapping) else {}
        head["session"] = {"id": session.get("id"), "info": info}
        return head

    # --- known rows --------------------------------------------------------------------------

    def rows_state(self) -> dict[str, Any] | None:
        """Return how far the rows were read, and where they are, as JSON data for `restore`."""
        rows = [e for e in self.entries.values() if e.place is not None and e.earlier is None]
        found = _identified(self.source.rows, self._at)
        if found is None or not rows:
            return None
        facts = [_row_facts(e, e.place) for e in rows if e.place is not None]
        state = {"at": self._at, "line": self._line, "start": self._start, "rows": facts}
        return {**state, "file": found, "problems": self.problems}

    def restore(self, state: Mapping[str, Any]) -> list[Entry]:
        """Add the rows that an earlier viewer found, if the file still begins with them.

        Args:
            state: from `rows_state`.

        Returns:
            The runs, without their summaries.
        """
        try:
            at, rows = int(state["at"]), list(state["rows"])
            if not _is_same(_identified(self.source.rows, at), state["file"]):
                return []
            for key, task_id, number, line, start, length, mark, session in rows:
                place = LinePlace(line, start, length)
                entry = Entry(key, self.number, task_id, number, place, mark=mark)
                entry.session, entry.summary = session, {"id": short(task_id)}
                self.entries[key] = entry
                self._row_names.update(folder_names(task_id))
            self._at, self._line, self._start = at, int(state["line"]), int(state["start"])
            self._identity = tuple(state["file"][:2])
            self.problems = [str(problem) for problem in state["problems"]]
        except (KeyError, TypeError, ValueError):
            self.entries.clear()
            self._identity = ()
            return []
        return list(self.entries.values())

    # --- journals ----------------------------------------------------------------------------

    def _scan_folder(self, folder: Path) -> Iterator[Entry]:
        """Find the journals of tasks without a row."""
        if self.source.rows is None:
            yield from self._scan_task(folder)
            return
        for task in task_folders(folder):
            if task.name not in self._row_names:
                yield from self._scan_task(task)

    def _scan_task(self, task: Path) -> Iterator[Entry]:
        known = self._journals.setdefault(task.name, [])
        if known and not (task / f"try-{len(known) + 1}").is_dir():
            return
        folders = {entry.journal for entry in known}
        for part in parts_of(task):
            if part.folder not in folders and not part.name.startswith("attempt"):
                entry = self.add_journal(task, part.folder, part.name)
                yield entry

    def add_journal(self, task: Path, folder: Path, number: str, *, shown: bool = True) -> Entry:
        """Return the run of a journal; add it if it is new."""
        task_id = task_id_of(folder) or task.name
        key = key_of(self.source.path, task_id, number)
        entry = self.entries.get(key)
        if entry is None:
            summary = {"id": short(task_id)}
            entry = Entry(key, self.number, task_id, number, summary=summary, shown=shown)
            self.entries[key] = entry
        if entry.journal is None and entry.place is None:
            entry.journal = folder
        if entry not in self._journals.setdefault(task.name, []):
            self._journals[task.name].append(entry)
        return entry

    def add_earlier(self, entry: Entry, n: int) -> Entry:
        """Return the run of an earlier try that is in a row; add it if it is new."""
        number = f"{n + 1}, earlier" if entry.number == str(n + 1) else str(n + 1)
        key = key_of(self.source.path, entry.task_id, number)
        summary = {"id": entry.summary.get("id"), "task": entry.summary.get("task")}
        one = self.entries.get(key)
        if one is None or one.place != entry.place:
            one = Entry(key, self.number, entry.task_id, number, entry.place, n, entry.mark)
            one.summary, one.shown = {**summary, "score": 0}, False
            self.entries[key] = one
        return one

    def task_folders_of(self, entry: Entry) -> list[Path]:
        """Return the folders that the journals of a run's task may be in."""
        if entry.journal is not None:
            folder = entry.journal
            nested = folder.name.startswith(("try-", "attempt-"))
            return [folder.parent if nested else folder]
        folder_of_all = self.source.folder
        if folder_of_all is None:
            return []
        return [folder_of_all / name for name in folder_names(entry.task_id)]


def _try_of(session: Mapping[str, Any]) -> str:
    """Return the number of a session's try."""
    info = session.get("info")
    tried = info.get("try") if isinstance(info, Mapping) else None
    number = tried.get("number") if isinstance(tried, Mapping) else None
    return str(number) if isinstance(number, int) else "1"


def _row_facts(entry: Entry, place: LinePlace) -> list[Any]:
    where = [place.number, place.at, place.length]
    return [entry.key, entry.task_id, entry.number, *where, entry.mark, entry.session]


def _is_same(found: list[int] | None, known: Any) -> bool:
    """Whether a file still begins with the bytes that were identified before; it may have grown."""
    if found is None or not isinstance(known, list):
        return False
    return found[:-1] == known[:-1] and found[-1] in (0, known[-1])


def _identified(rows: Path | None, at: int) -> list[int] | None:
    """Return what identifies the first `at` bytes of a file; None if it does not have them."""
    if rows is None or at <= 0:
        return None
    try:
        with rows.open("rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_size < at:
                return None
            start = zlib.crc32(os.pread(file.fileno(), min(at, _MARK_BYTES), 0))
            last = max(0, at - _MARK_BYTES)
            end = zlib.crc32(os.pread(file.fileno(), at - last, last))
    except OSError:
        return None
    changed = facts.st_mtime_ns if facts.st_size == at else 0
    return [facts.st_dev, facts.st_ino, start, end, changed]


def _is_json(fd: int, place: LinePlace) -> bool:
    """Whether an incomplete last line is a whole row."""
    if os.pread(fd, 1, place.at + place.length - 1) != b"}":
        return False
    try:
        json.loads(os.pread(fd, place.length, place.at))
    except (ValueError, RecursionError):
        return False
    return True
