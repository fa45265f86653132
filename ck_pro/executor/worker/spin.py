"""A short busy wait, for replies that arrive within microseconds."""

from __future__ import annotations

import builtins
import os
import select
import time
from collections.abc import Callable

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_BUSY_SECONDS = 0.00005  # a yield that takes longer means that another process ran
_SKIPPED = 8
_monotonic = time.monotonic  # the code may replace it, for example by a clock that stands still
_yield: Callable[[], object] = getattr(os, "sched_yield", lambda: None)


class Spin:
    """Poll for a very short time without sleeping, since waking up takes longer than most replies.

    This yields the processor to other processes, and stops if one uses it. After a failure, it
    skips the next waits.

    Args:
        poll: the descriptors to poll.
        seconds: maximum time.
    """

    def __init__(self, poll: select.poll, seconds: float):
        self._poll = poll
        self._seconds = seconds
        self._skip = 0

    def wait(self) -> list[tuple[int, int]]:
        """Return the ready descriptors with their events; empty if none became ready."""
        if self._skip:
            self._skip -= 1
            return []
        now = _monotonic()
        until = now + self._seconds
        is_busy = False
        while not (ready := self._poll.poll(0)) and not is_busy and now < until:
            _yield()
            before, now = now, _monotonic()
            is_busy = now - before > _BUSY_SECONDS
        if not ready:
            self._skip = _SKIPPED
        return ready
