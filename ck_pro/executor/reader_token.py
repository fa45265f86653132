"""Who reads what the worker says: the thread in `run`, or the thread of a call.

Code that calls functions one after the other is served by one thread of calls, which reads the next
call itself: a switch between threads costs more than such a call. The thread in `run` looks on, and
takes the reading back as soon as a function takes its time, so that other calls do not wait for it.
"""

from __future__ import annotations

import threading
import time

from ck_pro.executor.worker import wire

GLANCE_SECONDS = 0.002
_PATIENCE = 0.001


class ReaderToken:
    """The right to read, in the hands of a call's thread, or of nobody but `run`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: object | None = None
        self._busy_since: float | None = None
        self._mail: list[wire.Message] = []

    @property
    def is_out(self) -> bool:
        """True while a call's thread has it."""
        return self._holder is not None

    def give(self) -> object:
        """Give it to the thread of the call that begins now; it shows the token to use it."""
        token = object()
        with self._lock:
            self._holder, self._busy_since = token, time.monotonic()
        return token

    def take_back(self) -> None:
        """Take it back from a thread whose function takes its time."""
        with self._lock:
            since = self._busy_since
            if since is not None and time.monotonic() - since >= _PATIENCE:
                self._holder = self._busy_since = None

    def keep(self, token: object, busy: bool) -> bool:
        """Say what its holder does: run a function, or read. False: it holds it no more."""
        with self._lock:
            if self._holder is not token:
                return False
            self._busy_since = time.monotonic() if busy else None
            return True

    def hand_in(self, token: object, messages: list[wire.Message]) -> None:
        """Give it back, with messages that were read and not served."""
        with self._lock:
            if self._holder is token:
                self._holder = self._busy_since = None
                self._mail += messages

    def revoke(self) -> None:
        """End it: nobody but `run` reads."""
        with self._lock:
            self._holder = self._busy_since = None

    def mail(self) -> list[wire.Message]:
        """Take what was handed in."""
        with self._lock:
            messages, self._mail = self._mail, []
        return messages
