"""Ctrl-C, SIGTERM and a closed terminal: the first stops gracefully, the second immediately."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that stop a run."""


def _write_error(text: str) -> None:
    # bypass Python's buffers, which refuse reentrant writes
    with suppress(OSError):  # the terminal is closed
        os.write(2, f"\n{text}\n".encode())


class StopSignals:
    """Context in which the first Ctrl-C, SIGTERM or SIGHUP sets `stop` and the second interrupts.

    SIGHUP never counts as the second signal, because the shell and the kernel may both send it
    when a terminal closes. An ignored SIGHUP (`nohup`) stays ignored.

    Args:
        stop: event that running tasks check.
        at_once: raise KeyboardInterrupt at the first signal too. Needed while a human types,
            because reading a terminal does not check the event.
        say: called with one line at the first signal; default: print it to standard error.
            It runs inside a signal handler, so it must not acquire a lock.

    Only the main thread handles signals; in another thread this context does nothing.
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
        if not again:  # a second signal may interrupt `set`, which holds a lock
            self.stop.set()
        if (again and number != signal.SIGHUP) or self.at_once:
            raise KeyboardInterrupt
        if not again:
            self._say("Stopping. Press again to stop immediately.")
