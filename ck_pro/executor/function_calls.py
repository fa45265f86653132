"""The parent's functions: called for a step's code, on threads of their own."""

from __future__ import annotations

import contextvars
import inspect
import itertools
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from ck_pro import threads
from ck_pro.exceptions import ends_run
from ck_pro.executor.function_descriptions import Function, describe_error
from ck_pro.executor.reader_token import ReaderToken
from ck_pro.executor.results import LocalCall
from ck_pro.executor.step_clock_pauses import MainWaits
from ck_pro.executor.worker import wire


class Line(Protocol):
    """The part of a worker's process that calls need."""

    def send(self, message: list[Any]) -> None:
        """Send a frame; a worker that is gone is no error."""

    def receive_soon(self) -> list[wire.Message]:
        """Receive messages that come within some milliseconds."""

    def wake(self) -> None:
        """Wake the thread in `run`."""


class Handles:
    """The objects that crossed to the worker by `to_worker()`, by their handles."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self._numbers = itertools.count(1)

    def tag(self, value: Any) -> dict[str, Any] | None:
        """Give the `result` tag of an object with a method `to_worker`, else None."""
        if not callable(getattr(type(value), "to_worker", None)):
            return None
        content = wire.encode(dict(value.to_worker()), self.tag)
        handle = f"r{next(self._numbers)}"  # from any thread
        self.objects[handle] = value
        return {"$": "result", "h": handle, "d": content, "s": str(value)}

    def restore(self, tagged: dict[str, Any]) -> Any:
        """Give the object again when the code hands it to another function.

        Raises:
            KeyError: the worker made the handle up.
        """
        return self.objects[tagged["h"]]


MAX_GIVEN_UP = 64
"""Calls that were given up and still run, of one executor; with so many it accepts no further."""


class CallFlag:
    """Tells a call's function whether the call was given up: then its result is dropped."""

    __slots__ = ("began", "from_main", "given_up")

    def __init__(self, began: float, from_main: bool):
        self.began = began
        self.from_main = from_main
        self.given_up = False

    def is_set(self) -> bool:
        """Whether the call was given up, as its step ended or `call_timeout` was over."""
        return self.given_up


_current: contextvars.ContextVar[CallFlag | None] = contextvars.ContextVar("call", default=None)


def current_call() -> CallFlag | None:
    """Return the flag of the call that this thread does for code; None outside of such a call."""
    return _current.get()


class GivenUp:
    """Counts the calls of an executor that were given up and still run, over all its steps."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, number: int) -> None:
        """Count some more, or less."""
        with self._lock:
            self.count += number


class StepCalls:
    """The calls of one step.

    Args:
        step: its number, which its calls carry.
        functions: by name, as of the beginning of the step.
        terminal: names of those that end the step.
        call_timeout: seconds for one call, or None.
        handles: of the session.
        worker: sends and receives frames; wakes the thread in `run`.
        given_up: of the executor.
    """

    def __init__(
        self,
        step: int,
        functions: Mapping[str, Function],
        terminal: frozenset[str],
        call_timeout: float | None,
        handles: Handles,
        worker: Line,
        given_up: GivenUp,
    ):
        self._step = step
        self._given_up = given_up
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
        self.waits = MainWaits(lambda: worker.send(["where", step]))
        self._busy_since = 0.0
        self._busy = 0.0
        self._left = False  # the step's main code has ended
        self._over = False
        self._context = contextvars.copy_context()
        self.ended_by: str | None = None
        self.ended_with: dict[str, Any] | None = None
        self.fatal: BaseException | None = None
        self.leaves_something = False  # in the worker: commands in the background

    def begin(self, message: wire.Message, may_lead: bool) -> None:
        """Start a call on a thread of its own; or take another message of a step.

        Args:
            message: the worker's frame.
            may_lead: the thread may read the worker's next messages.

        Raises:
            wire.WireError: it is malformed, or a call's id is in use.
        """
        kind, *rest = message
        if [type(one) for one in rest] != _FORMS.get(kind):
            raise wire.WireError(f"a malformed message {kind[:100]!r}")
        if rest[0] > self._step:
            raise wire.WireError("a message of a step to come")
        if kind == "where" and rest[0] == self._step:
            self.waits.answer(rest[1])
        elif kind == "leave" and rest[0] == self._step:
            self._leave(rest[1])
        elif kind == "refused":
            self._refuse(rest[1], rest[2])
        elif kind in _CALLS and (flag := self._register(message)) is not None:
            token = self.reader_token.give() if may_lead and not self.reader_token.is_out else None
            begun = [message]  # let go as soon as the call has ended
            threads.submit(lambda: self._serve(begun.pop(), flag, token))

    def _register(self, message: wire.Message) -> CallFlag | None:
        """Note the beginning of a call. None: it comes too late, or is refused.

        Raises:
            wire.WireError: its id is in use.
        """
        step, number, from_main = message[1], message[2], message[0] == "call"
        with self._lock:
            if self._over or self._left or self.ended_by is not None or step < self._step:
                return None
            if number in self._running:
                raise wire.WireError("a call whose id is in use")
            if len(self._running) < wire.MAX_CALLS and self._given_up.count < MAX_GIVEN_UP:
                flag = self._running[number] = CallFlag(time.monotonic(), from_main)
                if len(self._running) == 1:
                    self._busy_since = flag.began
                self.waits.begin(from_main, flag.began)
                return flag
        if len(self._running) >= wire.MAX_CALLS:
            self._refuse(number, f"more than {wire.MAX_CALLS} calls at once")
        else:
            self._refuse(number, f"{MAX_GIVEN_UP} calls that were given up still run")
        return None

    def _refuse(self, number: int, why: str) -> None:
        self._send(["exc", number, describe_error(ValueError(f"the call is refused: {why}"))])

    def _leave(self, number: int) -> None:
        """Give all calls up: the step's main code has ended."""
        with self._lock:
            self._left = True
            for one in list(self._running):
                self._give_up(one)
        self._send(["ret", number, None])

    def _give_up(self, number: int) -> None:
        self._running[number].given_up = True
        self._given_up.add(1)
        self._end_call(number)

    def _serve(self, message: wire.Message, flag: CallFlag, token: object | None) -> None:
        """Do a call; with the lead, also those that come next, one after the other."""
        reader_token = self.reader_token
        self._context.copy().run(self._perform, flag, *message[2:])
        del message  # what it costs counts no more
        while token is not None and reader_token.keep(token, busy=False):
            try:
                messages = self._worker.receive_soon()
            except wire.WireError as error:
                messages = [wire.Message(["broken", str(error)])]
            one = messages[0] if len(messages) == 1 else wire.Message()
            if not self._is_call(one) or not reader_token.keep(token, busy=True):
                reader_token.hand_in(token, messages)
                self._wake()
                return
            try:
                next_flag = self._register(one)
            except wire.WireError as error:
                reader_token.hand_in(token, [wire.Message(["broken", str(error)])])
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
        _current.set(flag)
        try:
            self._do(number, name, args, kwargs)
        finally:
            with self._lock:
                if flag.given_up:
                    self._given_up.add(-1)

    def _do(self, number: int, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        ended_with = None
        try:
            function = self._functions.get(name)
            if function is None:
                raise NameError(f"there is no function {name[:100]!r} now")
            if name in self._terminal:
                ended_with = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
            reply = self._reply(number, function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - what does not end the run, the code sees
            if ends_run(error):
                self._abort(error)
                return
            reply, ended_with = ["exc", number, describe_error(error)], None
        self._finish(number, name, reply, ended_with)

    def _reply(self, number: int, value: Any) -> list[Any]:
        if isinstance(value, LocalCall):
            self.leaves_something |= value.stays
            return ["do", number, value.name, wire.encode(value.kwargs, self._handles.tag)]
        return ["ret", number, wire.encode(value, self._handles.tag)]

    def _abort(self, error: BaseException) -> None:
        with self._lock:
            if self._over:
                return
            self.fatal = self.fatal or error
        self._wake()

    def _finish(
        self, number: int, name: str, reply: list[Any], ended_with: dict[str, Any] | None
    ) -> None:
        with self._lock:
            if self._over or self.ended_by is not None or number not in self._running:
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
        """Fail the calls that took too long; give the seconds until the next one may, or None."""
        if self._call_timeout is None:
            return None
        with self._lock:
            late = [n for n, one in self._running.items() if now - one.began >= self._call_timeout]
            for number in late:
                self._give_up(number)
            first = min((one.began for one in self._running.values()), default=None)
        for number in late:
            message = f"the call took longer than {self._call_timeout:g} s"
            self._send(["exc", number, describe_error(TimeoutError(message))])
        return None if first is None else first + self._call_timeout - now

    def close(self) -> float:
        """End the step: what still runs is given up. Gives the seconds spent in calls."""
        with self._lock:
            self._over = True
            self.reader_token.revoke()
            for number in list(self._running):
                self._give_up(number)
            return self._busy


_FORMS: dict[str, list[type]] = {
    "call": [int, int, str, list, dict],
    "thread_call": [int, int, str, list, dict],
    "leave": [int, int],
    "refused": [int, int, str],
    "where": [int, bool],
}
"""The messages of a step, but for its end; each begins with the number of its step."""
_CALLS = frozenset({"call", "thread_call"})
