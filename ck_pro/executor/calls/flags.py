"""Cancelled calls: a flag for the function of a call, and a count of those still running."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MAX_CANCELLED = 64
"""Maximum number of cancelled calls of an executor that are still running."""


class CallFlag:
    """Shows the function of a call whether the call was cancelled; its result is then dropped.

    Args:
        started: see below.
        from_main: see below.
        add_line: adds a line to the pieces of the step's output.

    Attributes:
        started: time of the start by the monotonic clock.
        from_main: whether the main thread of the code made the call.
        cancelled: whether the step ended or `call_timeout` passed.
    """

    __slots__ = ("_add_line", "cancelled", "from_main", "started")

    def __init__(self, started: float, from_main: bool, add_line: Callable[[str], None]):
        self.started = started
        self.from_main = from_main
        self.cancelled = False
        self._add_line = add_line

    def report(self, line: str) -> None:
        """Add a line about the call to the step's output, after what was printed so far."""
        if not self.cancelled:
            self._add_line(line)

    def is_set(self) -> bool:
        """Return whether the call was cancelled."""
        return self.cancelled


current_flag: contextvars.ContextVar[CallFlag | None] = contextvars.ContextVar("call", default=None)


def current_call() -> CallFlag | None:
    """Return the flag of the call that this thread is running; None outside of a call."""
    return current_flag.get()


@contextmanager
def outside_calls() -> Iterator[None]:
    """Run the body as if this thread ran no call: for an agent inside of a call of another one."""
    token = current_flag.set(None)
    try:
        yield
    finally:
        current_flag.reset(token)


class CancelledCalls:
    """Counts the cancelled calls of an executor that are still running, over all its steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, number: int) -> None:
        """Add to the count; a negative number subtracts."""
        with self._lock:
            self.count += number
