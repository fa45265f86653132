"""A fixed number of slots, handed out in the order in which callers came."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from web_server.errors import RETRY_SECONDS, TooManyWaiting, Unavailable, stopping


class Slots:
    """Fair hand-out, on the event loop.

    Args:
        number: how many slots there are.
        most_waiting: how many callers may queue.
        seconds: how long a caller waits.
    """

    def __init__(self, number: int, most_waiting: int, seconds: float) -> None:
        self._number = number
        self._most_waiting = most_waiting
        self._seconds = seconds
        self._taken = 0
        self._closed = False
        self._line: deque[tuple[asyncio.Future[None], Callable[[], bool]]] = deque()

    @property
    def free(self) -> int:
        """How many slots nobody has."""
        return max(0, self._number - self._taken)

    @property
    def waiting(self) -> int:
        """How many callers wait."""
        return len(self._line)

    async def take(self, gone: Callable[[], bool]) -> None:
        """Take a slot, when it is the caller's turn.

        Args:
            gone: tells whether the caller has hung up meanwhile.

        Raises:
            TooManyWaiting: the queue is full.
            Unavailable: none became free in time, or no more are handed out.
        """
        if self._closed:
            raise stopping()
        if self.free and not self._line:
            self._taken += 1
            return
        if len(self._line) >= self._most_waiting:
            raise TooManyWaiting(
                f"all {self._number} browsers are taken and {len(self._line)} callers wait: "
                "try again later",
                retry_after=RETRY_SECONDS,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (turn, gone)
        self._line.append(entry)
        try:
            await asyncio.wait({turn}, timeout=self._seconds)
            if not turn.done():
                raise Unavailable(
                    f"no browser became free within {self._seconds:g} s "
                    f"({self._number} are leased): try again later",
                    retry_after=RETRY_SECONDS,
                )
            turn.result()
        except asyncio.CancelledError:
            # A slot that came at the very moment of the cancelling goes to the next in line.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give_back()
            raise
        finally:
            turn.cancel()
            if entry in self._line:
                self._line.remove(entry)

    def give_back(self) -> None:
        """Hand a slot to the first in line who is still there, or keep it free."""
        while self._line:
            turn, gone = self._line.popleft()
            if turn.done():
                continue
            if gone():
                turn.set_exception(Unavailable("the caller hung up"))
                continue
            turn.set_result(None)
            return
        self._taken -= 1

    def close(self) -> None:
        """Turn away all who wait and all who come."""
        self._closed = True
        while self._line:
            turn, _ = self._line.popleft()
            if not turn.done():
                turn.set_exception(stopping())
