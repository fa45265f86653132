"""The worker: takes steps from the parent, runs them, and calls back for the parent's functions.

Frames that it takes: `["run", step, code, timeout, functions | null, fresh]`, `["ret", id, value]`,
`["exc", id, error]`, `["end", id]` (the terminal function was accepted), `["do", id, name, kwargs]`
(do it yourself: `workspace.py`), `["where", step]` (does the main code wait?) and `["bye"]`.
Frames that it gives: `["ready", isolation]`, `["call", step, id, name, args, kwargs]` (from
other threads than the main one: `thread_call`), `["where", step, waits]`, `["leave", step, id]`
(give up all calls, then answer this one) and `["done", step, value, error, threads_left]`.
"""

from __future__ import annotations

import builtins
import os
import signal
import socket
import sys
import threading
import time
from types import ModuleType
from typing import Any

from . import kernel, limits, stubs
from .calling import Calls
from .leaving import end_child, end_session, exit_status, flush_files
from .printing import Streams, leave, make_mark, no_input
from .source import SourceBook, describe, plain_text
from .workspace import Workspace

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_GRACE_SECONDS = 1.0
# the code may replace them in their modules, say for a test of its own
_active_count, _all_threads = threading.active_count, threading.enumerate
_getpid, _monotonic = os.getpid, time.monotonic
END_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2) + 9 if sys.platform == "linux" else 31


class Worker:
    """Runs the steps of one session, in this process.

    It is made in the zygote, so that its forks have it for free; `begin` gives it a session.
    """

    _config: dict[str, Any]
    _module: ModuleType

    def __init__(self) -> None:
        self._calls = Calls(self._end)
        self.send = self._calls.send
        self._modules = sys.modules
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

    def begin(self, sock: socket.socket, pipe: int, config: dict[str, Any]) -> None:
        """Begin a session: what can be done before its files are there.

        Args:
            sock: the socket to the parent.
            pipe: descriptor of the pipe for output.
            config: what the parent said of the session (`nonce`, `value_limit`, ...).
        """
        self._config = config
        self._pid = _getpid()
        self._streams.begin(pipe, make_mark(config["nonce"]))
        self._calls.begin(sock)
        self._module = self._new_module()
        kernel.set_signal(END_SIGNAL, self._end_here)

    def settle(self, scratch: str) -> None:
        """Enter the working directory.

        Args:
            scratch: a place beside it that can be written.
        """
        workdir = self._config["workdir"]
        os.environ.update(PWD=workdir, TMPDIR=scratch, HOME=scratch)
        self._calls.workspace = Workspace(workdir, scratch)

    def warm_up(self) -> None:
        """Run a step of nothing, which copies the pages that the first step would copy."""
        self._begin_step(None, None, False)
        self._execute("<warm-up>", "pass")
        self._end_threads(set())

    def serve(self) -> None:
        """Run steps until the parent says goodbye, or is gone."""
        while True:
            message = self._calls.read()
            if message[0] == "run":
                self._run(*message[1:])
                self._prepare()
            elif message[0] == "bye":
                end_session()
            # else: a late answer to a call of a step that is over

    def _prepare(self) -> None:
        """Make whole again what the code may have broken, while nobody waits for it."""
        self._mend_builtins(self._builtins)
        sys.modules = self._modules
        sys.modules["__main__"] = self._module
        self._streams.mend()
        self._calls.sock.setblocking(True)

    # -- steps

    def _run(
        self, step: int, code: str, timeout: float | None, functions: Any, fresh: bool
    ) -> None:
        self._number = step
        name = f"<step {step}>"
        value = None
        try:
            before = self._begin_step(timeout, functions, fresh)
            self._calls.step = step
            value, error = self._execute(name, code)
            late = self._end_threads(before)
        except BaseException as broken:  # noqa: BLE001 - the code may have broken what this needs
            error, late = None, broken
        if error is None and late is not None:
            error = describe(late, name)
        self._done(value, error, False)

    def _begin_step(
        self, timeout: float | None, functions: Any, fresh: bool
    ) -> set[threading.Thread]:
        """Get ready for a step; give the threads that earlier ones left."""
        if fresh:
            self._module = self._new_module()
            self._book.forget_futures()
        if functions is not None:
            self._take_functions(functions)
        names = self._module.__dict__
        names["__builtins__"] = builtins
        for name, stub in self._stubs.items():  # one that the code deleted is there again
            names.setdefault(name, stub)
        before: set[threading.Thread] = set()
        if _active_count() > 1:  # they continued in the meantime
            self._prepare()
            before.update(_all_threads())
        limits.grant_cpu(timeout)
        limits.grant_memory(0.5 if self._out_of_memory else 0.0)
        finder: Any = sys.path_importer_cache.get(self._config["workdir"])
        if finder is not None:  # a module written a moment ago must be found
            finder.invalidate_caches()
        return before

    def _execute(self, name: str, code: str) -> tuple[str | None, list[Any] | None]:
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
                        value = _shorten(plain_text(repr(found)), self._config["value_limit"])
            finally:
                self._mend_builtins(self._builtins)  # before this file needs one of them
        except SystemExit as asked:
            self._end_child(asked, name)
            if exit_status(asked) == 0:
                return value, None
            return value, describe(asked, name)
        except BaseException as raised:  # noqa: BLE001 - this is the boundary: all becomes a value
            self._end_child(raised, name)
            limits.grant_memory(1.0)
            self._out_of_memory = issubclass(type(raised), MemoryError)
            return value, self._explained(raised, describe(raised, name))
        self._end_child(None, name)
        limits.grant_memory(1.0)
        self._out_of_memory = False
        return value, None

    def _explained(self, raised: BaseException, described: list[Any]) -> list[Any]:
        """The error; and why, if variables of the code hide functions that it may have meant."""
        names = self._module.__dict__
        hidden = [n for n, stub in self._stubs.items() if not callable(names.get(n, stub))]
        if issubclass(type(raised), TypeError) and hidden:
            one = hidden[0]
            described[3] += (
                f"(the function {one} is hidden by a variable of that name: `del {one}` brings it "
                "back in the next step)\n"
            )
        return described

    def _end_child(self, error: BaseException | None, name: str) -> None:
        if _getpid() != self._pid:  # a process that the code forked came to the end of the code
            end_child(error, name)

    def _end_threads(self, before: set[threading.Thread]) -> BaseException | None:
        """Join threads as CPython does at the end of a script; their calls get a short time only.

        Returns:
            What a signal handler of the code raised meanwhile, if anything.
        """
        until = _monotonic() + _GRACE_SECONDS
        late = self._join(before, until)
        for _ in range(10):
            try:
                self._calls.close_step(until)
                break
            except BaseException as error:  # noqa: BLE001 - as above
                late = error
        return self._join(before, None) or late

    def _join(self, before: set[threading.Thread], until: float | None) -> BaseException | None:
        try:
            while left := self._threads_left(before):
                seconds = None if until is None else until - _monotonic()
                if seconds is not None and seconds <= 0:
                    break
                left[0].join(seconds)
        except BaseException as late:  # noqa: BLE001 - a signal handler of the code's may raise
            return late
        return None

    def _threads_left(self, before: set[threading.Thread]) -> list[threading.Thread]:
        if _active_count() == 1:
            return []
        pools = sys.modules.get("concurrent.futures.thread")  # idle threads of a pool never end
        pooled = pools._threads_queues if pools is not None else ()
        main = threading.main_thread()
        return [
            one
            for one in _all_threads()
            if not (one in before or one is main or one.daemon or one in pooled)
        ]

    def _done(self, value: str | None, error: list[Any] | None, threads_left: bool) -> None:
        self._calls.step = None
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
                self._stubs[name] = names[name] = stubs.make_stub(name, described, self._calls.call)
        self._described = functions

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
        if _getpid() != self._pid or self._calls.step is None:
            return
        limits.grant_memory(1.0)
        self._calls.workspace.kill_foreground()
        flush_files()
        loops = sys.modules.get("asyncio.events")
        if loops is not None:
            loops._set_running_loop(None)
        self._calls.drop()
        self._streams.after_fork()  # the frame that was interrupted may hold its lock
        self._streams.muted = False
        self._done(None, None, _active_count() > 1 + self._parked)
        self._prepare()
        self.serve()


def _shorten(value: str, limit: int) -> str:
    if len(value) <= limit:
        return value
    return f"{value[:limit]} [... {len(value) - limit} more characters cut ...]"
