"""How a run stands, for programs: counted on the way, and kept in a file while it runs.

`status.json` in the folder of the tasks is replaced as a whole every few seconds, so that a reader
never sees half of it. Times are Unix seconds.
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
from typing import Any

from ck_main.output.row_file import Outcome
from ck_main.runner.run_options import ExitCode
from ck_main.runner.watcher import Watcher
from ck_main.tasks.dataset import Task
from ck_main.ui.logs import EVENTS_LOGGER
from ck_pro.model import Budget
from ck_pro.session import PHASES

STATUS_NAME = "status.json"
_log = logging.getLogger(__name__)
_events = logging.getLogger(EVENTS_LOGGER)
_SECONDS = 2.0


class RunStatus:
    """Counts what the runner tells, and passes it on. Safe to use from many threads.

    Args:
        inner: who is told all of it too.
        output: the file of rows.
        total: tasks in all, where it is known.
        clock: Unix seconds.
        timer: seconds that never go back, as a clock may that is set.
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
        self._started, self._timer, self._begun = clock(), timer, timer()
        self._state, self._limit = "running", ""
        self._budget: Budget | None = None
        self._earlier = 0
        self._with_row: Callable[[], int] = lambda: 0
        self._counts = dict.fromkeys(("done", "right", "wrong", "unscored", "failed"), 0)
        self._unreadable = dict.fromkeys(PHASES, 0)
        self._running: dict[str, dict[str, Any]] = {}

    def begins(self, with_row: Callable[[], int], budget: Budget) -> None:
        """The tasks begin.

        Args:
            with_row: tells how many of the tasks have a row by now, written by whatever run.
            budget: counts the use.
        """
        self._earlier, self._with_row, self._budget = with_row(), with_row, budget

    def over(self, how: str, limit: str | None = None) -> None:
        """The run has ended: how, as a name of an exit code."""
        with self._lock:
            self._state, self._limit = how, limit or ""
            self._running.clear()
        _events.info("run ended", extra={"facts": {"how": how, **self.snapshot()}})

    # --- a watcher ---------------------------------------------------------------------------

    def started(self, task: Task) -> None:
        """A task begins."""
        with self._lock:
            began = {"started": self._clock(), "timer": self._timer()}
            self._running[task.id] = {"task": task.id, **began, "steps": 0}
        _events.info("task started", extra={"facts": {"task": task.id}})
        self._inner.started(task)

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        """Something happened in a task."""
        with self._lock:
            known = self._running.get(task_id)
            if known is not None:
                known["steps"] += event["kind"] == "step_started"
                known.update(agent="/".join(event["path"]), step=max(0, event["step"]))
                known.update(tokens=event["tokens"], money=event["money"], doing=event["kind"])
            if event["kind"] == "unreadable":
                self._unreadable[event["phase"]] += 1
        if event["kind"] == "try_ended":
            facts = {"task": task_id, "try": event["number"], **event["row"]["eval"]}
            _events.info("try ended", extra={"facts": facts})
        self._inner.event(task_id, event)

    def ended(self, outcome: Outcome) -> None:
        """A task ended and its row is in the output."""
        score = {1: "right", 0: "wrong", None: "unscored"}[outcome.corr]
        with self._lock:
            self._running.pop(outcome.id, None)
            self._counts["done"] += 1
            self._counts[score] += 1
            self._counts["failed"] += outcome.status != "done"
        facts = {"task": outcome.id, "score": score, "status": outcome.status}
        facts.update(stop_reason=outcome.stop_reason or "", reason=outcome.message)
        used = {"steps": outcome.steps, "tokens": outcome.tokens, "seconds": outcome.seconds}
        _events.info("task ended", extra={"facts": {**facts, **used, "tries": outcome.tries}})
        self._inner.ended(outcome)

    def note(self, text: str) -> None:
        """One line for a person."""
        _events.info(text, extra={"facts": {}})
        self._inner.note(text)

    # --- reading -----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All of it as JSON-able data; the fields are described in docs/running.md."""
        now = self._clock()
        used = self._budget.snapshot() if self._budget is not None else {}
        with self._lock:
            counts, state = dict(self._counts), self._state
            unreadable = dict(self._unreadable)
            running = [
                {k: v for k, v in task.items() if k != "timer"}
                | {"seconds": round(self._timer() - task["timer"], 1)}
                for task in self._running.values()
            ]
        ours = self._earlier + counts["done"]
        known = self._with_row()
        if state != ExitCode.OUTPUT.name.lower():  # else rows of ours may be gone
            known = max(ours, known)
        rate = counts["done"] / max(self._timer() - self._begun, 1e-9)
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
            "elsewhere": max(0, known - ours),
            **counts,
            "left": left,
            "running": running,
            "tasks_per_minute": round(rate * 60, 3) if counts["done"] else None,
            "eta_seconds": round((left or 0) / rate, 1) if going else None,
            "unreadable": unreadable,
            **{k: used.get(k, 0) for k in ("steps", "llm_call", "tokens", "money")},
        }


class StatusFile:
    """While it is entered, a thread keeps a status in a file; at the end it is written once more.

    A run whose folder another run reports on too writes `status-PID.json` instead. A file that
    cannot be written is logged once and costs the run nothing.

    Args:
        status: what to write.
        folder: where.
        seconds: between two writings.
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
        except OSError:  # another run has it, or nothing can be written here
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
                _log.warning("cannot write %s: %s; the run goes on", self.path, e.strerror)
                self._complained = True
