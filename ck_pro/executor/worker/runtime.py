"""The worker: takes steps from the parent, runs them, and calls back for the parent's functions.

Frames that it takes: `["run", step, code, timeout, functions | null, fresh]`, `["ret", id, value]`,
`["exc", id, error]`, `["end", id]` (the terminal function was accepted), `["do", id, name, kwargs]`
(do it yourself: `workspace.py`) and `["bye"]`.
Frames that it gives: `["ready", isolation]`, `["call", step, id, name, args, kwargs]` and
`["done", step, value, error, threads_left]`.

A thread that waits for the answer to its call reads the socket itself, and hands to others what is
theirs; so a call from a single thread costs no switch between threads.
"""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import itertools
import os
import select
import signal
import socket
import sys
import threading
from types import ModuleType
from typing import Any

from . import kernel, limits, stubs, wire
from .printing import Streams, leave, make_mark, no_input
from .source import SourceBook, describe
from .workspace import Workspace

_READ = 65_536  # more would have to be mapped and unmapped for every read
_SPIN_SECONDS = 0.0001
END_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2) + 9 if sys.platform == "linux" else 31


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


class Worker:
    """Runs the steps of one session, in this process.

    It is made in the zygote, so that its forks have it for free; `begin` gives it a session.
    """

    _sock: socket.socket
    _config: dict[str, Any]
    _workspace: Workspace
    _module: ModuleType

    def __init__(self) -> None:
        self._reader = wire.FrameReader(stubs.Result.make, limit=2 * wire.MAX_FRAME)
        self._poll = select.poll()
        self._spin = wire.Spin(self._poll, _SPIN_SECONDS)
        self._read_lock = threading.Lock()
        self._send_lock = threading.Lock()
        self._state = threading.Condition()
        self._pending: dict[int, _Call] = {}
        self._ids = itertools.count(1)
        self._step: int | None = None  # None: no step runs, calls are refused
        self._number = 0
        self._parked = 0
        self._pid = 0
        self._described: dict[str, Any] = {}
        self._stubs: dict[str, Any] = {}
        self._book = SourceBook()
        self._streams = Streams(stubs.handle_of)
        self._builtins = {
            "print": self._streams.make_print(),
            "input": no_input,
            "exit": leave,
            "quit": leave,
        }
        self._mend_builtins = vars(builtins).update
        self._mend_builtins(self._builtins)
        self._builtins = vars(builtins).copy()
        self._out_of_memory = False
        os.register_at_fork(after_in_child=self._streams.after_fork)

    def begin(self, sock: socket.socket, pipe: int, config: dict[str, Any], scratch: str) -> None:
        """Begin a session.

        Args:
            sock: the socket to the parent.
            pipe: descriptor of the pipe for output.
            config: what the parent said of the session (`nonce`, `value_limit`, ...).
            scratch: a place beside the working directory that can be written.
        """
        self._sock = sock
        self._config = config
        self._pid = os.getpid()
        self._poll.register(sock.fileno(), select.POLLIN)
        self._streams.begin(pipe, make_mark(config["nonce"]))
        self._workspace = Workspace(config["workdir"], scratch)
        self._module = self._new_module()
        kernel.set_signal(END_SIGNAL, self._end_here)

    def send(self, message: list[Any]) -> None:
        """Send a frame to the parent."""
        data = wire.pack(message)
        with self._send_lock:
            self._sock.sendall(data)

    def serve(self) -> None:
        """Run steps until the parent says goodbye, or is gone."""
        while True:
            message = self._read()
            if message[0] == "run":
                self._run(*message[1:])
                self._prepare()
            elif message[0] == "bye":
                self._finish()
            # else: a late answer to a call of a step that is over

    def _finish(self) -> None:
        """End as a script does. What takes its time is killed."""
        flush_files()
        try:
            atexit._run_exitfuncs()
        finally:
            flush_files()
            os._exit(0)

    def _prepare(self) -> None:
        """Make whole again what the code may have broken, while nobody waits for it."""
        self._mend_builtins(self._builtins)
        sys.modules["__main__"] = self._module
        self._streams.mend()
        self._sock.setblocking(True)

    def _read(self) -> list[Any]:
        while (message := self._reader.take()) is None:
            data = self._sock.recv(_READ)
            if not data:
                os._exit(0)
            self._reader.feed(data)
        return message

    # -- steps

    def _run(
        self, step: int, code: str, timeout: float | None, functions: Any, fresh: bool
    ) -> None:
        if fresh:
            self._module = self._new_module()
            self._book.forget_futures()
        if functions is not None:
            self._take_functions(functions)
        before: set[threading.Thread] = set()
        if threading.active_count() > 1:  # they went on in the meantime
            self._prepare()
            before.update(threading.enumerate())
        limits.grant_cpu(timeout)
        limits.grant_memory(0.5 if self._out_of_memory else 0.0)
        finder: Any = sys.path_importer_cache.get(self._config["workdir"])
        if finder is not None:  # a module written a moment ago must be found
            finder.invalidate_caches()
        self._step = self._number = step
        value, error = self._execute(step, code)
        if os.getpid() != self._pid:  # a child that the code forked came to the end of the code
            os._exit(0 if error is None else 1)
        try:
            self._wait_for_threads(before)
        except BaseException as late:  # noqa: BLE001 - a signal handler of the code's may raise
            error = error or describe(late, f"<step {step}>")
        self._done(value, error, False)

    def _execute(self, step: int, code: str) -> tuple[str | None, list[Any] | None]:
        name = f"<step {step}>"
        names = self._module.__dict__
        names.pop("__warningregistry__", None)  # what warns again is told again
        value = None
        try:
            body, last = self._book.compile(name, code)
            try:
                if body is not None:
                    exec(body, names)
                if last is not None:
                    found = eval(last, names)
                    if found is not None:
                        value = repr(found)
            finally:
                self._mend_builtins(self._builtins)  # before this file needs one of them
        except SystemExit as asked:
            if asked.code in (None, 0):
                return value, None
            return value, describe(asked, name)
        except BaseException as raised:  # noqa: BLE001 - this is the boundary: all becomes a value
            limits.grant_memory(1.0)
            self._out_of_memory = isinstance(raised, MemoryError)
            return value, describe(raised, name)
        limits.grant_memory(1.0)
        self._out_of_memory = False
        return _shorten(value, self._config["value_limit"]), None

    def _wait_for_threads(self, before: set[threading.Thread]) -> None:
        # as CPython at the end of a script; but the idle threads of a pool would never end
        pools = sys.modules.get("concurrent.futures.thread")
        pooled = pools._threads_queues if pools is not None else ()
        main = threading.main_thread()
        while threading.active_count() > 1:
            left = [
                one
                for one in threading.enumerate()
                if not (one in before or one is main or one.daemon or one in pooled)
            ]
            if not left:
                break
            left[0].join()
        with self._state:
            while self._pending:
                self._state.wait()
            self._step = None

    def _done(self, value: str | None, error: list[Any] | None, threads_left: bool) -> None:
        self._step = None
        self.send(["done", self._number, value, error, threads_left])

    def _new_module(self) -> ModuleType:
        module = ModuleType("__main__")
        module.__dict__["__builtins__"] = builtins
        module.__dict__.update(self._stubs)
        sys.modules["__main__"] = module
        return module

    def _take_functions(self, functions: dict[str, Any]) -> None:
        names = self._module.__dict__
        for name in [name for name in self._stubs if name not in functions]:
            if names.get(name) is self._stubs.pop(name):
                del names[name]
        for name, described in functions.items():
            if self._described.get(name) != described or name not in self._stubs:
                self._stubs[name] = names[name] = stubs.make_stub(name, described, self._call)
        self._described = functions

    # -- calls

    def _call(self, name: str, args: Any, kwargs: Any) -> Any:
        if os.getpid() != self._pid:
            raise RuntimeError(f"{name}() can be called by the process of the code only")
        given = [
            [wire.encode(one, stubs.tag_result) for one in args],
            {key: wire.encode(one, stubs.tag_result) for key, one in kwargs.items()},
        ]
        waiting = _Call()
        with self._state:
            if self._step is None:
                raise RuntimeError(f"{name}() was called after its step had ended")
            step = self._step
            number = next(self._ids)
            self._pending[number] = waiting
        try:
            self.send(["call", step, number, name, *given])
            reply = self._await(waiting)
            if reply[0] == "do":  # inside of the `try`: the end of the step waits for it
                return self._workspace.do(reply[2], reply[3])
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
                        self._route(self._read())
                finally:
                    self._read_lock.release()
                    self._pass_the_lead(waiting)
            else:
                waiting.turn.acquire()
        return waiting.reply

    def _route(self, message: list[Any]) -> None:
        other = self._pending.get(message[1])
        if other is not None:  # else: its caller has given up, by an exception of a signal handler
            other.reply = message
            other.wake()

    def _pass_the_lead(self, mine: _Call) -> None:
        with self._state:
            for other in self._pending.values():
                if other is not mine and other.reply is None:
                    other.wake()
                    return

    # -- the end by a terminal function: the code's frames never go on, whatever they would catch

    def _end(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._end_here()
        self._streams.muted = True
        self._parked += 1
        signal.pthread_kill(threading.main_thread().ident or 0, END_SIGNAL)
        threading.Event().wait()

    def _end_here(self, *_: Any) -> None:
        self._mend_builtins(self._builtins)
        if os.getpid() != self._pid or self._step is None:
            return
        limits.grant_memory(1.0)
        self._workspace.kill_foreground()
        flush_files()
        loops = sys.modules.get("asyncio.events")
        if loops is not None:
            loops._set_running_loop(None)
        # the frame that was interrupted may hold any of these, and never goes on
        self._read_lock, self._send_lock = threading.Lock(), threading.Lock()
        self._state = threading.Condition()
        self._pending = {}
        self._streams.after_fork()
        self._streams.muted = False
        self._done(None, None, threading.active_count() > 1 + self._parked)
        self._prepare()
        self.serve()


def flush_files() -> None:
    """Write out what open files hold back, as the end of a process does."""
    for thing in gc.get_objects():
        if type(thing) in _BUFFERED:
            try:
                thing.flush()
            except (OSError, ValueError):
                pass


_BUFFERED = frozenset({io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom})


def _shorten(value: str | None, limit: int) -> str | None:
    if value is None or len(value) <= limit:
        return value
    return f"{value[:limit]} [... {len(value) - limit} more characters cut ...]"
