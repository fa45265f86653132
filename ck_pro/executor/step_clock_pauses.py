"""When the clock of a step stands still: while its main code waits for calls of functions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_ASK_SECONDS = 0.5
_ANSWER_SECONDS = 1.0


class MainWaits:
    """How long the main code of a step has waited for calls.

    It waits while it is in a call itself. While only other threads are in calls it may wait for
    them, or do something else: the worker is asked now and then. What it does not answer in time
    counts as the code's own.

    Args:
        ask: asks the worker, which answers by a message.
    """

    def __init__(self, ask: Callable[[], None]):
        self._ask = ask
        self._lock = threading.Lock()
        self._main = self._others = 0  # calls in progress
        self._since = 0.0
        self._waited = 0.0
        self._unsure = 0.0  # in which only other threads were in calls, since the last answer
        self._asked: float | None = None

    def begin(self, from_main: bool, now: float) -> None:
        """Note that a call begins: of the main code, or of another thread."""
        with self._lock:
            self._advance(now)
            if from_main:
                self._main += 1
            else:
                self._others += 1

    def end(self, from_main: bool, now: float) -> None:
        """Note that a call has ended."""
        with self._lock:
            self._advance(now)
            if from_main:
                self._main -= 1
            else:
                self._others -= 1

    def answer(self, waits: bool) -> None:
        """Take the worker's answer: whether the main code waits now."""
        with self._lock:
            self._advance(time.monotonic())
            if waits:
                self._waited += self._unsure
            self._unsure = 0.0
            self._asked = None

    def seconds(self, now: float) -> float:
        """Give the seconds so far in which the main code waited, or may have waited."""
        with self._lock:
            self._advance(now)
            if self._asked is not None and now - self._asked >= _ANSWER_SECONDS:
                self._unsure, self._asked = 0.0, None
            return self._waited + self._unsure

    def ask_if_unsure(self, now: float) -> float | None:
        """Ask the worker if it is time to; give the seconds until the next time, or None."""
        with self._lock:
            self._advance(now)
            if self._main or not (self._others or self._unsure):
                return None
            due = self._asked is None and self._unsure >= _ASK_SECONDS
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
            self._unsure += passed
