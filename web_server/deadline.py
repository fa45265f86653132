"""The time limit of one request."""

from __future__ import annotations

import math
import time

REQUEST_SECONDS = 20.0
"""Time limit of a request on a page, in addition to any wait that it asks for."""
OBSERVE_SECONDS = 6.0
"""The part of it that is kept for the end: to stop a page that does not settle, and observe it."""
_MIN_SECONDS = 0.25


class Deadline:
    """The end of one request, and an earlier end for everything before its observation.

    Args:
        extra: seconds that the request asks to wait for.
    """

    def __init__(self, extra: float = 0.0) -> None:
        self._end = time.monotonic() + REQUEST_SECONDS + extra

    @property
    def acting(self) -> float:
        """When acting and settling must end, by the monotonic clock."""
        return self._end - OBSERVE_SECONDS

    @property
    def left(self) -> float:
        """Seconds until the end; negative after it."""
        return self._end - time.monotonic()

    def to_act(self, seconds: float = math.inf) -> float:
        """Return `seconds`, or what is left for acting and settling if that is less."""
        return min(seconds, max(_MIN_SECONDS, self.left - OBSERVE_SECONDS))

    def to_observe(self, seconds: float = math.inf) -> float:
        """Return `seconds`, or what is left of the request if that is less."""
        return min(seconds, max(_MIN_SECONDS, self.left))
