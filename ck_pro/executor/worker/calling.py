"""The worker's end of the socket: frames, and calls of the parent's functions from any thread.

A thread that waits for the answer to its call reads the socket itself, and hands to others what is
theirs; so a call from a single thread costs no switch between threads.
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

from . import stubs, wire
from .workspace import Workspace

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_READ = 65_536  # more would have to be mapped and unmapped for every read
_SPIN_SECONDS = 0.0001
_getpid, _monotonic = os.getpid, time.monotonic  # the code may replace them
_WAITING = frozenset({"threading", "queue", "selectors", "concurrent", __name__.split(".")[0]})
"""Modules in whose functions the main code waits: `join()`, `result()`, `get()`, a call itself."""
_GIVEN_UP = {
    "type": "RuntimeError",
    "bases": ["RuntimeError"],
    "args": None,
    "text": "the call was cancelled, as its step has ended: wait for threads that call functions",
}


class _Call:
    """A call that waits for its answer."""

    __slots__ = ("reply", "turn")

    def __init__(self) -> None:
        self.reply: list[Any] | None = None
        self.turn = threading.Lock()
        self.turn.acquire()

    def wake(self) -> None:
        try:
            self.turn.release()
        except RuntimeError:  # it has been woken already
            pass


class Calls:
    """Frames to and from the parent, and the calls that wait for one.

    Args:
        end: ends the step, when the parent says that a call was a terminal one; does not return.
    """

    sock: socket.socket
    workspace: Workspace
    """Does what the parent asks to be done here."""

    def __init__(self, end: Callable[[], None]):
        self.step: int | None = None
        """The step whose code runs; None: none does, and calls are refused."""
        self._end = end
        self._pid = self._main = 0
        self._reader = wire.FrameReader(stubs.Result.make, limit=2 * wire.MAX_FRAME)
        self._poll = select.poll()
        self._spin = wire.Spin(self._poll, _SPIN_SECONDS)
        self._ids = itertools.count(1)
        self._renew()

    def _renew(self) -> None:
        self._read_lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._state = threading.Condition()
        self._pending: dict[int, _Call] = {}

    def begin(self, sock: socket.socket) -> None:
        """Begin a session.

        Args:
            sock: the socket to the parent.
        """
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
        """Wait for the next frame; with the parent gone, this process ends."""
        while (message := self._reader.take()) is None:
            data = self.sock.recv(_READ)
            if not data:
                os._exit(0)
            self._reader.feed(data)
        return message

    def close_step(self, until: float) -> None:
        """End the calls of a step whose main code has ended; further ones are refused.

        Args:
            until: when calls in progress are given up, by the monotonic clock.
        """
        with self._state:
            while self._pending and (seconds := until - _monotonic()) > 0:
                self._state.wait(seconds)
            step, self.step = self.step, None
            given_up = list(self._pending.values())
            for one in given_up:
                one.reply = one.reply or ["exc", 0, _GIVEN_UP]
            self._state.notify_all()
            if not given_up:
                return
            waiting = _Call()
            number = next(self._ids)
            self._pending[number] = waiting
        self.workspace.kill_foreground()
        self.send(["leave", step, number])
        for one in given_up:
            one.wake()
        self._await(waiting)  # until then one of them may read the socket
        with self._state:
            self._pending.clear()

    def drop(self) -> None:
        """Forget all calls. Their frames never go on, and may hold any of the locks."""
        self._renew()

    def call(self, name: str, args: Any, kwargs: Any) -> Any:
        """Call a function of the parent's, from any thread.

        Raises:
            RuntimeError: not while a step runs, or not in the process of the code.
            Exception: what the function raised.
        """
        if _getpid() != self._pid:
            raise RuntimeError(f"{name}() can be called by the process of the code only")
        given = [
            [wire.encode(one, stubs.tag_result) for one in args],
            {key: wire.encode(one, stubs.tag_result) for key, one in kwargs.items()},
        ]
        waiting = _Call()
        with self._state:
            while self.step is not None and len(self._pending) >= wire.MAX_CALLS:
                self._state.wait()
            if self.step is None:
                raise RuntimeError(f"{name}() was called after its step had ended")
            step = self.step
            number = next(self._ids)
            self._pending[number] = waiting
        try:
            kind = "call" if threading.get_ident() == self._main else "thread_call"
            self.send([kind, step, number, name, *given])
            reply = self._await(waiting)
            if reply[0] == "do":  # inside of the `try`: the end of the step waits for it
                return self.workspace.do(reply[2], reply[3])
        finally:
            with self._state:
                self._pending.pop(number, None)
                self._state.notify_all()
        if reply[0] == "ret":
            return reply[2]
        if reply[0] == "end":
            self._end()
        raise stubs.make_error(reply[2])

    def _await(self, waiting: _Call) -> list[Any]:
        while waiting.reply is None:
            if self._read_lock.acquire(blocking=False):
                try:
                    self._spin.wait()
                    while waiting.reply is None:
                        self._route(self.read())
                finally:
                    self._read_lock.release()
                    self._pass_the_lead(waiting)
            else:
                waiting.turn.acquire()
        return waiting.reply

    def _route(self, message: list[Any]) -> None:
        if message[0] == "where":
            self.send(["where", message[1], self._main_waits()])
            return
        other = self._pending.get(message[1])
        if other is not None:  # else: its caller has given up, by an exception of a signal handler
            other.reply = message
            other.wake()

    def _main_waits(self) -> bool:
        frame = sys._current_frames().get(self._main)
        name = None if frame is None else frame.f_globals.get("__name__")
        return isinstance(name, str) and name.split(".")[0] in _WAITING

    def _pass_the_lead(self, mine: _Call) -> None:
        with self._state:
            for other in self._pending.values():
                if other is not mine and other.reply is None:
                    other.wake()
                    return
