"""`CodeExecutor`: runs steps of model-written Python in a separate worker process."""

from __future__ import annotations

import contextlib
import contextvars
import keyword
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from ck_pro.exceptions import ConfigError, ExecutorError, IsolationError
from ck_pro.executor.calls.descriptions import Function, Handles, describe_functions
from ck_pro.executor.calls.step_calls import CancelledCalls, StepCalls
from ck_pro.executor.calls.waiting import CHECK_SECONDS
from ck_pro.executor.channel import WorkerGone
from ck_pro.executor.extract import extract_code
from ck_pro.executor.folder_removal import remove_folder
from ck_pro.executor.isolation import LAYERS, check_isolation, required_layers
from ck_pro.executor.process import LostAtStart, WorkerProcess
from ck_pro.executor.results import (
    CodeError,
    CodeResult,
    OutputCollector,
    read_done,
    read_names,
    read_values,
)
from ck_pro.executor.step import (
    StepClock,
    StepKilled,
    check_seconds,
    error_of_dead_worker,
    error_of_killed,
)
from ck_pro.executor.visible_paths import check_readable, session_paths
from ck_pro.executor.worker import wire

WALL_SECONDS = 86_400.0
"""Default of `wall_timeout`; a step that waits for sub-agents may take hours."""

_Answer = TypeVar("_Answer")
_END_SECONDS = 1.0
_NAMES_SECONDS = 2.0
_MAX_STARTS = 3
_MAX_NOTICE = 100  # characters of a notice that the worker adds to a shortened value
_inside: contextvars.ContextVar[tuple[int, ...]] = contextvars.ContextVar("inside", default=())


class CodeExecutor:
    """Runs model-written Python step by step in a worker process that has no secrets.

    Variables persist across steps. The code calls functions that run in this process, on threads,
    so calls from several threads of the code run concurrently.

    Args:
        functions: name -> function that the code can call; may change between steps.
        terminal: names of the functions that end the step.
        workdir: the working directory, the only writable folder besides the temporary ones;
            created if missing. None creates one and removes it in `close`.
        timeout: limit of the code's own time per step in seconds; None for no limit. The clock
            stops while the step's main code waits for calls, and not for calls of other threads.
        call_timeout: limit of one call in seconds; None for no limit.
        wall_timeout: limit of a whole step in seconds; None for no limit.
        memory_mb: memory limit of the worker and all its child processes, in megabytes.
        network: whether the code can use the network.
        max_output: bytes of output to keep per step, half from its beginning and half from its
            end. Also the maximum length of `value` in characters.
        stateful: whether variables persist across steps.
        require_isolation: "full" or names from `LAYERS`; without these layers nothing runs.
        preload: names of modules to import once per agent process, so that workers start with
            them imported.
        disk_mb: megabytes by which the working directory may grow, from the first step on.
        readable: files and folders that the code can read, besides the working directory, the
            system's programs and libraries, and the Python installation.
        packages: folders of Python packages with functions for `LocalCall`; readable too.

    Raises:
        ConfigError: an argument is invalid.
        IsolationError: a required layer is missing.
        ExecutorError: the worker cannot be started.
    """

    layers: tuple[str, ...] = LAYERS
    """The layers to apply; tests apply single ones."""
    local_sockets = False
    """Whether processes of the worker may talk by local sockets. It has no effect unless the worker
    has its own network namespace and its own file view; for fixed programs, not for models."""

    extract_code = staticmethod(extract_code)

    def __init__(
        self,
        functions: Mapping[str, Function] | None = None,
        terminal: Collection[str] = (),
        workdir: str | os.PathLike[str] | None = None,
        timeout: float | None = 60.0,
        call_timeout: float | None = None,
        wall_timeout: float | None = WALL_SECONDS,
        memory_mb: int = 2048,
        network: bool = False,
        max_output: int = 65_536,
        stateful: bool = True,
        require_isolation: str | Collection[str] | None = None,
        preload: Sequence[str] = (),
        disk_mb: int = 4096,
        readable: Sequence[str | os.PathLike[str]] = (),
        packages: Sequence[str | os.PathLike[str]] = (),
    ):
        self.functions: dict[str, Function] = dict(functions or {})
        self.terminal = frozenset([terminal] if isinstance(terminal, str) else terminal)
        self.timeout = timeout
        self.call_timeout = call_timeout
        self.wall_timeout = wall_timeout
        self.memory_mb = memory_mb
        self.disk_mb = disk_mb
        self.network = network
        self.max_output = max_output
        self.stateful = stateful
        self.preload = tuple(preload)
        self._check()
        self.workdir = self._make_workdir(workdir)
        self.readable = (
            *check_readable(readable, self.workdir),
            *check_readable(packages, self.workdir),
        )
        self._lock = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._handles = Handles()
        self._cancelled = CancelledCalls()
        self._bounds = wire.Bounds()
        self._sent: dict[str, Function] | None = None
        self._held_first: list[int] | None = None
        self._step = 0
        self._asked = 0
        self._closed = False
        self._has_commands = False
        if require_isolation is not None:
            self._require(require_isolation)

    def _check(self) -> None:
        for name in ("timeout", "call_timeout", "wall_timeout"):
            check_seconds(f"CodeExecutor: {name}", getattr(self, name))
        for name in ("memory_mb", "disk_mb", "max_output"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise ConfigError(
                    f"CodeExecutor: {name} must be a whole number above 0, not {value!r}"
                )
        self._check_functions()
        if unknown := sorted(map(str, self.terminal - self.functions.keys())):
            raise ConfigError(f"CodeExecutor: terminal: there is no function {unknown[0]!r}")

    def _check_functions(self) -> None:
        for name, function in self.functions.items():
            if not (isinstance(name, str) and name.isidentifier()) or keyword.iskeyword(name):
                raise ConfigError(f"CodeExecutor: {name!r} is not a valid function name")
            if not callable(function):
                raise ConfigError(f"CodeExecutor: the function {name!r} is not callable")

    def _make_workdir(self, given: str | os.PathLike[str] | None) -> Path:
        if given is None:
            made = Path(tempfile.mkdtemp(prefix="ck-executor-")).resolve()
            self._remove = weakref.finalize(self, remove_folder, made)
            return made
        try:
            Path(given).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"CodeExecutor: cannot create workdir {os.fspath(given)!r}: {error.strerror}"
            ) from error
        folder = Path(given).resolve()
        if folder == Path(folder.anchor):
            raise ConfigError("CodeExecutor: workdir cannot be the root of the file system")
        return folder

    def _require(self, wanted: str | Collection[str]) -> None:
        required = required_layers(wanted, network=self.network)
        try:
            check_isolation(required, self.isolation)
        except IsolationError:
            self.close()
            raise

    @property
    def isolation(self) -> dict[str, Any]:
        """The worker's layers: `{"active": [...], "missing": {layer: reason}}`."""
        worker = self._worker
        if worker is not None and worker.owner == os.getpid():
            return worker.isolation  # without the lock, since a step may be running
        with self._lock:
            return self._ensure_worker().isolation

    # -- running

    def run(
        self, code: str, timeout: float | None = None, cancel: threading.Event | None = None
    ) -> CodeResult:
        """Run one step. Errors of the code are in the result.

        Args:
            code: Python source.
            timeout: replaces the executor's `timeout` for this step; None keeps that one.
            cancel: set this event to kill the step, with the error type "Cancelled".

        Raises:
            RunEnding, EnvironmentFailure, KeyboardInterrupt: a function that the code called
                raised it (see `ck_pro.exceptions.ends_run`); the step was killed.
            ExecutorError: the worker cannot be started, or the executor is closed or is already
                running a step.
            ConfigError: an argument is invalid.
        """
        if id(self) in _inside.get():
            raise ExecutorError("a function called by code cannot run code in the same executor")
        self._check_functions()
        if not isinstance(code, str):
            raise ConfigError(f"code must be a str, not {type(code).__name__}")
        if timeout is None:
            timeout = self.timeout
        else:
            check_seconds("run: timeout", timeout)
        with self._lock:
            token = _inside.set((*_inside.get(), id(self)))
            try:
                return self._run(code, timeout, cancel)
            finally:
                _inside.reset(token)

    def describe_names(self) -> list[str]:
        """Describe what the code has defined: one line for each variable, function and class.

        Runs no code. Returns [] if there is no worker, or if it does not reply in time.
        """
        return self._ask("names", read_names) or []

    def plain_values(self) -> dict[str, Any]:
        """Return the variables of the code that are plain data, up to 64 KB of JSON in total.

        Runs no code. Returns {} if there is no worker, or if it does not reply in time.
        """
        return self._ask("values", read_values) or {}

    def _ask(self, kind: str, read: Callable[[list[Any]], _Answer]) -> _Answer | None:
        """Ask the worker between two steps; None without an answer."""
        with self._lock:
            worker = self._worker
            if worker is None or worker.owner != os.getpid() or not self.stateful:
                return None
            self._asked += 1
            try:
                reply = _await_reply(worker, kind, self._asked)
                return None if reply is None else read(reply)
            except WorkerGone:
                return None  # the next step reports it
            except wire.WireError:
                self._drop_worker()
                return None

    def _run(self, code: str, timeout: float | None, cancel: threading.Event | None) -> CodeResult:
        worker = self._ensure_worker()
        self._step += 1
        output = OutputCollector(worker.mark, self.max_output, self._handles.objects)
        functions = dict(self.functions)

        def add_line(line: str) -> None:
            with worker.output_lock:
                output.feed(worker.drain())
                output.add_line(line)

        calls = StepCalls(
            self._step,
            functions,
            self.terminal,
            self.call_timeout,
            self._handles,
            worker,
            self._cancelled,
            add_line,
        )
        clock = StepClock(calls, timeout, self.wall_timeout, cancel)
        result = CodeResult()
        alive = False
        try:
            self._start_step(worker, code, timeout, functions)
            alive = self._wait(worker, calls, clock, output, result)
            if calls.fatal is not None:
                alive = False
                raise calls.fatal
        except wire.TooLarge as error:
            alive, result.error = True, CodeError("ValueError", f"the code is too long: {error}")
        except StepKilled as killed:
            result.error = error_of_killed(killed)
        except (WorkerGone, wire.WireError) as error:
            result.error = error_of_dead_worker(error)
        finally:
            result.call_duration = calls.close()
            result.duration = clock.own_seconds()
            self._has_commands |= calls.has_background_commands
            if not alive:
                result.state_lost, result.commands_lost = True, self._has_commands
                output.feed(self._drop_worker())
        if calls.fatal is not None:
            raise calls.fatal
        result.ended_by, result.ended_with = calls.ended_by, calls.ended_with
        if result.ended_by is not None:
            result.error = None
        result.output, result.printed, result.pieces, result.output_cut = output.finish()
        return result

    def _start_step(
        self,
        worker: WorkerProcess,
        code: str,
        timeout: float | None,
        functions: dict[str, Function],
    ) -> None:
        described = None
        if functions != self._sent:
            described = describe_functions(functions)
        worker.send(["run", self._step, code, timeout, described, not self.stateful])
        self._sent = functions

    def _wait(
        self,
        worker: WorkerProcess,
        calls: StepCalls,
        clock: StepClock,
        output: OutputCollector,
        result: CodeResult,
    ) -> bool:
        """Wait for the end of the step; return whether the worker can run the next one."""
        deadline: float | None = None
        reader_token = calls.reader_token
        timeout: float | None = CHECK_SECONDS
        quick = True
        while True:
            frames = not reader_token.is_lent
            messages, _ = worker.receive(timeout, frames, quick=quick, collect=output.feed)
            quick = False
            messages = reader_token.take_messages() + messages
            for message in messages:
                if message[0] == "done":
                    result.value, result.error, threads_left = read_done(
                        message, self._step, self.max_output + _MAX_NOTICE
                    )
                    with worker.output_lock:
                        output.feed(worker.drain())
                    return not (threads_left or worker.hung_up)
                if message[0] not in ("names", "values"):  # else a reply that came too late
                    calls.handle(message, may_read=message is messages[-1])
            timeout = clock.next_check()
            if reader_token.is_lent:
                reader_token.take_back()
                timeout = CHECK_SECONDS if timeout is None else min(timeout, CHECK_SECONDS)
            if calls.fatal is not None:
                return False
            if calls.ended_by is not None:
                deadline = deadline or time.monotonic() + _END_SECONDS
                if time.monotonic() > deadline:
                    return False
            clock.check()
            if self._closed:
                raise StepKilled("Cancelled", "the code was cancelled: its executor was closed")

    # -- the worker

    def _ensure_worker(self) -> WorkerProcess:
        if self._closed:
            raise ExecutorError("this executor is closed")
        if self._worker is not None and self._worker.owner != os.getpid():
            self._worker = None  # this process is a fork, and the worker belongs to its parent
        if self._worker is None:
            self._handles = Handles()
            self._sent = None
            self._has_commands = False
            self._worker = self._start_worker()
            self._held_first = self._held_first or self._worker.held
        return self._worker

    def _start_worker(self) -> WorkerProcess:
        """Start a worker; retry if another process kills it during the start."""
        for _ in range(_MAX_STARTS - 1):
            with contextlib.suppress(LostAtStart):
                return self._new_worker()
        return self._new_worker()

    def _new_worker(self) -> WorkerProcess:
        return WorkerProcess(self._config(), self.preload, self._restore, self._bounds)

    def _restore(self, tagged: dict[str, Any]) -> Any:
        return self._handles.restore(tagged)

    def _config(self) -> dict[str, Any]:
        return {
            "value_limit": self.max_output,
            "memory_mb": self.memory_mb,
            "disk_mb": self.disk_mb,
            "held_first": self._held_first,
            "network": self.network,
            "local_sockets": self.local_sockets,
            "layers": self.layers,
            "layers_known": LAYERS,
            **session_paths(self.workdir, self.readable),
        }

    def _drop_worker(self) -> bytes:
        worker, self._worker = self._worker, None
        return b"" if worker is None else worker.kill()

    def close(self) -> None:
        """End the worker and all its processes. The executor cannot be used again.

        Any thread may call this. It kills a running step, with the error type "Cancelled".
        """
        self._closed = True
        worker = self._worker
        if worker is not None:
            worker.wake()
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.shut_down()
        remove: Callable[[], object] | None = getattr(self, "_remove", None)
        if remove is not None:
            remove()

    def __enter__(self) -> CodeExecutor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _await_reply(worker: WorkerProcess, kind: str, number: int) -> list[Any] | None:
    """Send a question to the worker, and return its reply; None if there is none in time.

    Raises:
        WorkerGone: the worker has ended.
        wire.WireError: it sent something other than frames.
    """
    worker.send([kind, number])
    deadline = time.monotonic() + _NAMES_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        messages, _ = worker.receive(left, output=False)
        for message in messages:
            if message[:2] == [kind, number]:
                return message
    return None
