"""The worker: runs the steps of a session, and calls functions in the parent.

Frames from the parent:

- `["run", step, code, timeout, functions | null, fresh]`: run a step;
- `["ret", id, value]`, `["exc", id, error]`: the result or error of a call;
- `["end", id]`: the terminal call was accepted;
- `["do", id, name, kwargs, package]`: run this call here (`workspace.py`);
- `["where", step]`: report whether the main code waits;
- `["names", number]`, `["values", number]`: describe the names that the code has defined, or return
  their values (between steps);
- `["bye"]`: exit.

Frames to the parent:

- `["ready", isolation]`: the worker is confined;
- `["call", step, id, name, args, kwargs]`: a call; `thread_call` if not from the main thread;
- `["where", step, waits]`: the reply to `where`;
- `["leave", step, id]`: cancel all calls, then reply to this one;
- `["names", number, lines]`, `["values", number, json]`: the replies to these;
- `["done", step, value, error, threads_left]`: the step has ended.
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

from .code import stubs
from .code.names import describe_names, plain_values
from .code.printing import Streams, exit_step, make_mark, no_input
from .code.source import StepSources, describe, plain_text
from .code.workspace import Workspace
from .parent_calls import ParentCalls
from .process_exit import end_child, end_session, exit_status, flush_files
from .sandbox import kernel, limits

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

_GRACE_SECONDS = 1.0
# the code may replace these in their modules, for example in a test
_active_count, _all_threads = threading.active_count, threading.enumerate
_getpid, _exit, _monotonic = os.getpid, os._exit, time.monotonic
_Event = threading.Event
_QUESTIONS: dict[str, tuple[Any, Any]] = {
    "names": (describe_names, []),
    "values": (plain_values, "{}"),
}
"""Kind of a frame -> the function that answers it, and the answer if it fails."""
END_SIGNAL = getattr(signal, "SIGRTMIN", signal.SIGUSR2) + 9 if sys.platform == "linux" else 31


class Worker:
    """Runs the steps of one session in this process.

    The zygote creates it once, and its forks inherit it. `start_session` makes it usable.
    """

    _config: dict[str, Any]
    _module: ModuleType

    def __init__(self) -> None:
        self._calls = ParentCalls(self._end)
        self.send = self._calls.send
        self._modules = sys.modules
        self._number = 0
        self._stopped_threads = 0
        self._pid = 0
        self._described: dict[str, Any] = {}
        self._stubs: dict[str, Any] = {}
        sys.meta_path.append(stubs.ToolsFinder(self._stubs))
        self._sources = StepSources()
        self._streams = Streams(stubs.handle_of)
        self._builtins = {
            "print": self._streams.make_print(),
            "input": no_input,
            "exit": exit_step,
            "quit": exit_step,
            **self._sources.asserts.names,
        }
        self._restore_builtins = vars(builtins).update
        self._restore_builtins(self._builtins)
        self._builtins = vars(builtins).copy()
        self._out_of_memory = False
        os.register_at_fork(after_in_child=self._streams.after_fork)

    def start_session(self, sock: socket.socket, pipe: int, config: dict[str, Any]) -> None:
        """Connect to the parent.

        Args:
            sock: the socket to the parent.
            pipe: descriptor of the pipe for output.
            config: of the session, from the parent (`nonce`, `value_limit`, ...).
        """
        self._config = config
        self._pid = _getpid()
        self._streams.open(pipe, make_mark(config["nonce"]))
        self._calls.connect(sock)
        self._module = self._new_module()
        kernel.set_signal(END_SIGNAL, self._end_here)

    def use_folders(self, scratch: str) -> None:
        """Set the folders for commands and files; neither needs to exist yet.

        Args:
            scratch: a writable folder besides the working directory.
        """
        workdir = self._config["workdir"]
        os.environ.update(PWD=workdir, TMPDIR=scratch, HOME=scratch)
        self._calls.workspace = Workspace(workdir, scratch)

    def warm_up(self) -> None:
        """Run an empty step, which copies most memory pages that the first step would copy."""
        self._prepare_step(None, None, False)
        self._execute("<warm-up>", "pass")
        self._end_threads(set())

    def serve(self) -> None:
        """Run steps until the parent sends `bye` or ends."""
        while True:
            message = self._calls.read()
            if message[0] == "run":
                self._run(*message[1:])
                self._repair()
            elif message[0] in _QUESTIONS:
                self.send([message[0], message[1], self._answer(message[0])])
            elif message[0] == "bye":
                end_session()
            # else: a late reply to a call of an earlier step

    def _repair(self) -> None:
        """Restore what the code may have broken. Runs between steps, so it delays none."""
        self._restore_builtins(self._builtins)
        sys.modules = self._modules
        sys.modules["__main__"] = self._module
        self._streams.repair()
        self._calls.sock.setblocking(True)

    def _answer(self, kind: str) -> Any:
        answer, nothing = _QUESTIONS[kind]
        given = {"os": os, "sys": sys, **self._stubs}
        try:
            return answer(self._module.__dict__, given)
        except BaseException:  # noqa: BLE001 - threads of the code may change the names meanwhile
            return nothing

    # -- steps

    def _run(
        self, step: int, code: str, timeout: float | None, functions: Any, fresh: bool
    ) -> None:
        self._number = step
        name = f"<step {step}>"
        value = None
        try:
            before = self._prepare_step(timeout, functions, fresh)
            self._calls.step = step
            value, error = self._execute(name, code)
            late = self._end_threads(before)
        except BaseException as broken:  # noqa: BLE001 - the code may have broken the runtime
            error, late = None, broken
        if error is None and late is not None:
            error = describe(late, name)
        if error is not None and error[2] is None:  # no line of the code raised it
            self._require_usable(timeout)
        self._done(value, error, False)

    def _require_usable(self, timeout: float | None) -> None:
        """Exit if an empty step fails: the code has broken this process, for example a module."""
        try:
            self._prepare_step(timeout, None, False)
            if self._execute("<check>", "pass")[1] is None:
                return
        except BaseException:  # noqa: BLE001 - any error means that no step can run
            pass
        _exit(1)

    def _prepare_step(
        self, timeout: float | None, functions: Any, fresh: bool
    ) -> set[threading.Thread]:
        """Prepare a step, and return the threads of earlier steps."""
        if fresh:
            self._module = self._new_module()
            self._sources.forget_futures()
        if functions is not None:
            self._set_functions(functions)
        names = self._module.__dict__
        names["__builtins__"] = builtins
        for name, stub in self._stubs.items():  # the code may have deleted some
            names.setdefault(name, stub)
        before: set[threading.Thread] = set()
        if _active_count() > 1:  # they may have broken something since the last step
            self._repair()
            before.update(_all_threads())
        limits.grant_cpu(timeout)
        limits.grant_memory(0.5 if self._out_of_memory else 0.0)
        if type(sys.modules.get(stubs.TOOLS)) is stubs.ToolsModule:
            del sys.modules[stubs.TOOLS]  # the code may have written a module of that name
        finder: Any = sys.path_importer_cache.get(self._config["workdir"])
        if finder is not None:  # the code may have written modules
            finder.invalidate_caches()
        return before

    def _execute(self, name: str, code: str) -> tuple[str | None, list[Any] | None]:
        names = self._module.__dict__
        names.pop("__warningregistry__", None)  # show repeated warnings in each step
        value = None
        try:
            body, last = self._sources.compile(name, code)
            try:
                if body is not None:
                    exec(body, names)
                if last is not None:
                    found = eval(last, names)
                    if found is not None:
                        value = _shorten(plain_text(repr(found)), self._config["value_limit"])
            finally:
                self._restore_builtins(self._builtins)  # before this file uses any
        except SystemExit as asked:
            self._end_child(asked, name)
            if exit_status(asked) == 0:
                return value, None
            return value, describe(asked, name)
        except BaseException as raised:  # noqa: BLE001 - the boundary: every error becomes a value
            self._end_child(raised, name)
            limits.grant_memory(1.0)
            self._out_of_memory = issubclass(type(raised), MemoryError)
            return value, self._add_hint(raised, describe(raised, name))
        self._end_child(None, name)
        limits.grant_memory(1.0)
        self._out_of_memory = False
        return value, None

    def _add_hint(self, raised: BaseException, described: list[Any]) -> list[Any]:
        """Add a hint to the error if a variable of the code hides a function."""
        names = self._module.__dict__
        hidden = [n for n, stub in self._stubs.items() if not callable(names.get(n, stub))]
        if issubclass(type(raised), TypeError) and hidden:
            one = hidden[0]
            described[3] += (
                f"(a variable hides the function {one}: `del {one}` restores it in the next step)\n"
            )
        return described

    def _end_child(self, error: BaseException | None, name: str) -> None:
        if _getpid() != self._pid:  # the code forked, and the child reached the end of the code
            end_child(error, name)

    def _end_threads(self, before: set[threading.Thread]) -> BaseException | None:
        """Join the step's threads, like CPython at the end of a script; cancel their calls soon.

        Returns:
            The error that a signal handler of the code raised meanwhile, if any.
        """
        until = _monotonic() + _GRACE_SECONDS
        late = self._join(before, until)
        for _ in range(10):
            try:
                self._calls.close_step(until)
                break
            except BaseException as error:  # noqa: BLE001 - a signal handler of the code may raise
                late = error
        return self._join(before, None) or late

    def _join(self, before: set[threading.Thread], until: float | None) -> BaseException | None:
        try:
            while left := self._threads_left(before):
                seconds = None if until is None else until - _monotonic()
                if seconds is not None and seconds <= 0:
                    break
                left[0].join(seconds)
        except BaseException as late:  # noqa: BLE001 - a signal handler of the code may raise
            return late
        return None

    def _threads_left(self, before: set[threading.Thread]) -> list[threading.Thread]:
        if _active_count() == 1:
            return []
        pools = sys.modules.get("concurrent.futures.thread")  # idle threads of pools never end
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
        module.__dict__.update(__builtins__=builtins, os=os, sys=sys)
        module.__dict__.update(self._stubs)
        sys.modules["__main__"] = module
        return module

    def _set_functions(self, functions: dict[str, Any]) -> None:
        names = self._module.__dict__
        for name in [name for name in self._stubs if name not in functions]:
            if names.get(name) is self._stubs.pop(name):
                del names[name]
        for name, described in functions.items():
            if self._described.get(name) != described or name not in self._stubs:
                self._stubs[name] = names[name] = stubs.make_stub(name, described, self._calls.call)
        self._described = functions

    # -- the end by a terminal call: the code's frames never continue, so they can catch nothing

    def _end(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._end_here()
        self._streams.muted = True
        self._stopped_threads += 1
        signal.pthread_kill(threading.main_thread().ident or 0, END_SIGNAL)
        _Event().wait()

    def _end_here(self, *_: Any) -> None:
        self._restore_builtins(self._builtins)
        if _getpid() != self._pid or self._calls.step is None:
            return
        limits.grant_memory(1.0)
        self._calls.workspace.kill_foreground()
        flush_files()
        loops = sys.modules.get("asyncio.events")
        if loops is not None:
            loops._set_running_loop(None)
        self._calls.abandon()
        self._streams.after_fork()  # the interrupted frame may hold the lock
        self._streams.muted = False
        self._done(None, None, _active_count() > 1 + self._stopped_threads)
        self._repair()
        self.serve()


def _shorten(value: str, limit: int) -> str:
    if len(value) <= limit:
        return value
    return f"{value[:limit]} [... {len(value) - limit} more characters omitted ...]"
