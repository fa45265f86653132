"""Follow the sources in the background: new rows, new journals, and journals that grow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.library import Library
from ck_main.viewer.search.indexer import Indexer

FAST_SECONDS = 0.4
"""Time between looks at runs that are live."""
SLOW_EVERY = 12
"""One look in so many is at all runs."""
_REPORT_SECONDS = 0.5
_MANY = 500
_QUIET_SECONDS = 1.5
_MAX_FAILURES = 5
_JOIN_SECONDS = 5.0


class Follower:
    """A daemon thread that keeps a library and its index up to date until `ended` is set.

    Args:
        library: the runs.
        indexer: reads new runs.
        ended: ends the thread.
        on_error: called with an unexpected error; returns where its log is.

    Attributes:
        failures: unexpected errors, one line each.
    """

    def __init__(
        self,
        library: Library,
        indexer: Indexer,
        ended: threading.Event,
        on_error: Callable[[BaseException], str],
    ) -> None:
        self._library, self._indexer, self._ended = library, indexer, ended
        self._on_error = on_error
        self.failures: list[str] = []
        self._waiting: list[Entry] = []
        self._live: dict[str, Entry] = {}
        self._reported = 0.0
        self._total = self._done = 0

        self._thread = threading.Thread(target=self._follow, name="ck-viewer-follow", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait a moment for the thread to end, once `ended` is set."""
        self._thread.join(_JOIN_SECONDS)

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """How many runs are read, of those to read; None if there is nothing to read."""
        return {"done": self._done, "total": self._total} if self._total else None

    def _follow(self) -> None:
        self._restore()
        turn = 0
        while not self._ended.is_set():
            self._look_safely(all_runs=turn % SLOW_EVERY == 0)
            if turn == 0 and not self._ended.is_set():
                self._indexer.remove_gone()
            turn += 1
            self._ended.wait(FAST_SECONDS)
        self._indexer.close()
        self._library.close()

    def _restore(self) -> None:
        try:
            self._indexer.restore()
        except Exception as e:  # noqa: BLE001 - the scan then finds the rows
            self._fail(e)

    def _look_safely(self, *, all_runs: bool) -> None:
        try:
            self.look(all_runs=all_runs)
        except Exception as e:  # noqa: BLE001 - the thread's outermost boundary
            self._fail(e)

    def _fail(self, error: Exception) -> str:
        """Record an unexpected error; return it as one line."""
        text = f"internal error: {type(error).__name__}: {error}"
        if len(self.failures) < _MAX_FAILURES:
            text = f"{text}; {self._on_error(error)}"
            self.failures.append(text)
        return text

    def look(self, *, all_runs: bool = True) -> None:
        """Read what is new once: live runs first."""
        self._library.scan()
        self._report_ended()
        found = [entry for entry in self._library.entries() if self._is_new(entry, all_runs)]
        found = [entry for entry in found if not self._recalled(entry)]
        found.sort(key=lambda entry: entry.place is not None)
        self._total, self._done = len(found), 0
        if len(found) > _MANY:
            self._ended.wait(_QUIET_SECONDS)  # the page opens first
        for entry in found:
            if self._ended.is_set():
                break
            self._renew(entry)
            self._done += 1
            self._report(entry)
        self._total = 0
        self._report(None)
        if found:
            self._library.touch(())  # pages that wait learn that the search is complete
        if all_runs and not self._ended.is_set():
            self._indexer.save()

    def _report_ended(self) -> None:
        """Report runs whose command was killed: their journals do not change."""
        live = {e.key: e for e in self._library.entries() if self._library.is_live(e)}
        ended = [entry for key, entry in self._live.items() if key not in live]
        self._live = live
        if ended:
            self._library.touch(ended)

    def _renew(self, entry: Entry) -> None:
        try:
            self._indexer.renew(entry, self._report)
        except Exception as e:  # noqa: BLE001 - a broken run must not hide the others
            entry.summary["problem"] = self._fail(e)
            entry.complete, entry.read = True, entry.stamp

    def _is_new(self, entry: Entry, all_runs: bool) -> bool:
        if not entry.complete:
            return True
        if not (all_runs or self._library.is_live(entry)):
            return False
        return entry.stamp != entry.read

    def _recalled(self, entry: Entry) -> bool:
        """Take the line of a run from the index if the run did not change."""
        found = self._indexer.recall(entry)
        if found:
            self._report(entry)
        return found

    def _report(self, entry: Entry | None) -> None:
        """Collect changed runs, and report them in groups; None reports the rest."""
        if entry is not None:
            self._waiting.append(entry)
        now = time.monotonic()
        if self._waiting and (entry is None or now - self._reported > _REPORT_SECONDS):
            self._library.touch(self._waiting)
            self._waiting, self._reported = [], now
