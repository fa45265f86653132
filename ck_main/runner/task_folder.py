"""The folder of a task: its lock, and the earlier attempts in it.

An attempt has its journal and `work/`, the working directory of the task's code. Files of an
earlier attempt move to `attempt-1/`, `attempt-2/`, ... With several tries each try has its own
folder, `try-1/`, `try-2/`, ...

In a journal, the event `eval` marks a complete row that can be rebuilt. The event `row` marks a
row that was written.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ck_main.output.row import row_of, task_facts
from ck_main.output.row_schema import OutputRow, TaskFacts
from ck_main.tasks.dataset import Task
from ck_pro.events import EventKind, JournalEvent
from ck_pro.exceptions import JournalError
from ck_pro.journal import JOURNAL_FILES, WORK_FOLDER, Journal, is_journal, read_events
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import PriorUsage, read_interrupted_run
from ck_pro.session import AgentSession

_log = logging.getLogger(__name__)
LOCK_FILE = "lock"
# a journal of another version, or one that was edited
UNUSABLE = (JournalError, KeyError, TypeError, ValueError, AttributeError)
"""Errors raised when a journal that cannot be resumed is read."""


_PROBE_WAITS = (0.01, 0.02, 0.04)
"""Seconds between attempts to get the lock, which `in_use` holds for a moment."""
_TRY = re.compile(r"try-\d+")


@contextmanager
def claimed(folder: Path, wait: Callable[[float], None] = time.sleep) -> Iterator[bool]:
    """Lock a task's folder against other processes; yield False if another one has the lock.

    Args:
        folder: the folder; it is created if necessary.
        wait: waits for seconds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        locked = _locked(fd, fcntl.LOCK_EX)
        for seconds in _PROBE_WAITS:
            if locked:
                break
            wait(seconds)
            locked = _locked(fd, fcntl.LOCK_EX)
        yield locked
    finally:
        os.close(fd)


def in_use(folder: Path) -> bool | None:
    """Return whether a command uses an attempt's folder; None if none has ever locked it.

    The lock of a command that was killed is free.
    """
    known = None
    for place in (folder, folder.parent) if _TRY.fullmatch(folder.name) else (folder,):
        try:
            fd = os.open(place / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            known = not _locked(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)
        if known:
            return True
    return known


def _locked(fd: int, kind: int) -> bool:
    """Lock a file; return False if another process has the lock."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def attempt_files(folder: Path) -> list[str]:
    """Return the names of an attempt's files in its folder."""
    return [n for n in (*JOURNAL_FILES, WORK_FOLDER) if (folder / n).exists()]


def tries_in(folder: Path, first: int = 1) -> list[str]:
    """Return the names of a task's try folders, from number `first` on."""
    names = [p.name for p in folder.glob("try-*")]
    return sorted(n for n in names if n[4:].isdigit() and int(n[4:]) >= first)


def set_aside(folder: Path, names: Sequence[str]) -> Path | None:
    """Move files and folders to the next free `attempt-N` and return it; None without names."""
    if not names:
        return None
    number = 1
    while (folder / f"attempt-{number}").exists():
        number += 1
    aside = folder / f"attempt-{number}"
    aside.mkdir()
    for name in names:
        (folder / name).rename(aside / name)
    return aside


def attempts_in(folder: Path) -> int:
    """Count the attempts in a folder."""
    return sum(1 for _ in folder.glob("attempt-*")) + is_journal(folder)


class PreviousAttempt:
    """An attempt of an earlier run; reads its journal once, on first use.

    Args:
        folder: folder of the attempt, locked by the caller.

    Attributes:
        refused: one line that explains why the attempt cannot be resumed; "" if not needed.
    """

    def __init__(self, folder: Path):
        self.folder, self.refused = folder, ""

    @cached_property
    def _events(self) -> list[JournalEvent]:
        """Events of the journal; empty if there is no readable journal."""
        if not is_journal(self.folder):
            return []
        try:
            return list(read_events(self.folder))
        except UNUSABLE as e:
            self._refuse(e)
            return []

    @cached_property
    def _found(self) -> tuple[InterruptedSession | None, PriorUsage]:
        if not self._events:
            return None, PriorUsage()
        try:
            return read_interrupted_run(self._events)
        except UNUSABLE as e:
            self._refuse(e)
            return None, PriorUsage()

    def _refuse(self, error: Exception) -> None:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        self.refused = f"its journal is not usable ({message})"
        _log.warning("%s: %s", self.folder, self.refused)

    @property
    def facts(self) -> TaskFacts | None:
        """Facts about the task: the data of the event `task`."""
        found = (e["data"] for e in self._events if e["kind"] == EventKind.TASK)
        return next(found, None)

    @property
    def session(self) -> AgentSession | None:
        """The main session; None without a usable journal."""
        cut = self._found[0]
        return None if cut is None else cut.session

    @property
    def complete(self) -> bool:
        """Whether the attempt has a complete row, written or not."""
        return any(e["kind"] in (EventKind.EVAL, EventKind.ROW) for e in self._events)

    def row(self, task: Task, *, written: bool = False) -> OutputRow | None:
        """Rebuild the row that is missing from the output; None if the task must run.

        Args:
            task: the task; if it changed, the result is None.
            written: also return a row that was written, because the output lost it. Otherwise a
                written row was removed on purpose, to run the task again.
        """
        try:
            row = row_of(self._events, written=written)
        except UNUSABLE as e:
            self._refuse(e)
            return None
        if row is None:
            return None
        facts = masked_facts(task_facts(task))
        return row if all(row.get(k) == v for k, v in facts.items()) else None

    def unfinished(
        self, facts: TaskFacts, *, completed: bool = False
    ) -> tuple[InterruptedSession, PriorUsage] | None:
        """Return the session to resume, or None if there is none for this task.

        Args:
            facts: facts about the task, for its row.
            completed: also resume an attempt with a complete row.
        """
        cut, used = self._found
        known = self.facts
        if cut is None or known is None or "start_time" not in cut.session.info:
            return None
        given = masked_facts(facts)
        if known != given:
            changed = sorted(k for k in {*known, *given} if known.get(k) != given.get(k))
            self.refused = f"the task changed since it was started ({', '.join(changed)})"
            return None
        if self.complete and not completed:
            return None  # a complete attempt is run again, not resumed
        return cut, used


def masked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as a journal stores them: with secrets masked."""
    masked: dict[str, Any] = Journal().masked(dict(facts))
    return masked
