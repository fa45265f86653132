"""Runs in the list, and the facts about journals that identify them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.viewer.runs.row_heads import LinePlace
from ck_main.viewer.runs.summaries import Summary
from ck_pro.exceptions import JournalError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE
from ck_pro.journal.packed import open_events

_FIRST_EVENTS = 3
_MAX_LINE = 4 * 2**20


@dataclass(eq=False, slots=True)
class Entry:
    """A run in the list.

    Attributes:
        key: see `sources.key_of`.
        source: its index in the sources.
        task_id: id of its task.
        number: "1", "2", ... for tries; "attempt-1", ... for attempts that were restarted.
        place: the line of its row; None if there is only a journal.
        earlier: index among the earlier tries in the row; None for the row's last try.
        mark: a checksum of the row's line.
        session: id of the row's main session.
        journal: the folder of its journal; None if there is none, or it is not known yet.
        summary: its line in the table.
        shown: whether it is in the table; earlier tries and attempts are not.
        complete: whether the summary is from the whole run.
        changed: version of the list at its last change.
        read: the stamp at the last reading.
        searched: whether its journal was searched for.
    """

    key: str
    source: int
    task_id: str
    number: str
    place: LinePlace | None = None
    earlier: int | None = None
    mark: int = 0
    session: str = ""
    journal: Path | None = None
    summary: Summary = field(default_factory=dict)
    shown: bool = True
    complete: bool = False
    changed: int = 0
    read: str = ""
    searched: bool = False

    @property
    def stamp(self) -> str:
        """A text that changes when the run changes."""
        if self.place is not None:
            return f"{self.place.at} {self.place.length} {self.mark} {self.earlier}"
        return " ".join(map(str, journal_state(self.journal)))


def journal_state(folder: Path | None) -> tuple[int, ...]:
    """Return size and time of a journal; () if there is none."""
    if folder is None:
        return ()
    for name in (EVENTS_FILE, COMPRESSED_FILE):
        try:
            facts = (folder / name).stat()
        except OSError:
            continue
        return (facts.st_size, facts.st_mtime_ns)
    return ()


def first_session(folder: Path) -> str:
    """Return the id of a journal's main session; "" if it cannot be read."""
    return next((str(event.get("sid")) for event in _first_events(folder)), "")


def task_id_of(folder: Path) -> str:
    """Return the task's id from the first lines of a journal; "" if they do not have it."""
    for event in _first_events(folder):
        data = event.get("data")
        if event.get("kind") == "task" and isinstance(data, dict) and data.get("id"):
            return str(data["id"])
    return ""


def _first_events(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the first events of a journal; none if it is damaged, which opening it reports."""
    try:
        with open_events(folder) as file:
            for _ in range(_FIRST_EVENTS):
                line = file.readline(_MAX_LINE)
                event = json.loads(line) if line.endswith(b"\n") else None
                if isinstance(event, dict):
                    yield event
    except (JournalError, ValueError, RecursionError):
        return
