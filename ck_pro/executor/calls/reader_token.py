"""The right to read the worker's messages, which one thread has at a time.

The thread in `CodeExecutor.run` lends it to the thread of a call. That thread then reads the next
call itself, because a switch between threads takes longer than most calls. If its function takes
long, the thread in `run` takes the right back, so that other calls do not wait.
"""

from __future__ import annotations

import threading
import time

from ck_pro.executor.worker import wire

CHECK_SECONDS = 0.002
_MAX_BUSY_SECONDS = 0.001


class ReaderToken:
    """The right to read, lent to the thread of a call, or kept by the thread in `run`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: object | None = None
        self._busy_since: float | None = None
        self._messages: list[wire.Message] = []

    @property
    def is_lent(self) -> bool:
        """Whether the thread of a call has the right."""
        return self._holder is not None

    def lend(self) -> object:
        """Lend the right to the thread of a new call, which proves it with the returned token."""
        token = object()
        with self._lock:
            self._holder, self._busy_since = token, time.monotonic()
        return token

    def take_back(self) -> None:
        """Take the right back from a thread whose function takes long."""
        with self._lock:
            since = self._busy_since
            if since is not None and time.monotonic() - since >= _MAX_BUSY_SECONDS:
                self._holder = self._busy_since = None

    def keep(self, token: object, busy: bool) -> bool:
        """Record whether the holder runs a function or reads; return whether it still holds it."""
        with self._lock:
            if self._holder is not token:
                return False
            self._busy_since = time.monotonic() if busy else None
            return True

    def give_back(self, token: object, messages: list[wire.Message]) -> None:
        """Return the right, with messages that the thread has read but not handled."""
        with self._lock:
            if self._holder is token:
                self._holder = self._busy_since = None
                self._messages += messages

    def revoke(self) -> None:
        """Take the right back in any case."""
        with self._lock:
            self._holder = self._busy_since = None

    def take_messages(self) -> list[wire.Message]:
        """Return the messages that came with `give_back`, and forget them."""
        with self._lock:
            messages, self._messages = self._messages, []
        return messages
