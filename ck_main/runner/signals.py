"""Ctrl-C, SIGTERM and a closed terminal: once means stop in good order, twice means now."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask us to end."""


def _write_error(text: str) -> None:
    # past Python's buffers: those refuse a write from within a write
    with suppress(OSError):  # the terminal is gone, and nobody reads it
        os.write(2, f"\n{text}\n".encode())


class StopSignals:
    """While it is entered, the first Ctrl-C, SIGTERM or SIGHUP sets `stop`; the second interrupts.

    Of a terminal that closes a shell and the kernel may both tell, so SIGHUP is never the second;
    one that is ignored (`nohup`) stays so.

    Args:
        stop: the event that running tasks look at.
        at_once: interrupt (raise KeyboardInterrupt) at the first signal too. For a person who
            types: reading a terminal looks at no event.
        say: told one line when the first signal came; by default it goes to standard error.
            It is called in the middle of whatever was interrupted, so it must take no lock.

    Only the main thread can take signals; entered from another it does nothing.
    """

    def __init__(
        self,
        stop: threading.Event,
        *,
        at_once: bool = False,
        say: Callable[[str], None] = _write_error,
    ):
        self.stop, self.at_once, self._say = stop, at_once, say
        self._previous: dict[signal.Signals, Any] = {}
        self._seen = False

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again, self._seen = self._seen, True
        if not again:  # a second signal may come in the middle of this, which holds a lock
            self.stop.set()
        if (again and number != signal.SIGHUP) or self.at_once:
            raise KeyboardInterrupt
        if not again:
            self._say("Stopping: unfinished tasks keep what they have. Once more stops at once.")
