"""The time that one request on a page may take, whatever the page does."""

from __future__ import annotations

import time

REQUEST_SECONDS = 20.0
"""How long a request on a page may take, beyond the waiting that it asks for."""
LOOK_SECONDS = 6.0
"""How much of that is kept for the end: to stop a page that does not rest, and to look at it."""
_LEAST = 0.25


class Deadline:
    """The end of one request, and an earlier one for what is done before the last look.

    Args:
        extra: seconds that the request asks to wait for.
    """

    def __init__(self, extra: float = 0.0) -> None:
        self._end = time.monotonic() + REQUEST_SECONDS + extra

    @property
    def acting(self) -> float:
        """When acting and settling have to end, by the monotonic clock."""
        return self._end - LOOK_SECONDS

    @property
    def over(self) -> bool:
        """Whether the time of the request is up."""
        return time.monotonic() >= self._end

    def to_act(self, seconds: float = REQUEST_SECONDS) -> float:
        """Limit a time in seconds to what is left for acting and settling."""
        return min(seconds, max(_LEAST, self.acting - time.monotonic()))

    def to_look(self, seconds: float = REQUEST_SECONDS) -> float:
        """Limit a time in seconds to what is left of the request."""
        return min(seconds, max(_LEAST, self._end - time.monotonic()))
