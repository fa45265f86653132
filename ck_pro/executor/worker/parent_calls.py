"""The worker's end of the socket: frames, and calls of the parent's functions from any thread.

A thread that waits for a reply reads the socket itself, and passes replies to the threads that wait
for them. So a call from a single thread needs no switch between threads.
"""

from __future__ import annotations

import builtins
import itertools
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import wire
from .code import stubs
from .code.workspace import Workspace
from .spin import Spin
from .values import encode

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_READ_BYTES = 65_536  # a larger buffer would be mapped and unmapped for every read
_SPIN_SECONDS = 0.0001
# the code may replace these in their modules
_getpid, _exit, _monotonic = os.getpid, os._exit, time.monotonic
_Lock, _Condition = threading.Lock, threading.Condition
_WAITING = frozenset({"threading", "queue", "selectors", "concurrent", __name__.split(".")[0]})
"""Modules whose functions wait: `join()`, `result()`, `get()`, and a call of a function."""
_CANCELLED = {
    "type": "RuntimeError",
    "bases": ["RuntimeError"],
    "args": None,
    "text": "the call was cancelled because its step ended; wait for threads that call functions",
}


class _Call:
    """A pending call."""

    __slots__ = ("reply", "turn")

    def __init__(self) -> None:
        self.reply: list[Any] | None = None
        self.turn = _Lock()
        self.turn.acquire()

    def wake(self) -> None:
        try:
            self.turn.release()
        except RuntimeError:  # it is already awake
            pass


class ParentCalls:
    """Sends and receives frames, and keeps the pending calls.

    Args:
        end: ends the step after a terminal call; does not return.
    """

    sock: socket.socket
    workspace: Workspace
    """Runs the calls that the parent sends back."""

    def __init__(self, end: Callable[[], None]):
        self.step: int | None = None
        """The running step; None between steps, when calls are refused."""
        self._end = end
        self._pid = self._main = 0
        self._reader = wire.FrameReader(stubs.Result.make, limit=2 * wire.MAX_FRAME)
        self._poll = select.poll()
        self._spin = Spin(self._poll, _SPIN_SECONDS)
        self._ids = itertools.count(1)
        self._reset()

    def _reset(self) -> None:
        self._read_lock = _Lock()
        self._send_lock = _Lock()
        self._state = _Condition()
        self._pending: dict[int, _Call] = {}

    def connect(self, sock: socket.socket) -> None:
        """Use this socket to the parent."""
        self.sock = sock
        self._pid = _getpid()
        self._main = threading.get_ident()
        self._poll.register(sock.fileno(), select.POLLIN)

    def send(self, message: list[Any]) -> None:
        """Send a frame to the parent."""
        data = wire.pack(message)
        with self._send_lock:
            self.sock.sendall(data)

    def read(self) -> list[Any]:
        """Wait for the next frame. Exit the process if the parent has ended."""
        while (message := self._reader.take()) is None:
            data = self.sock.recv(_READ_BYTES)
            if not data:
                _exit(0)
            self._reader.feed(data)
        return message

    def close_step(self, until: float) -> None:
        """Refuse new calls, and wait for the pending ones. Called when the main code has ended.

        Args:
            until: time by the monotonic clock at which to cancel pending calls.
        """
        with self._state:
            while self._pending and (seconds := until - _monotonic()) > 0:
                self._state.wait(seconds)
            step, self.step = self.step, None
            cancelled = list(self._pending.values())
            for one in cancelled:
                one.reply = one.reply or ["exc", 0, _CANCELLED]
            self._state.notify_all()
            if not cancelled:
                return
            leaving = _Call()
            number = next(self._ids)
            self._pending[number] = leaving
        self.workspace.kill_foreground()
        self.send(["leave", step, number])
        for one in cancelled:
            one.wake()
        self._await(leaving)  # a thread of a cancelled call may read the socket until then
        with self._state:
            self._pending.clear()

    def abandon(self) -> None:
        """Forget all calls. Their frames never continue, and may hold any of the locks."""
        self._reset()

    def call(self, name: str, args: Any, kwargs: Any) -> Any:
        """Call a function in the parent, from any thread.

        Raises:
            RuntimeError: no step is running, or this is a forked process.
            Exception: the error of the function.
        """
        if _getpid() != self._pid:
            raise RuntimeError(f"{name}() can be called only in the main process, not in a fork")
        given = [
            [encode(one, stubs.tag_result) for one in args],
            {key: encode(one, stubs.tag_result) for key, one in kwargs.items()},
        ]
        pending = _Call()
        with self._state:
            while self.step is not None and len(self._pending) >= wire.MAX_CALLS:
                self._state.wait()
            if self.step is None:
                raise RuntimeError(f"{name}() was called after its step had ended")
            step = self.step
            number = next(self._ids)
            self._pending[number] = pending
        try:
            kind = "call" if threading.get_ident() == self._main else "thread_call"
            self.send([kind, step, number, name, *given])
            reply = self._await(pending)
            if reply[0] == "do":  # still pending: the end of the step waits for it
                return self.workspace.do(*reply[2:])
        finally:
            with self._state:
                self._pending.pop(number, None)
                self._state.notify_all()
        if reply[0] == "ret":
            return reply[2]
        if reply[0] == "end":
            self._end()
        raise stubs.make_error(reply[2])

    def _await(self, call: _Call) -> list[Any]:
        while call.reply is None:
            if self._read_lock.acquire(blocking=False):
                try:
                    self._spin.wait()
                    while call.reply is None:
                        self._route(self.read())
                finally:
                    self._read_lock.release()
                    self._wake_next_reader(call)
            else:
                call.turn.acquire()
        return call.reply

    def _route(self, message: list[Any]) -> None:
        if message[0] == "where":
            self.send(["where", message[1], self._main_waits()])
            return
        other = self._pending.get(message[1])
        if other is not None:  # else an exception in a signal handler ended the call
            other.reply = message
            other.wake()

    def _main_waits(self) -> bool:
        frame = sys._current_frames().get(self._main)
        name = None if frame is None else frame.f_globals.get("__name__")
        return isinstance(name, str) and name.split(".")[0] in _WAITING

    def _wake_next_reader(self, done: _Call) -> None:
        with self._state:
            for other in self._pending.values():
                if other is not done and other.reply is None:
                    other.wake()
                    return
