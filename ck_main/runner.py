"""The runner: tasks in, rows out, one folder per task, and nothing lost on the way.

`<output without its ending>/<task>/` holds the journal (`events.jsonl`, `blobs/`) and `work/`, the
folder in which the task's code runs, with the task's file in it. What an attempt that was
interrupted left there moves to `attempt-1/`, `attempt-2/`, ... A task whose row is in the output
is not run again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

from ck_main.attempt import (
    Agent,
    Assignment,
    Attempt,
    TaskJournal,
    claimed,
    recorded_row,
    stop_reasons,
)
from ck_main.dataset import Task
from ck_main.rows import Outcome, OutputError, RowFile, what_to_do
from ck_pro.exceptions import CKError, ContentFiltered, JournalError, ManualAbort, ReplayError
from ck_pro.model import Budget
from ck_pro.session import AgentSession, Status, StopReason

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 2.0
# faults of one task, and of no service: a recording that does not fit it, a filtered prompt
_OWN_FAULTS = frozenset(e.__name__ for e in (ReplayError, ContentFiltered))


class ExitCode(IntEnum):
    """What a command's exit code means."""

    DONE = 0
    PROBLEM = 1
    USAGE = 2
    LINES = 3
    OUTPUT = 4
    UNREACHABLE = 5
    INTERNAL = 6
    STOPPED = 130


class Watcher(Protocol):
    """What the runner tells, from several threads; `ck_main.display` has those for people."""

    def started(self, task: Task) -> None:
        """A task begins."""

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        """Something happened in a task; the dicts of `MultiStepAgent.run`'s `on_event`."""

    def ended(self, outcome: Outcome) -> None:
        """A task ended and its row is in the output."""

    def note(self, text: str) -> None:
        """One line that a person should see."""


@dataclass(frozen=True)
class RunOptions:
    """How tasks are run.

    Args:
        workers: tasks at once.
        max_steps, max_seconds, max_tokens, max_money: limits of one task, over all its agents;
            None means no limit. Seconds of wall time, USD.
        probe: raises a `CKError` while a service that all tasks need cannot be reached, or
            refuses. Asked after a task in which a service failed, at any depth, before its row is
            written: an outage must not use up this task, nor the others.
    """

    workers: int = 1
    max_steps: int | None = None
    max_seconds: float | None = None
    max_tokens: int | None = None
    max_money: float | None = None
    probe: Callable[[], None] | None = None

    def budget(self) -> Budget:
        """A fresh budget for one task; its clock starts now."""
        return Budget(self.max_steps, self.max_seconds, self.max_tokens, self.max_money)


class TaskRunner:
    """Runs tasks with one agent object and appends their rows.

    Args:
        agent: serves all tasks, several at once.
        rows: the output.
        options: see `RunOptions`.
        watcher: told of everything that happens.
        stop: set it, from any thread, to stop: tasks under way end without a row.
        target_url: the page to begin with, for tasks that name none.
    """

    def __init__(
        self,
        agent: Agent,
        rows: RowFile,
        options: RunOptions,
        watcher: Watcher,
        stop: threading.Event | None = None,
        *,
        target_url: str | None = None,
    ):
        self.target_url = target_url
        self.agent, self.rows, self.options, self.watcher = agent, rows, options, watcher
        self.stop = stop or threading.Event()
        self.outcomes: dict[str, Outcome] = {}
        """Of the tasks that this runner ended, by id."""
        self.failure: CKError | None = None
        """What stopped the whole run, if something did."""
        self._lock, self._probing = threading.Lock(), threading.Lock()
        try:
            rows.folder.mkdir(exist_ok=True)
            if not os.access(rows.folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as e:
            raise OutputError(
                f"cannot write the folder {rows.folder} for the tasks' files: {e.strerror}; "
                + what_to_do(e)
            ) from None

    def run(self, tasks: Iterable[Task]) -> None:
        """Run all tasks that have no row yet; returns when they ended, or when stopped.

        Raises:
            KeyboardInterrupt: interrupted at once.
            CKError: `failure`: the output could not be written, or a service was lost.
        """
        queue = iter(tasks)
        if self.options.workers == 1:
            self._work(queue)
        else:
            self._run_threads(queue)
        if self.failure is not None:
            raise self.failure

    def _run_threads(self, queue: Iterator[Task]) -> None:
        # daemons: an interrupted main thread must not wait for a model that never answers
        threads = [
            threading.Thread(target=self._work, args=(queue,), daemon=True, name=f"tasks-{n}")
            for n in range(self.options.workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            self.stop.set()
            deadline = time.monotonic() + _GRACE_SECONDS
            for thread in threads:  # those about to end may still write their rows
                thread.join(max(0.0, deadline - time.monotonic()))
            raise

    def _work(self, queue: Iterator[Task]) -> None:
        while not self.stop.is_set():
            with self._lock:
                task = next(queue, None)
            if task is None:
                return
            try:
                self._run_claimed(task)
            except (OutputError, JournalError, OSError) as e:
                self._fail(e if isinstance(e, CKError) else OutputError(_said(e)))

    def _fail(self, error: CKError) -> None:
        with self._lock:
            self.failure = self.failure or error
        self.stop.set()

    def _run_claimed(self, task: Task) -> None:
        folder = self.rows.folder / task.folder
        with claimed(folder) as ours:
            if not ours:
                self.watcher.note(f"{task.id}: another run is at it; left to that")
            elif not self.rows.has(task.id):
                self._run_task(task, folder)

    def _run_task(self, task: Task, folder: Path) -> None:
        row = recorded_row(folder, task)
        if row is not None:  # it ended, but its runner was killed before the row was written
            self._ended(row, None)
            return
        self.watcher.started(task)
        with self._attempt(task, folder) as attempt:
            attempt.run()
            if self._counts(attempt):
                self._ended(attempt.finish(), attempt)

    def _attempt(self, task: Task, folder: Path) -> Attempt:
        target_url = task.target_url or self.target_url
        info = {"target_url": target_url} if target_url else {}
        return Attempt(
            self.agent,
            Assignment(task, folder, info=info),
            budget=self.options.budget(),
            cancel=self.stop,
            on_event=lambda event: self.watcher.event(task.id, event),
        )

    def _counts(self, attempt: Attempt) -> bool:
        """Whether an attempt came to an end that is a row: not if it was stopped or cut off."""
        name = attempt.assignment.task.id
        if attempt.session.status is Status.IN_PROGRESS:
            said = f"{name}: stopped before its end; the same command runs it again"
            self.watcher.note(said)
            return False
        outage = self._outage(attempt.session, attempt.journal)
        if outage is not None:
            self.watcher.note(f"{name}: not counted, no row; the same command runs it again")
            self._fail(outage)
        return outage is None

    def _ended(self, row: dict[str, Any], attempt: Attempt | None) -> None:
        """Write a row; `attempt` is the one that just gave it, open."""
        self.rows.append(row)
        if attempt is not None:
            attempt.written()
        money = attempt.budget.snapshot()["money"] if attempt is not None else None
        outcome = Outcome.of_row(row, money=money)
        self.outcomes[outcome.id] = outcome
        self.watcher.ended(outcome)

    def _outage(self, session: AgentSession, journal: TaskJournal) -> CKError | None:
        """What no task can do without, if that failed in this one and is still gone."""
        names = {name for name, _ in journal.failures}
        if ManualAbort.__name__ in names:  # the person has gone, there is nobody to ask
            return ManualAbort(next(s for n, s in journal.failures if n == ManualAbort.__name__))
        reasons = set(stop_reasons(session))
        unclear = StopReason.MODEL_FAILURE in reasons and not names
        lost = StopReason.ENVIRONMENT_FAILURE in reasons or unclear or bool(names - _OWN_FAULTS)
        if self.options.probe is None or not lost:
            return None
        with self._probing:
            if self.failure is not None:
                return self.failure
            try:
                self.options.probe()
            except CKError as e:
                self._fail(e)
                return e
        return None


def _said(error: OSError) -> str:
    name = f" {error.filename}" if error.filename else ""
    return f"cannot write a task's folder:{name}: {error.strerror}; {what_to_do(error)}"
