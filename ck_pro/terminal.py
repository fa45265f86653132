"""Standard input for the user's lines: one reader at a time, and reads that a run can cancel."""

from __future__ import annotations

import contextlib
import contextvars
import os
import select
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, TextIO

from ck_pro.exceptions import Cancelled, InputError

_READER = threading.Lock()
_POLL_SECONDS = 0.1
LONGEST_LINE = 64 << 20
"""Limit of a line, in bytes."""
_unread: weakref.WeakKeyDictionary[TextIO, bytearray] = weakref.WeakKeyDictionary()
"""Bytes read from a stream beyond the last line; `_READER` guards them."""


class _Asker(NamedTuple):
    """The run that asks the user in this context; see `asking_for`."""

    cancel: threading.Event | None = None
    agents: str = "the agent"
    held: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext


_NO_RUN = _Asker()
_asker: contextvars.ContextVar[_Asker] = contextvars.ContextVar("asker", default=_NO_RUN)


@contextlib.contextmanager
def asking_for(
    cancel: threading.Event,
    agents: str,
    held: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[None]:
    """Assign the questions that this thread asks the user to a run.

    Args:
        cancel: when set, a question ends with Cancelled.
        agents: the run's agent and its callers, as `main/helper`.
        held: keeps what the run has on lease; see `waiting_for_user`.
    """
    token = _asker.set(_Asker(cancel, agents, held))
    try:
        yield
    finally:
        _asker.reset(token)


def asking_agents() -> str:
    """Return the agents of `asking_for`; "the agent" outside of it."""
    return _asker.get().agents


@contextlib.contextmanager
def waiting_for_user() -> Iterator[None]:
    """Keep the browsers of the asking run while it waits for the user's answer.

    All code that waits for a person does so in this context: otherwise the leases expire, because
    a run renews them only when it acts. `terminal_turn` includes it.
    """
    asker = _asker.get()
    token = _asker.set(asker._replace(held=contextlib.nullcontext))  # once for nested waits
    try:
        with asker.held():
            yield
    finally:
        _asker.reset(token)


@contextlib.contextmanager
def terminal_turn(cancel: threading.Event | None = None) -> Iterator[None]:
    """Reserve standard input for this thread; other threads wait.

    Args:
        cancel: the run's cancel flag; None: that of `asking_for`, if any.

    Raises:
        Cancelled: `cancel` was set while the thread waited.
    """
    cancel = cancel or _asker.get().cancel
    with waiting_for_user():
        while not _READER.acquire(timeout=_POLL_SECONDS):
            _check(cancel)
        try:
            yield
        finally:
            _READER.release()


def read_line(stream: TextIO, cancel: threading.Event | None = None, *, edit: bool = False) -> str:
    """Return the next line with its end; "" at the end of input. Call it within `terminal_turn`.

    Reads a terminal, pipe or file below Python's buffers, since a thread that blocks in those
    cannot be interrupted. Read such a stream only with this function: it may hold back a part of
    the input. Other streams are read with `readline`, which cannot be cancelled.

    Args:
        stream: standard input, or another stream.
        cancel: the run's cancel flag; None: that of `asking_for`, if any.
        edit: let the user edit the line with the arrow keys, where possible.

    Raises:
        Cancelled: `cancel` was set.
        InputError: the line exceeds `LONGEST_LINE`.
        UnicodeDecodeError: the line is not in the stream's encoding.
    """
    cancel = cancel or _asker.get().cancel
    descriptor = _descriptor(stream)
    if descriptor is None:
        return stream.readline()
    unread = _unread.setdefault(stream, bytearray())
    in_main = threading.current_thread() is threading.main_thread()  # Ctrl-C interrupts it
    if edit and in_main and not unread and stream is sys.stdin and stream.isatty():
        return _edited_line()
    line = _raw_line(descriptor, unread, cancel)
    return line.decode(stream.encoding or "utf-8").replace("\r\n", "\n")


def _descriptor(stream: TextIO) -> int | None:
    """Return the stream's file descriptor; None for a stream in memory."""
    try:
        return stream.fileno()
    except (OSError, AttributeError):  # io.UnsupportedOperation is an OSError
        return None


def _edited_line() -> str:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - importing it makes the line editable
    try:
        return input() + "\n"
    except EOFError:
        return ""


def _raw_line(descriptor: int, unread: bytearray, cancel: threading.Event | None) -> bytes:
    searched = 0
    while unread.find(b"\n", searched) < 0:
        if len(unread) > LONGEST_LINE:
            raise InputError(f"standard input: a line exceeds {LONGEST_LINE >> 20} MB")
        searched = len(unread)
        _check(cancel)
        if not select.select([descriptor], [], [], _POLL_SECONDS)[0]:
            continue
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # the terminal was closed
            data = b""
        if not data:
            break
        unread.extend(data)
    end = unread.find(b"\n") + 1 or len(unread)
    line = bytes(unread[:end])
    del unread[:end]
    return line


def _check(cancel: threading.Event | None) -> None:
    if cancel is not None and cancel.is_set():
        raise Cancelled("the run was cancelled before the user answered")
