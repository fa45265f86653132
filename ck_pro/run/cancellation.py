"""Flags by which a run is told to stop."""

from __future__ import annotations

import threading
import time
from typing import Protocol

_POLL = 0.05


class Flag(Protocol):
    """A flag that can be read."""

    def is_set(self) -> bool:
        """Return whether it is set."""
        ...


class Cancellation(threading.Event):
    """A cancel flag that is also set when one that it depends on is.

    Args:
        above: the flags of the calling run, or the user's, and of the call that it serves; None
            for none.
    """

    def __init__(self, *above: Flag | None):
        super().__init__()
        self._above = [flag for flag in above if flag is not None]

    def is_set(self) -> bool:
        """Whether this run, or one around it, was told to stop."""
        return super().is_set() or any(flag.is_set() for flag in self._above)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, at most `timeout` seconds; returns whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            # several flags cannot be waited for at once: those above are read now and then
            left = _POLL if end is None else min(_POLL, end - time.monotonic())
            if left <= 0:
                break
            super().wait(left)
        return self.is_set()


class DelayedEvent(threading.Event):
    """A flag that is set some time after another one: what a step in flight may still take.

    Args:
        flag: the other one.
        seconds: how much later.
    """

    def __init__(self, flag: threading.Event, seconds: float):
        super().__init__()
        self._flag, self._seconds, self._seen = flag, seconds, 0.0

    def is_set(self) -> bool:
        """Whether the other flag has been set for so long."""
        if not self._flag.is_set():
            return False
        self._seen = self._seen or time.monotonic()
        return time.monotonic() - self._seen >= self._seconds
