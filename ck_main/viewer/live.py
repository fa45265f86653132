"""Follow the sources in the background: new rows, new journals, and journals that grow."""

from __future__ import annotations

import threading

from ck_main.viewer.runs.library import Entry, Library, journal_state
from ck_pro.exceptions import CKError

FAST_SECONDS = 0.4
"""Time between looks at runs that are live."""
SLOW_EVERY = 12
"""One look in so many is at all runs."""


class Follower:
    """A daemon thread that keeps a library up to date until `ended` is set.

    Args:
        library: the runs.
        ended: ends the thread.
    """

    def __init__(self, library: Library, ended: threading.Event) -> None:
        self._library, self._ended = library, ended

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._follow, name="ck-viewer-follow", daemon=True).start()

    def _follow(self) -> None:
        turn = 0
        while not self._ended.is_set():
            self.look(all_runs=turn % SLOW_EVERY == 0)
            turn += 1
            self._ended.wait(FAST_SECONDS)

    def look(self, *, all_runs: bool = True) -> None:
        """Read what is new once."""
        self._library.scan()
        changed: list[Entry] = []
        for entry in self._library.entries():
            if self._ended.is_set():
                return
            if entry.complete and not (all_runs or self._library.is_live(entry)):
                continue
            if self._renew(entry):
                changed.append(entry)
                if len(changed) >= 100:
                    self._library.touch(changed)
                    changed = []
        if changed:
            self._library.touch(changed)

    def _renew(self, entry: Entry) -> bool:
        """Read a run again if it is new or has grown; return whether its line changed."""
        if entry.complete and (
            entry.journal is None or journal_state(entry.journal) == entry.state
        ):
            return False
        try:
            self._library.refresh_summary(entry)
        except CKError as e:
            entry.complete = True
            entry.summary["problem"] = str(e)
        return True
