"""The list of runs of all sources, with a version that grows with each change."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ck_main.runner.task_folder import claimed, in_use
from ck_main.viewer.runs.entries import Entry, journal_state
from ck_main.viewer.runs.open_runs import OpenRuns, close, find_journal, new_reader
from ck_main.viewer.runs.outline import IN_PROGRESS
from ck_main.viewer.runs.row_run import RowRun
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.scanner import Scanner
from ck_main.viewer.runs.sources import Source, parts_of
from ck_main.viewer.runs.summaries import COLUMNS

_MAX_TRIES = 100
_KEY = re.compile(r"[0-9a-f]{12}")
LIVE_SECONDS = 900.0
"""A journal without a lock that did not grow for so long is no longer live."""


class Library:
    """All runs of the sources.

    Args:
        sources: the inputs.

    Attributes:
        labels_of: returns the labels of a run for the table.
        relabelled: returns the runs whose labels changed since its last call.
        sources: the inputs.
        version: grows with each change of the list.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.labels_of: Callable[[Entry], list[str] | None] = lambda entry: None
        self.relabelled: Callable[[], list[Entry]] = list
        self.sources = list(sources)
        self.version = 0
        self._missed: dict[str, int] = {}
        self._scanners = [Scanner(n, source) for n, source in enumerate(self.sources)]
        self._open = OpenRuns()
        self._claimed: set[Path] = set()
        self._changed = threading.Condition()

    # --- the list ----------------------------------------------------------------------------

    def entries(self) -> list[Entry]:
        """Return the runs in the table, in order of the sources."""
        return [e for s in self._scanners for e in list(s.entries.values()) if e.shown]

    def entry(self, key: str) -> Entry | None:
        """Return a run by its key, also an earlier try or an old attempt."""
        found = self.known(key)
        if found is None and _KEY.fullmatch(key) and self._missed.get(key) != self.version:
            for entry in self.entries():
                # reading all rows for their earlier tries would take long
                if entry.number != "1" or entry.journal or self.sources[entry.source].folder:
                    self.parts(entry, in_rows=entry.number != "1")
            found = self.known(key)
            if found is None:
                self._missed = {key: self.version}
        return found

    def known(self, key: str) -> Entry | None:
        """Return a run by its key if the list has it."""
        return next((s.entries[key] for s in self._scanners if key in s.entries), None)

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
        """Whether a command uses a run: it has locked the folder, or probably writes the journal.

        Programs that run agents without a command lock no folder.
        """
        if entry.journal is None or entry.summary.get("status") not in (IN_PROGRESS, None):
            return False
        if entry.journal in self._claimed:
            return False
        used = in_use(entry.journal)
        if used is not None:
            return used
        state = journal_state(entry.journal)
        return bool(state) and time.time() - state[1] / 1e9 < LIVE_SECONDS

    @contextmanager
    def claimed(self, folder: Path) -> Iterator[bool]:
        """Lock a run's folder, as `claimed`; the run does not become live by it."""
        self._claimed.add(folder)
        try:
            with claimed(folder) as locked:
                yield locked
        finally:
            self._claimed.discard(folder)

    def problems(self) -> list[str]:
        """Return lines that give no run."""
        return [p for s in self._scanners for p in (*s.problems, *((s.torn,) if s.torn else ()))]

    def scanner(self, source: int) -> Scanner:
        """Return the scanner of a source."""
        return self._scanners[source]

    def scan(self) -> None:
        """Find new rows, journals and labels."""
        for scanner in self._scanners:
            scanner.scan(self.touch)
        relabelled = self.relabelled()
        if relabelled:
            self.touch(relabelled)

    # --- changes -----------------------------------------------------------------------------

    def touch(self, entries: Iterable[Entry]) -> None:
        """Mark runs as changed."""
        with self._changed:
            self.version += 1
            for entry in entries:
                entry.changed = self.version
            self._changed.notify_all()

    def changed_since(self, version: int) -> list[Entry]:
        """Return the runs that changed after a version, also those that left the table."""
        everything = [e for s in self._scanners for e in (*s.gone, *list(s.entries.values()))]
        return [entry for entry in everything if entry.changed > version]

    def wait(self, version: int, seconds: float, ended: threading.Event) -> int:
        """Wait until the list is newer than a version; return its version."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while self.version <= version and not ended.is_set():
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, 0.5))
            return self.version

    # --- one run -----------------------------------------------------------------------------

    @contextmanager
    def opened(self, entry: Entry) -> Iterator[RunReader]:
        """Open a run, or use it again; read what is new.

        Raises:
            InputError: its row cannot be read.
        """
        rows = self.sources[entry.source].rows
        tasks = self._scanners[entry.source].task_folders_of(entry)
        with self._open.opened(entry, rows, tasks) as reader:
            yield reader

    def close(self) -> None:
        """Close all runs; each opens again when it is used."""
        self._open.close()

    @contextmanager
    def read_once(self, entry: Entry) -> Iterator[RunReader]:
        """Open a run, and close it at the end.

        Raises:
            InputError: its row cannot be read.
        """
        find_journal(entry, self._scanners[entry.source].task_folders_of(entry))
        reader = new_reader(entry, self.sources[entry.source].rows)
        try:
            reader.refresh()
            yield reader
        finally:
            close(reader)

    def parts(self, entry: Entry, *, in_rows: bool = True) -> list[Entry]:
        """Return all tries and old attempts of a run's task, this one included.

        Args:
            entry: the run.
            in_rows: whether to read its row for earlier tries.
        """
        scanner = self._scanners[entry.source]
        tasks = scanner.task_folders_of(entry)
        find_journal(entry, tasks)
        found: dict[str, Entry] = {}
        for task in tasks:
            for part in parts_of(task):
                if part.folder == entry.journal:
                    found[entry.key] = entry
                    continue
                one = scanner.add_journal(task, part.folder, part.name, shown=False)
                found[one.key] = one
        if not found and in_rows:
            found = {one.key: one for one in self._earlier_tries(entry)}
        found[entry.key] = entry
        return list(found.values())

    def _earlier_tries(self, entry: Entry) -> list[Entry]:
        """Return the earlier tries in a row without journals."""
        if entry.place is None or entry.earlier is not None:
            return []
        with self.opened(entry) as reader:
            number = reader.earlier if isinstance(reader, RowRun) else 0
        scanner = self._scanners[entry.source]
        return [scanner.add_earlier(entry, n) for n in range(min(number, _MAX_TRIES))]
