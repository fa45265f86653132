"""Flags that stop a run."""

from __future__ import annotations

import threading
import time
from typing import Protocol

_POLL = 0.05


class Flag(Protocol):
    """A readable flag."""

    def is_set(self) -> bool:
        """Return whether it is set."""
        ...


class Cancellation(threading.Event):
    """A cancel flag that is also set if one of its parents is.

    Args:
        parents: the flags of the calling run and of the current call, or of the user; None for
            none.
    """

    def __init__(self, *parents: Flag | None):
        super().__init__()
        self._parents = [flag for flag in parents if flag is not None]

    def is_set(self) -> bool:
        """Whether this run or one of its callers was cancelled."""
        return super().is_set() or any(flag.is_set() for flag in self._parents)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, at most `timeout` seconds; return whether it is set."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            # one thread cannot wait for several flags, so it polls the parents
            left = _POLL if end is None else min(_POLL, end - time.monotonic())
            if left <= 0:
                break
            super().wait(left)
        return self.is_set()


class DelayedEvent(threading.Event):
    """A flag that is set some seconds after another one.

    Args:
        flag: the other flag.
        seconds: the delay.
    """

    def __init__(self, flag: threading.Event, seconds: float):
        super().__init__()
        self._flag, self._seconds, self._first_seen = flag, seconds, 0.0

    def is_set(self) -> bool:
        """Whether the other flag has been set for the delay."""
        if not self._flag.is_set():
            return False
        self._first_seen = self._first_seen or time.monotonic()
        return time.monotonic() - self._first_seen >= self._seconds
