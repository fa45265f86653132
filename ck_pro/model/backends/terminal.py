"""The terminal: one reader at a time, and lines that a cancelled run does not wait for."""

from __future__ import annotations

import contextlib
import contextvars
import os
import select
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from ck_pro.exceptions import Cancelled

_TURN = threading.Lock()
_POLL_SECONDS = 0.1
_ahead = bytearray()
"""Typed at the terminal and not read yet; belongs to the thread that has the turn."""
_NOBODY: tuple[threading.Event | None, str] = (None, "the agent")
_asker = contextvars.ContextVar("asker", default=_NOBODY)
"""On whose behalf this thread asks the user: the cancel flag of the run, its agents."""


@contextlib.contextmanager
def asking_for(cancel: threading.Event, agents: str) -> Iterator[None]:
    """Have the questions of this thread to the user belong to a run.

    Args:
        cancel: ends the questions with Cancelled when it is set.
        agents: the run's agent and its callers, as `main/helper`.
    """
    token = _asker.set((cancel, agents))
    try:
        yield
    finally:
        _asker.reset(token)


def asking_agents() -> str:
    """The agents of `asking_for`; "the agent" outside of it."""
    return _asker.get()[1]


@contextlib.contextmanager
def terminal_turn(cancel: threading.Event | None = None) -> Iterator[None]:
    """The terminal for one thread; a cancelled run does not queue on.

    Args:
        cancel: the run's; None for that of `asking_for`, if any.

    Raises:
        Cancelled: `cancel` was set while another thread had the terminal.
    """
    cancel = cancel or _asker.get()[0]
    while not _TURN.acquire(timeout=0.2):
        _check(cancel)
    try:
        yield
    finally:
        _TURN.release()


def read_line(stream: TextIO, cancel: threading.Event | None = None, *, edit: bool = False) -> str:
    """The next line with its end; "" at the end of input.

    Only the main thread is interrupted by Ctrl-C. Any other thread that reads a terminal looks at
    `cancel` meanwhile. Call it within `terminal_turn`.

    Args:
        stream: standard input, or a stream in its place.
        cancel: the run's; None for that of `asking_for`, if any.
        edit: let the user edit the line by arrow keys, where that is possible.

    Raises:
        Cancelled: `cancel` was set.
        UnicodeDecodeError: the line is not in the stream's encoding.
    """
    cancel = cancel or _asker.get()[0]
    terminal = stream is sys.stdin and stream.isatty()
    if not terminal:
        return stream.readline()
    if edit and not _ahead and threading.current_thread() is threading.main_thread():
        return _edited()
    line = _typed(stream.fileno(), cancel)
    return line.decode(stream.encoding or "utf-8").replace("\r\n", "\n")


def _edited() -> str:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - its import makes the line editable
    try:
        return input() + "\n"
    except EOFError:
        return ""


def _typed(descriptor: int, cancel: threading.Event | None) -> bytes:
    """A line from a terminal, past Python's buffers: a thread that waits in those cannot be ended,
    and keeps their lock."""
    while b"\n" not in _ahead:
        _check(cancel)
        if not select.select([descriptor], [], [], _POLL_SECONDS)[0]:
            continue
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            break
        _ahead.extend(data)
    end = _ahead.find(b"\n") + 1 or len(_ahead)
    line = bytes(_ahead[:end])
    del _ahead[:end]
    return line


def _check(cancel: threading.Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Cancelled("the run was cancelled before the person answered")
