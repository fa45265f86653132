"""The limits of a step, and the errors for steps that were killed."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

from ck_pro.exceptions import ConfigError
from ck_pro.executor.calls.step_calls import StepCalls
from ck_pro.executor.channel import WorkerGone
from ck_pro.executor.results import CodeError
from ck_pro.executor.worker.wire import WireError

_CANCEL_SECONDS = 0.05
_MIN_CHECK_SECONDS = 0.005
_LOST = "All variables are lost; files are kept."


class StepKilled(Exception):
    """A step must be killed; has the type and the message of its error."""

    def __init__(self, type: str, message: str):
        super().__init__(message)
        self.type = type


def check_seconds(name: str, value: object) -> None:
    """Check a time limit; None means no limit.

    Raises:
        ConfigError: it is not a number above 0.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and value > 0):  # type: ignore[operator]
        raise ConfigError(f"{name} must be a number of seconds above 0, not {value!r}")


class StepClock:
    """Enforces the time limits of a step.

    Args:
        calls: the step's calls; the code's own time stops while the main code waits for them.
        timeout: limit of the code's own time in seconds, or None.
        wall: limit of the whole step in seconds, or None.
        cancel: event that stops the step, or None.
    """

    def __init__(
        self,
        calls: StepCalls,
        timeout: float | None,
        wall: float | None,
        cancel: threading.Event | None,
    ):
        self._calls = calls
        self._timeout = timeout
        self._wall = wall
        self._cancel = cancel
        self._started = time.monotonic()

    def own_seconds(self) -> float:
        """Return the code's own time so far."""
        now = time.monotonic()
        return max(0.0, now - self._started - self._calls.waits.seconds(now))

    def next_check(self) -> float | None:
        """Return the seconds until `check` must be called again; None if it need not be."""
        now = time.monotonic()
        elapsed = now - self._started
        times = [self._calls.expire(now)]
        if self._timeout is not None:
            times.append(self._timeout - (elapsed - self._calls.waits.seconds(now)))
            times.append(self._calls.waits.ask_if_unknown(now))
        if self._wall is not None:
            times.append(self._wall - elapsed)
        if self._cancel is not None:
            times.append(_CANCEL_SECONDS)
        if self._calls.ended_by is not None:
            times.append(_CANCEL_SECONDS)
        due = [one for one in times if one is not None]
        return max(_MIN_CHECK_SECONDS, min(due)) if due else None

    def check(self) -> None:
        """Check the limits.

        Raises:
            StepKilled: the step has exceeded one, or was cancelled.
        """
        now = time.monotonic()
        elapsed = now - self._started
        if self._cancel is not None and self._cancel.is_set():
            raise StepKilled("Cancelled", f"the code was cancelled. {_LOST}")
        if self._wall is not None and elapsed >= self._wall:
            raise StepKilled(
                "TimeoutError",
                f"killed after {self._wall:g} s, the limit for the code and its calls. {_LOST}",
            )
        if self._timeout is not None and elapsed - self._calls.waits.seconds(now) >= self._timeout:
            raise StepKilled(
                "TimeoutError",
                f"killed after {self._timeout:g} s, the limit for the code's own time "
                f"(waiting for calls does not count). {_LOST}",
            )


def error_of_killed(killed: StepKilled) -> CodeError:
    """Describe the error of a step that was killed for a time limit or cancelled."""
    return CodeError(killed.type, str(killed))


def error_of_dead_worker(error: WorkerGone | WireError) -> CodeError:
    """Describe the error of a step whose worker has ended or sent a malformed frame."""
    if not isinstance(error, WorkerGone):
        return CodeError(
            "WorkerDied",
            f"killed: the code's process sent a malformed frame ({error}). {_LOST}",
        )
    why = error.why
    if why["why"] == "exit":
        return CodeError("WorkerDied", f"the code's process {_end(why['status'])}. {_LOST}")
    if why["why"] not in _KILLED:
        return CodeError("WorkerDied", f"the code's process has ended. {_LOST}")
    kind, message, advice = _KILLED[why["why"]]
    return CodeError(kind, f"killed: {message.format(why.get('limit'))}. {_LOST}{advice}")


_DELETE = " Delete files that are not needed."
_KILLED = {
    "memory": ("MemoryError", "the code and its children used more than {} MB of memory", ""),
    "disk": ("OSError", "the working directory grew by more than {} MB", _DELETE),
    "files": ("OSError", "more than {} new files in the working directory", _DELETE),
    "deep": ("OSError", "folders in the working directory are nested too deeply", ""),
    "tasks": ("WorkerDied", "more than {} processes and threads", ""),
}
"""The supervisor's reason -> type, message (with the limit), and advice."""


def _end(status: Any) -> str:
    if status >= 0:
        return f"exited with code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    if name == "SIGXCPU":
        return "was killed: it exceeded its processor time"
    return f"was killed by signal {name}"
