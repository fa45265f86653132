"""Cancelled calls: a flag for the function of a call, and a count of those still running."""

from __future__ import annotations

import contextvars
import threading

MAX_CANCELLED = 64
"""Maximum number of cancelled calls of an executor that are still running."""


class CallFlag:
    """Shows the function of a call whether the call was cancelled; its result is then dropped.

    Attributes:
        started: time of the start by the monotonic clock.
        from_main: whether the main thread of the code made the call.
        cancelled: whether the step ended or `call_timeout` passed.
    """

    __slots__ = ("cancelled", "from_main", "started")

    def __init__(self, started: float, from_main: bool):
        self.started = started
        self.from_main = from_main
        self.cancelled = False

    def is_set(self) -> bool:
        """Return whether the call was cancelled."""
        return self.cancelled


current_flag: contextvars.ContextVar[CallFlag | None] = contextvars.ContextVar("call", default=None)


def current_call() -> CallFlag | None:
    """Return the flag of the call that this thread is running; None outside of a call."""
    return current_flag.get()


class CancelledCalls:
    """Counts the cancelled calls of an executor that are still running, over all its steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, number: int) -> None:
        """Add to the count; a negative number subtracts."""
        with self._lock:
            self.count += number
