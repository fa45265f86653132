"""Progress of a run for programs: counters, and the status file.

`status.json` in the folder of the tasks is replaced atomically every few seconds, so that a reader
never sees a partial file. Times are Unix seconds.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import cast

from typing_extensions import NotRequired, TypedDict

from ck_main.output.row import Outcome, verdict_of
from ck_main.runner.watcher import Watcher
from ck_main.tasks.dataset import Task
from ck_main.ui.logs import EVENTS_LOGGER
from ck_pro.command_line import ExitCode
from ck_pro.events.progress_events import ProgressEvent, ProgressKind
from ck_pro.model import Budget
from ck_pro.session import PHASES
from ck_pro.session.rows import Phase

STATUS_NAME = "status.json"
_log = logging.getLogger(__name__)
_events = logging.getLogger(EVENTS_LOGGER)
_SECONDS = 2.0


class TaskStatus(TypedDict):
    """A task in progress: Unix time of its start, seconds since then, and its last event."""

    task: str
    started: float
    steps: int
    seconds: float
    agent: NotRequired[str]
    step: NotRequired[int]
    tokens: NotRequired[int]
    money: NotRequired[float]
    doing: NotRequired[str]


class Snapshot(TypedDict):
    """The content of the status file; docs/running.md describes the fields."""

    state: str
    limit: str
    pid: int
    host: str
    output: str
    started: float
    updated: float
    total: int | None
    earlier: int
    elsewhere: int
    done: int
    right: int
    wrong: int
    unscored: int
    failed: int
    left: int | None
    running: list[TaskStatus]
    tasks_per_minute: float | None
    eta_seconds: float | None
    unreadable: dict[Phase, int]
    steps: int
    llm_call: int
    tokens: int
    money: float


class RunStatus:
    """Count the runner's events and forward them to another watcher. Thread-safe.

    Args:
        inner: watcher that receives all events.
        output: file of rows.
        total: total number of tasks, if known.
        clock: wall clock in Unix seconds.
        timer: monotonic clock in seconds.
    """

    def __init__(
        self,
        inner: Watcher,
        output: Path,
        *,
        total: int | None = None,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ):
        self._inner, self._output, self._total, self._clock = inner, output, total, clock
        self._lock = threading.Lock()
        self._started, self._timer, self._timer_start = clock(), timer, timer()
        self._state, self._limit = "running", ""
        self._budget: Budget | None = None
        self._earlier = 0
        self._with_row: Callable[[], int] = lambda: 0
        self._counts = dict.fromkeys(("done", "right", "wrong", "unscored", "failed"), 0)
        self._unreadable = dict.fromkeys(PHASES, 0)
        self._running: dict[str, TaskStatus] = {}
        self._started_at: dict[str, float] = {}

    def start(self, with_row: Callable[[], int], budget: Budget) -> None:
        """Start counting tasks.

        Args:
            with_row: returns how many of the tasks have a row now, written by any run.
            budget: usage of the run.
        """
        self._earlier, self._with_row, self._budget = with_row(), with_row, budget

    def over(self, how: str, limit: str | None = None) -> None:
        """Record the end of the run; `how` is the name of an exit code."""
        with self._lock:
            self._state, self._limit = how, limit or ""
            self._running.clear()
        _events.info("run ended", extra={"facts": {"how": how, **self.snapshot()}})

    # --- a watcher ---------------------------------------------------------------------------

    def started(self, task: Task) -> None:
        """Count and forward the start of a task."""
        with self._lock:
            self._started_at[task.id] = self._timer()
            self._running[task.id] = {
                "task": task.id,
                "started": self._clock(),
                "steps": 0,
                "seconds": 0.0,
            }
        _events.info("task started", extra={"facts": {"task": task.id}})
        self._inner.started(task)

    def event(self, task_id: str, event: ProgressEvent) -> None:
        """Count and forward an event of a task."""
        with self._lock:
            known = self._running.get(task_id)
            if known is not None:
                known["steps"] += event["kind"] == ProgressKind.STEP_STARTED
                known["agent"] = "/".join(event["path"])
                known["step"] = max(0, event["step"])
                known["tokens"], known["money"] = event["tokens"], event["money"]
                known["doing"] = event["kind"]
            if event["kind"] == ProgressKind.UNREADABLE:
                self._unreadable[cast(Phase, event["phase"])] += 1
        if event["kind"] == ProgressKind.TRY_ENDED:
            facts = {"task": task_id, "try": event["number"], **event["row"]["eval"]}
            _events.info("try ended", extra={"facts": facts})
        self._inner.event(task_id, event)

    def ended(self, outcome: Outcome) -> None:
        """Count and forward the end of a task."""
        score = verdict_of(outcome.corr)
        with self._lock:
            self._running.pop(outcome.id, None)
            self._started_at.pop(outcome.id, None)
            self._counts["done"] += 1
            self._counts[score] += 1
            self._counts["failed"] += outcome.status != "done"
        facts = {"task": outcome.id, "score": score, "status": outcome.status}
        facts.update(stop_reason=outcome.stop_reason or "", reason=outcome.message)
        used = {"steps": outcome.steps, "tokens": outcome.tokens, "seconds": outcome.seconds}
        _events.info("task ended", extra={"facts": {**facts, **used, "tries": outcome.tries}})
        self._inner.ended(outcome)

    def note(self, text: str) -> None:
        """Log and forward one line."""
        _events.info(text, extra={"facts": {}})
        self._inner.note(text)

    # --- reading -----------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return all counters as JSON-serializable data; docs/running.md lists the fields."""
        now = self._clock()
        used = None if self._budget is None else self._budget.snapshot()
        with self._lock:
            counts, state = dict(self._counts), self._state
            unreadable = dict(self._unreadable)
            running = [task.copy() for task in self._running.values()]
            for task in running:
                task["seconds"] = round(self._timer() - self._started_at[task["task"]], 1)
        counted = self._earlier + counts["done"]
        known = self._with_row()
        if state != ExitCode.OUTPUT.name.lower():  # in that state rows of this run may be lost
            known = max(counted, known)
        rate = counts["done"] / max(self._timer() - self._timer_start, 1e-9)
        left = None if self._total is None else max(0, self._total - known)
        going = state == "running" and rate > 0 and left is not None
        return {
            "state": state,
            "limit": self._limit,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "output": str(self._output),
            "started": self._started,
            "updated": now,
            "total": self._total,
            "earlier": self._earlier,
            "elsewhere": max(0, known - counted),
            "done": counts["done"],
            "right": counts["right"],
            "wrong": counts["wrong"],
            "unscored": counts["unscored"],
            "failed": counts["failed"],
            "left": left,
            "running": running,
            "tasks_per_minute": round(rate * 60, 3) if counts["done"] else None,
            "eta_seconds": round((left or 0) / rate, 1) if going else None,
            "unreadable": unreadable,
            "steps": used["steps"] if used else 0,
            "llm_call": used["llm_call"] if used else 0,
            "tokens": used["tokens"] if used else 0,
            "money": used["money"] if used else 0,
        }


class StatusFile:
    """Context in which a thread writes a status to a file, and once more at the end.

    If another run already reports in the same folder, the file is `status-PID.json`. A write error
    is logged once and does not stop the run.

    Args:
        status: the status to write.
        folder: folder of the file.
        seconds: interval between writes.
    """

    def __init__(self, status: RunStatus, folder: Path, seconds: float = _SECONDS):
        self._status, self._folder, self._seconds = status, folder, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="status")
        self._lock_fd = -1
        self.path = folder / STATUS_NAME
        self._complained = False

    def __enter__(self) -> StatusFile:
        try:
            fd = os.open(self._folder / f".{STATUS_NAME}.lock", os.O_RDWR | os.O_CREAT, 0o644)
            self._lock_fd = fd
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another run holds the lock, or the folder is not writable
            self.path = self._folder / f"status-{os.getpid()}.json"
        self._write()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if kind is not None:
            self._status.over("internal")
        self._write()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)

    def _keep(self) -> None:
        while not self._over.wait(self._seconds):
            self._write()

    def _write(self) -> None:
        partial = self.path.with_name(f".{self.path.name}.partial")
        try:
            text = json.dumps(self._status.snapshot(), indent=1)
            partial.write_text(text + "\n", encoding="utf-8")
            partial.replace(self.path)
        except OSError as e:
            if not self._complained:
                _log.warning("cannot write %s: %s; the run is not affected", self.path, e.strerror)
                self._complained = True
