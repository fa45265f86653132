"""Who reads the worker's messages, and how long the main code waits for calls.

One thread at a time has the right to read. The thread in `CodeExecutor.run` lends it to the thread
of a call. That thread then reads the next call itself, because a switch between threads takes
longer than most calls. If its function takes long, the thread in `run` takes the right back, so
that other calls do not wait.

The clock of a step stops while its main code waits for calls.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ck_pro.executor.worker import wire

CHECK_SECONDS = 0.002
_MAX_BUSY_SECONDS = 0.001
_ASK_SECONDS = 0.5
_REPLY_SECONDS = 1.0


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


class MainWaits:
    """The time that the main code of a step has spent waiting for calls.

    The main code waits while it makes a call itself. While only other threads make calls, it may
    wait for them or compute. This class then asks the worker regularly. Time for which the worker
    does not reply soon counts as the code's own.

    Args:
        ask: sends the question to the worker, which replies with a message.
    """

    def __init__(self, ask: Callable[[], None]):
        self._ask = ask
        self._lock = threading.Lock()
        self._main = self._others = 0  # pending calls
        self._since = 0.0
        self._waited = 0.0
        self._unknown = 0.0  # time since the last reply in which only other threads made calls
        self._asked: float | None = None

    def start(self, from_main: bool, now: float) -> None:
        """Record the start of a call, by the main thread or by another one."""
        with self._lock:
            self._advance(now)
            if from_main:
                self._main += 1
            else:
                self._others += 1

    def end(self, from_main: bool, now: float) -> None:
        """Record the end of a call."""
        with self._lock:
            self._advance(now)
            if from_main:
                self._main -= 1
            else:
                self._others -= 1

    def set_reply(self, waits: bool) -> None:
        """Record the worker's reply: whether the main code is waiting now."""
        with self._lock:
            self._advance(time.monotonic())
            if waits:
                self._waited += self._unknown
            self._unknown = 0.0
            self._asked = None

    def seconds(self, now: float) -> float:
        """Return the seconds in which the main code has waited, or may have waited."""
        with self._lock:
            self._advance(now)
            if self._asked is not None and now - self._asked >= _REPLY_SECONDS:
                self._unknown, self._asked = 0.0, None
            return self._waited + self._unknown

    def ask_if_unknown(self, now: float) -> float | None:
        """Ask the worker if that is due.

        Returns:
            Seconds until the next question may be due; None if none is needed.
        """
        with self._lock:
            self._advance(now)
            if self._main or not (self._others or self._unknown):
                return None
            due = self._asked is None and self._unknown >= _ASK_SECONDS
            if due:
                self._asked = now
        if due:
            self._ask()
        return _ASK_SECONDS

    def _advance(self, now: float) -> None:
        passed, self._since = max(0.0, now - self._since), max(now, self._since)
        if self._main:
            self._waited += passed
        elif self._others:
            self._unknown += passed
