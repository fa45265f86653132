"""Run tasks, append their rows to the output, and keep one folder per task.

The folder `<output without its ending>/<task>/` holds the journal (`events.jsonl`, `blobs/`) and
`work/`, the working directory of the task's code, with the task's file in it. Files of an earlier
attempt move to `attempt-1/`, `attempt-2/`, ... With several tries each try has its own folder,
`<task>/try-1/`, ... The runner skips tasks that have a row in the output.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ck_main.output.output_files import check_writable, tries_path, write_advice, write_failure
from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.output.row_schema import OutputRow
from ck_main.output.row_store import RowStore
from ck_main.runner.attempt import Agent, Assignment, Attempt
from ck_main.runner.limits import RunBudget, TaskBudget
from ck_main.runner.row_recovery import rows_from_journals
from ck_main.runner.run_options import RunOptions
from ck_main.runner.task_folder import PreviousAttempt, attempts_in, claimed
from ck_main.runner.tries import TaskTries
from ck_main.runner.watcher import Watcher
from ck_main.tasks.dataset import Task
from ck_pro.events.progress_events import ProgressEvent
from ck_pro.exceptions import CKError, JournalError, ManualAbort, OutputError
from ck_pro.model import Budget
from ck_pro.session import Status

_log = logging.getLogger(__name__)
_GRACE_SECONDS = 2.0
# The main thread alone runs signal handlers, but another thread may receive the signal, and then
# nothing wakes the main thread. So it waits in short intervals.
_JOIN_SECONDS = 0.2

_T = TypeVar("_T")


class TaskRunner:
    """Run tasks with one agent object and append their rows.

    Args:
        agent: agent for all tasks; it runs several at once.
        rows: the output.
        options: see `RunOptions`.
        watcher: receives every event.
        stop: set from any thread to stop the run; tasks in progress then end without a row.
        target_url: start page for tasks without one.
    """

    def __init__(
        self,
        agent: Agent,
        rows: RowStore,
        options: RunOptions,
        watcher: Watcher,
        stop: threading.Event | None = None,
        *,
        target_url: str | None = None,
    ):
        self.target_url = target_url
        self.agent, self.options, self.watcher = agent, options, watcher
        self.rows: RowStore = rows
        self.stop = stop or threading.Event()
        self.outcomes: dict[str, Outcome] = {}
        """Outcomes of the tasks that this runner ended, by id."""
        self.failure: CKError | None = None
        """The error that stopped the whole run, if any."""
        self.budget = RunBudget(options.run)
        """Usage of all tasks; its clock is running."""
        self.limit: str | None = None
        """One line that names the reached limit of the run, or None."""
        self._lock, self._probing = threading.Lock(), threading.Lock()
        self._tries_lock = threading.Lock()
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
                f"cannot write to {rows.folder}, the folder for the tasks' files: {e.strerror}; "
                + write_advice(e)
            ) from None

    def run(self, tasks: Iterable[Task]) -> None:
        """Run all tasks that have no row yet; return when they ended or the run was stopped.

        Raises:
            KeyboardInterrupt: the user interrupted the process.
            CKError: `failure`: the output could not be written, or a service became unreachable.
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
            if self.stop.is_set():  # possibly by the time limit
                self.limit = self.limit or self.budget.used_up()
            if self._tries is not None:
                self._tries.close()
        if self.failure is not None:
            raise self.failure

    def _run_threads(self, queue: Iterator[Task]) -> None:
        # daemon threads: after an interrupt the process must not wait for a model call
        threads = [
            threading.Thread(target=self._work, args=(queue,), daemon=True, name=f"tasks-{n}")
            for n in range(self.options.workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(_JOIN_SECONDS)
        except KeyboardInterrupt:
            self.stop.set()
            deadline = time.monotonic() + _GRACE_SECONDS
            for thread in threads:  # give tasks that are about to end time to write their rows
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
            if not self._may_start():
                return
            try:
                self._run_claimed(task)
            except (OutputError, JournalError, OSError) as e:
                self._fail(_output_error(e))

    def _restore(self) -> None:
        """Write rows again that were lost because another program truncated the output."""
        with self._restoring:
            lost = self.rows.lost - self._unrestorable
            if not lost:
                return
            try:
                for row in rows_from_journals(self.rows.folder, lost):
                    self.rows.restore(row)
                self._restore_tries(self.rows.lost & lost)
            except (OutputError, JournalError, OSError) as e:
                self._fail(_output_error(e))
            self._unrestorable |= self.rows.lost
            self.watcher.note(
                f"{self.rows.path} was truncated during this run: restored "
                f"{len(lost - self.rows.lost)} of {len(lost)} lost rows from their journals"
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

    def _may_start(self) -> bool:
        """Whether a new task or attempt may start."""
        self.limit = self.limit or self.budget.used_up()
        return self.limit is None and not self.stop.is_set()

    def _fail(self, error: CKError) -> None:
        with self._lock:
            self.failure = self.failure or error
        self.stop.set()

    def _run_claimed(self, task: Task) -> None:
        folder = self.rows.folder / task.folder
        with claimed(folder) as locked:
            if not locked:
                self.say(task, "skipped: in progress in another run")
            elif not self.rows.has(task.id):
                self._run_task(task, folder)

    def _run_task(self, task: Task, folder: Path) -> None:
        lost = task.id in self.rows.lost or task.id in self.rows.torn
        if self.options.tries is not None:
            TaskTries(self, task, folder, self.options.tries, written=lost).run()
            return
        earlier = PreviousAttempt(folder)
        row = earlier.row(task, written=lost)
        if row is not None:  # the task ended, but its runner was killed before it wrote the row
            self.write(row)
            return
        self.run_assignment(Assignment(task, folder, earlier=earlier))

    def run_assignment(self, assignment: Assignment) -> None:
        """Run a task to its end and write its row; write no row if the run was stopped."""
        self.report_start(assignment.task)
        spent = TaskBudget(parent=self.budget)

        def close(attempt: Attempt) -> None:
            self.write(attempt.finish(), spent)
            attempt.written()

        self.attempt(self.agent, assignment, spent, close)

    def report_start(self, task: Task) -> None:
        """Report the start of a task."""
        self.watcher.started(task)

    def report_event(self, task: Task, event: ProgressEvent) -> None:
        """Report an event of a task."""
        self.watcher.event(task.id, event)

    def attempt(
        self, agent: Agent, assignment: Assignment, spent: Budget, close: Callable[[Attempt], _T]
    ) -> _T | None:
        """Make attempts until one ends without a transient failure, or the retries are used up.

        Args:
            agent: agent that solves the task.
            assignment: the task and its locked folder.
            spent: budget charged with the usage of all attempts.
            close: called with the last attempt, which ended and is still open.

        Returns:
            The result of `close`; None if the run was stopped or a service outage was found.
        """
        target_url = assignment.task.target_url or self.target_url
        where = {"target_url": target_url} if target_url else {}
        failures: list[str] = []
        while True:
            count = {"attempts": attempts_in(assignment.folder) + 1}
            earlier = {"earlier_faults": list(failures)} if failures else {}
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
                replace(given, start_over=True, earlier=None) if failures else given,
                budget=self.options.budget(spent),
                cancel=self.stop,
                on_event=lambda event: self.watcher.event(assignment.task.id, event),
                keep={"fsync": self.options.fsync, "compress": self.options.compress},
                scoring=self.options.scoring,
            ) as attempt:
                if attempt.moved:
                    self.say(assignment.task, attempt.moved)
                attempt.run()
                if not self.gives_row(attempt):
                    return None
                failure = attempt.transient_failure()
                if failure is not None:  # a full disk ends the run, not the task
                    check_writable(assignment.folder)
                if failure is None or len(failures) >= self.options.retries:
                    return close(attempt)
            failures.append(failure)
            if not self._may_start():
                self.report_stopped(assignment.task)
                return None
            number = f"attempt {len(failures) + 1} of {self.options.retries + 1}"
            self.say(assignment.task, f"{failure}; retrying ({number})")

    def gives_row(self, attempt: Attempt) -> bool:
        """Whether an attempt gives a row: not if it was stopped or a service is unreachable."""
        task = attempt.assignment.task
        if attempt.session.status is Status.IN_PROGRESS:
            self.report_stopped(task)
            return False
        outage = self._outage(attempt)
        if outage is not None:
            cause = "manual model stopped" if isinstance(outage, ManualAbort) else "service outage"
            self.say(task, f"{cause}, no row written" + self.retry_hint("run it again"))
            self._fail(outage)
        return outage is None

    def retry_hint(self, action: str) -> str:
        """Return the end of a line that says how to resume or rerun a task without a row."""
        return f"; repeat the command to {action if self.options.resumable else 'start over'}"

    def say(self, task: Task, text: str) -> None:
        """Display one line about a task."""
        self.watcher.note(f"{task.id}: {text}")

    def report_stopped(self, task: Task) -> None:
        """Report that a task has no row because the run is stopping."""
        self.limit = self.limit or self.budget.used_up()
        self.say(task, "stopped before it ended" + self.retry_hint("resume it"))

    def write_try(self, row: OutputRow) -> None:
        """Write the row of a try that was not chosen, unless it exists."""
        with self._tries_lock:
            if self._tries is None:
                self._tries = RowFile(tries_path(self.rows.path))
            if not self._tries.has(row["id"]):
                self._tries.append(row)

    def write(self, row: OutputRow, spent: Budget | None = None) -> None:
        """Append a row to the output; `spent` is the budget of the task, if known."""
        self.rows.append(row)
        money = spent.snapshot()["money"] if spent is not None else None
        outcome = Outcome.of_row(row, money=money)
        self.outcomes[outcome.id] = outcome
        self.watcher.ended(outcome)

    def _outage(self, attempt: Attempt) -> CKError | None:
        """Return the error of a service that failed in this attempt and is still unavailable."""
        abort = attempt.manual_abort()
        if abort is not None or self.options.probe is None or not attempt.may_be_outage():
            return abort
        with self._probing:
            if self.failure is not None:
                return self.failure
            try:
                self.options.probe()
            except CKError as e:
                self._fail(e)
                return e
        return None


def _output_error(error: OutputError | JournalError | OSError) -> OutputError:
    return error if isinstance(error, OutputError) else write_failure(error)
