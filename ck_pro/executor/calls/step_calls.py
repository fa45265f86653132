"""The calls of a step: functions that run in the parent, on threads, for the code."""

from __future__ import annotations

import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from ck_pro import threads
from ck_pro.exceptions import ends_run
from ck_pro.executor.calls.descriptions import (
    Function,
    Handles,
    describe_error,
    with_declared_names,
)
from ck_pro.executor.calls.waiting import MainWaits, ReaderToken
from ck_pro.executor.results import LocalCall
from ck_pro.executor.worker import wire
from ck_pro.executor.worker.values import encode

MAX_CANCELLED = 64
"""Maximum number of cancelled calls of an executor that are still running."""
MAX_THREADS = wire.MAX_CALLS + MAX_CANCELLED + 64
"""Maximum number of threads of one step: for running and cancelled calls, and for replies in
transit. A worker that reads no replies blocks the threads that send them."""


class Connection(Protocol):
    """The connection to a worker, as the calls use it."""

    def send(self, message: list[Any]) -> None:
        """Send a frame. Does nothing if the worker has ended."""

    def receive_soon(self) -> list[wire.Message]:
        """Receive messages that arrive within a few milliseconds."""

    def wake(self) -> None:
        """Wake the thread in `CodeExecutor.run`."""


class StepCalls:
    """The calls of one step.

    Args:
        step: its number.
        functions: by name, as at the start of the step.
        terminal: names of the functions that end the step.
        call_timeout: seconds for one call, or None.
        handles: of the session.
        worker: the connection to the worker.
        cancelled: of the executor.
        add_line: adds a line of a function to the pieces of the output; see `CallFlag.report`.

    Attributes:
        ended_by: name of the terminal function that ended the step.
        ended_with: its arguments by name.
        fatal: an error of a function that ends the run.
        has_background_commands: whether a call may have left commands running in the worker.
    """

    def __init__(
        self,
        step: int,
        functions: Mapping[str, Function],
        terminal: frozenset[str],
        call_timeout: float | None,
        handles: Handles,
        worker: Connection,
        cancelled: CancelledCalls,
        add_line: Callable[[str], None] = lambda line: None,
    ):
        self._step = step
        self._add_line = add_line
        self._cancelled = cancelled
        self._functions = functions
        self._terminal = terminal
        self._call_timeout = call_timeout
        self._handles = handles
        self._worker = worker
        self._send = worker.send
        self._wake = worker.wake
        self.reader_token = ReaderToken()
        self._lock = threading.Lock()
        self._running: dict[int, CallFlag] = {}
        self._threads = threading.Semaphore(MAX_THREADS)
        self.waits = MainWaits(lambda: worker.send(["where", step]))
        self._busy_since = 0.0
        self._busy = 0.0
        self._main_ended = False
        self._closed = False
        self._context = contextvars.copy_context()
        self.ended_by: str | None = None
        self.ended_with: dict[str, Any] | None = None
        self.fatal: BaseException | None = None
        self.has_background_commands = False

    def handle(self, message: wire.Message, may_read: bool) -> None:
        """Handle a message of the worker; start a call on a thread.

        Waits while `MAX_THREADS` threads serve calls, until one has sent its reply.

        Args:
            message: the message.
            may_read: whether the call's thread may read the next messages.

        Raises:
            wire.WireError: the message is malformed, or the id of the call is in use.
        """
        kind, *rest = message
        if [type(one) for one in rest] != _FORMS.get(kind):
            raise wire.WireError(f"a malformed message {kind[:100]!r}")
        if rest[0] > self._step:
            raise wire.WireError("a message of a later step")
        if kind == "where" and rest[0] == self._step:
            self.waits.set_reply(rest[1])
        elif kind == "leave" and rest[0] == self._step:
            self._cancel_all(rest[1])
        elif kind == "refused":
            self._refuse(rest[1], rest[2])
        elif kind in _CALLS and (flag := self._register(message)) is not None:
            token = self.reader_token.lend() if may_read and not self.reader_token.is_lent else None
            started = [message]  # popped, so that the message is freed when the call has ended
            self._threads.acquire()
            threads.submit(lambda: self._serve_thread(started, flag, token))

    def _register(self, message: wire.Message) -> CallFlag | None:
        """Register a call. Return None if it is refused, or came after the end of the step.

        Raises:
            wire.WireError: its id is in use.
        """
        step, number, from_main = message[1], message[2], message[0] == "call"
        with self._lock:
            ended = self._closed or self._main_ended or self.ended_by is not None
            if ended or step < self._step:
                return None
            if number in self._running:
                raise wire.WireError("a call whose id is in use")
            if len(self._running) < wire.MAX_CALLS and self._cancelled.count < MAX_CANCELLED:
                flag = self._running[number] = CallFlag(time.monotonic(), from_main, self._add_line)
                if len(self._running) == 1:
                    self._busy_since = flag.started
                self.waits.start(from_main, flag.started)
                return flag
        if len(self._running) >= wire.MAX_CALLS:
            self._refuse(number, f"more than {wire.MAX_CALLS} calls at once")
        else:
            self._refuse(number, f"{MAX_CANCELLED} cancelled calls are still running")
        return None

    def _refuse(self, number: int, why: str) -> None:
        self._send(["exc", number, describe_error(ValueError(f"the call was refused: {why}"))])

    def _cancel_all(self, number: int) -> None:
        """Cancel all calls, since the step's main code has ended, and reply to this one."""
        with self._lock:
            self._main_ended = True
            for one in list(self._running):
                self._cancel(one)
        self._send(["ret", number, None])

    def _cancel(self, number: int) -> None:
        self._running[number].cancelled = True
        self._cancelled.add(1)
        self._end_call(number)

    def _serve_thread(
        self, started: list[wire.Message], flag: CallFlag, token: object | None
    ) -> None:
        try:
            self._serve(started.pop(), flag, token)
        finally:
            self._threads.release()

    def _serve(self, message: wire.Message, flag: CallFlag, token: object | None) -> None:
        """Run a call; with the reader token, also the next calls, one after the other."""
        reader_token = self.reader_token
        self._context.copy().run(self._perform, flag, *message[2:])
        del message  # releases its cost
        while token is not None and reader_token.keep(token, busy=False):
            try:
                messages = self._worker.receive_soon()
            except wire.WireError as error:
                messages = [wire.Message(["broken", str(error)])]
            one = messages[0] if len(messages) == 1 else wire.Message()
            if not self._is_call(one) or not reader_token.keep(token, busy=True):
                reader_token.give_back(token, messages)
                self._wake()
                return
            try:
                next_flag = self._register(one)
            except wire.WireError as error:
                reader_token.give_back(token, [wire.Message(["broken", str(error)])])
                self._wake()
                return
            if next_flag is not None:
                self._context.copy().run(self._perform, next_flag, *one[2:])
            del one, messages

    def _is_call(self, message: wire.Message) -> bool:
        return (
            bool(message)
            and message[0] in _CALLS
            and [type(part) for part in message[1:]] == _FORMS["call"]
            and message[1] <= self._step
        )

    def _perform(
        self, flag: CallFlag, number: int, name: str, args: list[Any], kwargs: dict[str, Any]
    ) -> None:
        current_flag.set(flag)
        try:
            self._call(number, name, args, kwargs)
        finally:
            with self._lock:
                if flag.cancelled:
                    self._cancelled.add(-1)

    def _call(self, number: int, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        ended_with = None
        try:
            function = self._functions.get(name)
            if function is None:
                raise NameError(f"there is no function {name[:100]!r}")
            kwargs = with_declared_names(function, kwargs)
            if name in self._terminal:
                ended_with = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
            reply = self._reply(number, function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - the code gets every error that ends no run
            if ends_run(error):
                self._abort(error)
                return
            reply, ended_with = ["exc", number, describe_error(error)], None
        self._finish(number, name, reply, ended_with)

    def _reply(self, number: int, value: Any) -> list[Any]:
        if isinstance(value, LocalCall):
            self.has_background_commands |= value.stays
            kwargs = encode(value.kwargs, self._handles.tag)
            return ["do", number, value.name, kwargs, value.package]
        return ["ret", number, encode(value, self._handles.tag)]

    def _abort(self, error: BaseException) -> None:
        with self._lock:
            if self._closed:
                return
            self.fatal = self.fatal or error
        self._wake()

    def _finish(
        self, number: int, name: str, reply: list[Any], ended_with: dict[str, Any] | None
    ) -> None:
        with self._lock:
            if self._closed or self.ended_by is not None or number not in self._running:
                return
            self._end_call(number)
            if ended_with is not None:
                self.ended_by, self.ended_with = name, ended_with
                reply = ["end", number]
        try:
            self._send(reply)
        except wire.TooLarge as error:
            self._send(["exc", number, describe_error(error)])
        if ended_with is not None:
            self._wake()

    def _end_call(self, number: int) -> None:
        now = time.monotonic()
        self.waits.end(self._running.pop(number).from_main, now)
        if not self._running:
            self._busy += now - self._busy_since

    def expire(self, now: float) -> float | None:
        """Fail the calls that exceed `call_timeout`.

        Returns:
            Seconds until the next call can exceed it; None if no call can.
        """
        if self._call_timeout is None:
            return None
        with self._lock:
            limit = self._call_timeout
            late = [n for n, one in self._running.items() if now - one.started >= limit]
            for number in late:
                self._cancel(number)
            first = min((one.started for one in self._running.values()), default=None)
        for number in late:
            message = f"the call took longer than {self._call_timeout:g} s"
            self._send(["exc", number, describe_error(TimeoutError(message))])
        return None if first is None else first + self._call_timeout - now

    def close(self) -> float:
        """End the step: cancel the running calls.

        Returns:
            The seconds in which at least one call was running.
        """
        with self._lock:
            self._closed = True
            self.reader_token.revoke()
            for number in list(self._running):
                self._cancel(number)
            return self._busy


_FORMS: dict[str, list[type]] = {
    "call": [int, int, str, list, dict],
    "thread_call": [int, int, str, list, dict],
    "leave": [int, int],
    "refused": [int, int, str],
    "where": [int, bool],
}
"""The types in each message of a step, without `done`; the first is the number of the step."""
_CALLS = frozenset({"call", "thread_call"})


# --- cancelled calls -----------------------------------------------------------------------------


class CallFlag:
    """Shows the function of a call whether the call was cancelled; its result is then dropped.

    Args:
        started: see below.
        from_main: see below.
        add_line: adds a line to the pieces of the step's output.

    Attributes:
        started: time of the start by the monotonic clock.
        from_main: whether the main thread of the code made the call.
        cancelled: whether the step ended or `call_timeout` passed.
    """

    __slots__ = ("_add_line", "cancelled", "from_main", "started")

    def __init__(self, started: float, from_main: bool, add_line: Callable[[str], None]):
        self.started = started
        self.from_main = from_main
        self.cancelled = False
        self._add_line = add_line

    def report(self, line: str) -> None:
        """Add a line about the call to the step's output, after what was printed so far."""
        if not self.cancelled:
            self._add_line(line)

    def is_set(self) -> bool:
        """Return whether the call was cancelled."""
        return self.cancelled


current_flag: contextvars.ContextVar[CallFlag | None] = contextvars.ContextVar("call", default=None)


def current_call() -> CallFlag | None:
    """Return the flag of the call that this thread is running; None outside of a call."""
    return current_flag.get()


@contextmanager
def outside_calls() -> Iterator[None]:
    """Run the body as if this thread ran no call: for an agent inside of a call of another one."""
    token = current_flag.set(None)
    try:
        yield
    finally:
        current_flag.reset(token)


class CancelledCalls:
    """Counts the cancelled calls of an executor that are still running, over all its steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, number: int) -> None:
        """Add to the count; a negative number subtracts."""
        with self._lock:
            self.count += number
