"""One attempt at a task: its folder, its journal, and an end whatever happened."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ck_pro.journal import BLOBS_FOLDER, EVENTS_FILE, Journal
from ck_pro.session import AgentSession, StopReason

WORK_FOLDER = "work"
"""Where, in a task's folder, its code runs."""
LOCK_FILE = "lock"


class TaskJournal(Journal):
    """A journal that remembers the model calls that failed for good."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.failures: list[tuple[str, str]] = []
        """Name of the error's class, and what it said."""

    def append(self, kind: str, **facts: Any) -> dict[str, Any]:
        """See `Journal.append`."""
        event = super().append(kind, **facts)
        if kind == "model_failed":
            name, _, said = event["data"]["error"].partition(": ")
            self.failures.append((name, said))
        return event


def stop_reasons(session: AgentSession) -> Iterator[StopReason | None]:
    """Why a session, and each one below it, ended."""
    yield session.stop_reason
    for child in session.children.values():
        yield from stop_reasons(child)


@contextmanager
def claimed(folder: Path) -> Iterator[bool]:
    """Hold a task's folder against other processes; False if one has it."""
    folder.mkdir(parents=True, exist_ok=True)
    fd = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)


def set_aside(folder: Path) -> None:
    """Move what an interrupted attempt left to the next free `attempt-N`."""
    left = [n for n in (EVENTS_FILE, BLOBS_FOLDER, WORK_FOLDER) if (folder / n).exists()]
    if not left:
        return
    number = 1
    while (folder / f"attempt-{number}").exists():
        number += 1
    (folder / f"attempt-{number}").mkdir()
    for name in left:
        (folder / name).rename(folder / f"attempt-{number}" / name)


def end_broken(session: AgentSession, journal: Journal, error: Exception) -> None:
    """Give a session that an error of ours cut off what every row has: a step and an end."""
    said = f"{type(error).__name__}: {error}"
    reason = StopReason.INTERNAL_ERROR
    ending: list[tuple[str, dict[str, Any]]] = []
    if "start_time" not in session.info:
        ending.append(("session", {"task": session.task, "agent": session.agent}))
    if not session.steps:
        ending.append(("step", {}))
    if session.final_results is None:
        ending.append(("end", {"final_results": {"output": "", "log": said}}))
    status = {"status": reason.status.value, "stop_reason": reason.value, "message": said}
    for kind, data in [*ending, ("status", status)]:
        session.apply(journal.append(kind, sid=session.id, data=data))
