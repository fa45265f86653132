"""The limits of one step, and how their breach is told."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

from ck_pro.exceptions import ConfigError
from ck_pro.executor.channel import WorkerGone
from ck_pro.executor.function_calls import StepCalls
from ck_pro.executor.results import CodeError

_CANCEL_SECONDS = 0.05
_SHORTEST_CHECK = 0.005
_LOST = "Its variables are lost; the files it wrote are kept."


class Stop(Exception):
    """A step must be killed: `type` and `message` of the error to tell."""

    def __init__(self, type: str, message: str):
        super().__init__(message)
        self.type = type


def check_seconds(name: str, value: object) -> None:
    """Check a limit of time that somebody gave; None is no limit.

    Raises:
        ConfigError: it is no number, or not more than 0.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and value > 0):  # type: ignore[operator]
        raise ConfigError(f"{name} must be a number of seconds more than 0, not {value!r}")


class StepClock:
    """Watches the time of a step: the code's own, each call's, and all of it.

    Args:
        calls: the step's calls; while the main code waits for some, its own time stands still.
        timeout: seconds of the code's own time, or None.
        wall: seconds for everything, or None.
        cancel: set from outside when the step must go, or None.
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
        self._began = time.monotonic()

    def own(self) -> float:
        """Give the seconds of the code's own time so far."""
        now = time.monotonic()
        return max(0.0, now - self._began - self._calls.waits.seconds(now))

    def next_check(self) -> float | None:
        """Give the seconds until `check` should be called again, or None for never."""
        now = time.monotonic()
        elapsed = now - self._began
        times = [self._calls.expire(now)]
        if self._timeout is not None:
            times.append(self._timeout - (elapsed - self._calls.waits.seconds(now)))
            times.append(self._calls.waits.ask_if_unsure(now))
        if self._wall is not None:
            times.append(self._wall - elapsed)
        if self._cancel is not None:
            times.append(_CANCEL_SECONDS)
        if self._calls.ended_by is not None:
            times.append(_CANCEL_SECONDS)
        due = [one for one in times if one is not None]
        return max(_SHORTEST_CHECK, min(due)) if due else None

    def check(self) -> None:
        """Look at the limits.

        Raises:
            Stop: one is used up.
        """
        now = time.monotonic()
        elapsed = now - self._began
        if self._cancel is not None and self._cancel.is_set():
            raise Stop("Cancelled", f"the code was stopped from outside. {_LOST}")
        if self._wall is not None and elapsed >= self._wall:
            raise Stop(
                "TimeoutError",
                f"killed after {self._wall:g} s, the limit for the code and its calls. {_LOST}",
            )
        if self._timeout is not None and elapsed - self._calls.waits.seconds(now) >= self._timeout:
            raise Stop(
                "TimeoutError",
                f"killed after {self._timeout:g} s, the limit for the code's own time "
                f"(waiting for calls of functions does not count). {_LOST}",
            )


def stopped(stop: Stop) -> CodeError:
    """Tell of a step that was killed by a limit."""
    return CodeError(stop.type, str(stop))


def died(error: Exception) -> CodeError:
    """Tell of a worker that ended by itself, or that had to."""
    if not isinstance(error, WorkerGone):
        return CodeError(
            "WorkerDied", f"the process of the code broke the rules of its pipe ({error}). {_LOST}"
        )
    why = error.why
    if why["why"] == "memory":
        return CodeError(
            "MemoryError",
            f"killed: the code and its children used more than {why['limit']} MB of memory. "
            f"{_LOST}",
        )
    if why["why"] == "disk":
        return CodeError(
            "OSError",
            f"killed: the files in the working directory grew by more than {why['limit']} MB. "
            f"{_LOST} Delete those that are not needed.",
        )
    if why["why"] == "files":
        return CodeError(
            "OSError",
            f"killed: more than {why['limit']} new files in the working directory. {_LOST} "
            "Delete those that are not needed.",
        )
    if why["why"] == "deep":
        return CodeError(
            "OSError",
            "killed: folders in the working directory are nested too deeply to measure them. "
            f"{_LOST}",
        )
    if why["why"] == "tasks":
        return CodeError(
            "WorkerDied", f"killed: more than {why['limit']} processes and threads. {_LOST}"
        )
    if why["why"] == "exit":
        return CodeError("WorkerDied", f"the process of the code {_end(why['status'])}. {_LOST}")
    return CodeError("WorkerDied", f"the process of the code is gone. {_LOST}")


def _end(status: Any) -> str:
    if status >= 0:
        return f"ended by itself with exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    if name == "SIGXCPU":
        return "was killed: it used its processor time up"
    return f"was killed by signal {name}"
