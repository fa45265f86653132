"""A fixed number of slots with a first-in, first-out queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from web_server.errors import RETRY_SECONDS, TooManyWaiting, Unavailable, stopping


class Slots:
    """Slots and their queue, on the event loop.

    Args:
        number: number of slots.
        max_waiting: how many callers may queue.
        seconds: how long a caller waits.
    """

    def __init__(self, number: int, max_waiting: int, seconds: float) -> None:
        self._number = number
        self._max_waiting = max_waiting
        self._seconds = seconds
        self._taken = 0
        self._closed = False
        self._queue: deque[tuple[asyncio.Future[None], Callable[[], bool]]] = deque()

    @property
    def free(self) -> int:
        """Number of free slots."""
        return max(0, self._number - self._taken)

    @property
    def waiting(self) -> int:
        """Number of callers in the queue."""
        return len(self._queue)

    async def take(self, hung_up: Callable[[], bool]) -> None:
        """Take a slot in the caller's turn.

        Args:
            hung_up: returns whether the caller closed its connection.

        Raises:
            TooManyWaiting: the queue is full.
            Unavailable: no slot became free in time, or the server is stopping.
        """
        if self._closed:
            raise stopping()
        if self.free and not self._queue:
            self._taken += 1
            return
        if len(self._queue) >= self._max_waiting:
            raise TooManyWaiting(
                f"all {self._number} browsers are taken and {len(self._queue)} callers wait: "
                "try again later",
                retry_after=RETRY_SECONDS,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (turn, hung_up)
        self._queue.append(entry)
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
            # A slot that arrived together with the cancellation goes to the next caller.
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.give_back()
            raise
        finally:
            turn.cancel()
            if entry in self._queue:
                self._queue.remove(entry)

    def give_back(self) -> None:
        """Give a slot to the first caller in the queue that has not hung up, or keep it free."""
        while self._queue:
            turn, hung_up = self._queue.popleft()
            if turn.done():
                continue
            if hung_up():
                turn.set_exception(Unavailable("the caller hung up"))
                continue
            turn.set_result(None)
            return
        self._taken -= 1

    def close(self) -> None:
        """Refuse all callers, also those in the queue."""
        self._closed = True
        while self._queue:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_exception(stopping())
