"""The runner: tasks in, rows out, one folder per task, and nothing lost on the way.

`<output without its ending>/<task>/` holds the journal (`events.jsonl`, `blobs/`) and `work/`, the
folder in which the task's code runs, with the task's file in it. What an earlier attempt left
there moves to `attempt-1/`, `attempt-2/`, ... Of several tries each has such a folder of its own,
`<task>/try-1/`, ... A task whose row is in the output is not run again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from ck_main.output.row_file import Outcome, RowFile, tries_path, what_to_do
from ck_main.runner.attempt import Agent, Assignment, Attempt
from ck_main.runner.failures import may_be_outage, passing_fault, person_gone
from ck_main.runner.limits import RunBudget, TaskBudget
from ck_main.runner.previous_attempt import PreviousAttempt
from ck_main.runner.row_recovery import rows_from_journals
from ck_main.runner.run_options import ExitCode, RunOptions
from ck_main.runner.task_folder import attempts_in, claimed
from ck_main.runner.tries import TaskTries
from ck_main.runner.watcher import Watcher
from ck_main.tasks.dataset import Task
from ck_pro.exceptions import CKError, JournalError, OutputError
from ck_pro.model import Budget
from ck_pro.session import Status

__all__ = ["ExitCode", "RunOptions", "TaskRunner", "Watcher"]
_log = logging.getLogger(__name__)
_GRACE_SECONDS = 2.0
# Of two signals at once another thread may take both: then nothing ends a wait of the main thread,
# which alone runs their handlers. So it waits in pieces.
_LOOK_SECONDS = 0.2

_T = TypeVar("_T")


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
        self.budget = RunBudget(options.run)
        """What all tasks use; its clock runs."""
        self.limit: str | None = None
        """One line: which limit of the run was reached, if one was."""
        self._lock, self._probing = threading.Lock(), threading.Lock()
        self._keeping = threading.Lock()
        self._restoring = threading.Lock()
        self._known: dict[str, Task] = {}
        self._unrestorable: set[str] = set()
        self._tries: RowFile | None = None
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
        try:
            with self.budget.stopping(self.stop):
                if self.options.workers == 1:
                    self._work(queue)
                else:
                    self._run_threads(queue)
                self._restore()
        finally:
            if self.stop.is_set():  # perhaps by the clock
                self.limit = self.limit or self.budget.used_up()
            if self._tries is not None:
                self._tries.close()
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
                while thread.is_alive():
                    thread.join(_LOOK_SECONDS)
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
            if self.options.tries is not None:
                self._known[task.id] = task
            self._restore()
            if task.id in self.rows.done:
                continue
            if not self._goes_on():
                return
            try:
                self._run_claimed(task)
            except (OutputError, JournalError, OSError) as e:
                self._fail(e if isinstance(e, CKError) else OutputError(_said(e)))

    def _restore(self) -> None:
        """Write the rows again that the output lost because a program truncated it."""
        with self._restoring:
            lost = self.rows.lost - self._unrestorable
            if not lost:
                return
            try:
                for row in rows_from_journals(self.rows.folder, lost):
                    self.rows.restore(row)
                self._restore_tries(self.rows.lost & lost)
            except (OutputError, JournalError, OSError) as e:
                self._fail(e if isinstance(e, CKError) else OutputError(_said(e)))
            self._unrestorable |= self.rows.lost
            self.watcher.note(
                f"{self.rows.path} was truncated while this run wrote to it: of {len(lost)} lost "
                f"rows, {len(lost - self.rows.lost)} are written again from their journals"
            )

    def _restore_tries(self, lost: Collection[str]) -> None:
        """Write the rows of tasks with several tries again."""
        for name in lost:
            task = self._known.get(name)
            if task is None or self.options.tries is None:
                continue
            folder = self.rows.folder / task.folder
            row = TaskTries(self, task, folder, self.options.tries).rebuilt()
            if row is not None:
                self.rows.restore(row)

    def _goes_on(self) -> bool:
        """Whether something new may begin."""
        self.limit = self.limit or self.budget.used_up()
        return self.limit is None and not self.stop.is_set()

    def _fail(self, error: CKError) -> None:
        with self._lock:
            self.failure = self.failure or error
        self.stop.set()

    def _run_claimed(self, task: Task) -> None:
        folder = self.rows.folder / task.folder
        with claimed(folder) as ours:
            if not ours:
                self.say(task, "another run is at it; left to that")
            elif not self.rows.has(task.id):
                self._run_task(task, folder)

    def _run_task(self, task: Task, folder: Path) -> None:
        lost = task.id in self.rows.lost or task.id in self.rows.torn
        if self.options.tries is not None:
            TaskTries(self, task, folder, self.options.tries, written=lost).run()
            return
        earlier = PreviousAttempt(folder)
        row = earlier.row(task, written=lost)
        if row is not None:  # it ended, but its runner was killed before the row was written
            self.write(row)
            return
        self.carry_out(Assignment(task, folder, earlier=earlier))

    def carry_out(self, assignment: Assignment) -> None:
        """Work on a task to its end and write its row; without a row if it was stopped."""
        self.begins(assignment.task)
        spent = TaskBudget(parent=self.budget)

        def close(attempt: Attempt) -> None:
            self.write(attempt.finish(), spent)
            attempt.written()

        self.attempt(self.agent, assignment, spent, close)

    def begins(self, task: Task) -> None:
        """Tell that work on a task begins."""
        self.watcher.started(task)

    def tell(self, task: Task, event: dict[str, Any]) -> None:
        """Tell of something that happened in a task."""
        self.watcher.event(task.id, event)

    def attempt(
        self, agent: Agent, assignment: Assignment, spent: Budget, close: Callable[[Attempt], _T]
    ) -> _T | None:
        """Make attempts until one ends otherwise than by a passing fault, or there were enough.

        Args:
            agent: works on it.
            assignment: the task, and the folder, which is claimed.
            spent: charged with what all attempts use.
            close: called with the last attempt, ended and still open.

        Returns:
            What `close` returned; None if the attempts were stopped, or cut off by an outage.
        """
        target_url = assignment.task.target_url or self.target_url
        where = {"target_url": target_url} if target_url else {}
        faults: list[str] = []
        while True:
            count = {"attempts": attempts_in(assignment.folder) + 1}
            earlier = {"earlier_faults": list(faults)} if faults else {}
            info = {
                **where,
                **self.options.recorded_limits(),
                **assignment.info,
                **count,
                **earlier,
            }
            given = replace(assignment, info=info)
            with Attempt(
                agent,
                replace(given, afresh=True, earlier=None) if faults else given,
                budget=self.options.budget(spent),
                cancel=self.stop,
                on_event=lambda event: self.watcher.event(assignment.task.id, event),
                keep={"fsync": self.options.fsync, "compress": self.options.compress},
            ) as attempt:
                if attempt.moved:
                    self.say(assignment.task, attempt.moved)
                attempt.run()
                if not self.counts(attempt):
                    return None
                fault = passing_fault(attempt.session, attempt.journal.failures)
                if fault is None or len(faults) >= self.options.retries:
                    return close(attempt)
            faults.append(fault)
            if not self._goes_on():
                self.say_stopped(assignment.task)
                return None
            again = f"attempt {len(faults) + 1} of {self.options.retries + 1}"
            self.say(assignment.task, f"{fault}; run again ({again})")

    def counts(self, attempt: Attempt) -> bool:
        """Whether an attempt came to an end that is a row: not if it was stopped or cut off."""
        task = attempt.assignment.task
        if attempt.session.status is Status.IN_PROGRESS:
            self.say_stopped(task)
            return False
        outage = self._outage(attempt)
        if outage is not None:
            self.say(task, "not counted, no row" + self.again("runs it again"))
            self._fail(outage)
        return outage is None

    def again(self, how: str) -> str:
        """The end of a line that says how a task without a row is gone on with."""
        return f"; the same command {how}"

    def say(self, task: Task, text: str) -> None:
        """Tell one line about a task to a person."""
        self.watcher.note(f"{task.id}: {text}")

    def say_stopped(self, task: Task) -> None:
        """Tell that a task has no row yet, because the run is stopping."""
        self.limit = self.limit or self.budget.used_up()
        self.say(task, "stopped before its end" + self.again("goes on with it"))

    def keep_try(self, row: dict[str, Any]) -> None:
        """Write the row of a try that was not chosen, unless it is there."""
        with self._keeping:
            if self._tries is None:
                self._tries = RowFile(tries_path(self.rows.path))
            if not self._tries.has(row["id"]):
                self._tries.append(row)

    def write(self, row: dict[str, Any], spent: Budget | None = None) -> None:
        """Write a row to the output; `spent` is what it took, if that is known."""
        self.rows.append(row)
        money = spent.snapshot()["money"] if spent is not None else None
        outcome = Outcome.of_row(row, money=money)
        self.outcomes[outcome.id] = outcome
        self.watcher.ended(outcome)

    def _outage(self, attempt: Attempt) -> CKError | None:
        """What no task can do without, if that failed in this one and is still gone."""
        session, failures = attempt.session, attempt.journal.failures
        gone = person_gone(failures)
        if gone is not None or self.options.probe is None or not may_be_outage(session, failures):
            return gone
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
    facts = ["cannot write a task's folder", error.filename, error.strerror]
    return f"{': '.join(str(fact) for fact in facts if fact)}; {what_to_do(error)}"
