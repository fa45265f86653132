"""Ctrl-C in a command: no traceback before it starts or after it ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def quit_on_interrupt() -> None:
    """Let Ctrl-C end this process without a traceback; entry points call it before they import.

    No effect if the program that started this process ignores Ctrl-C.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within this context, Ctrl-C raises KeyboardInterrupt despite `quit_on_interrupt`."""
    quits = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    try:
        if quits:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        if quits:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
