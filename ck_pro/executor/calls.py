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

from .describing import Function, describe_error
from .lead import Lead
from .results import LocalCall
from .worker import wire
from .worker.limits import MAX_TASKS


class Line(Protocol):
    """The part of a worker's process that calls need."""

    def send(self, message: list[Any]) -> None:
        """Send a frame; a worker that is gone is no error."""

    def receive_soon(self) -> list[list[Any]]:
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


class StepCalls:
    """The calls of one step.

    Args:
        step: its number, which its calls carry.
        functions: by name, as of the beginning of the step.
        terminal: names of those that end the step.
        call_timeout: seconds for one call, or None.
        handles: of the session.
        worker: sends and receives frames; wakes the thread in `run`.
    """

    def __init__(
        self,
        step: int,
        functions: Mapping[str, Function],
        terminal: frozenset[str],
        call_timeout: float | None,
        handles: Handles,
        worker: Line,
    ):
        self._step = step
        self._functions = functions
        self._terminal = terminal
        self._call_timeout = call_timeout
        self._handles = handles
        self._worker = worker
        self._send = worker.send
        self._wake = worker.wake
        self.lead = Lead()
        self._lock = threading.Lock()
        self._running: dict[int, float] = {}  # id -> when it began
        self._busy_since = 0.0
        self._busy = 0.0
        self._over = False
        self._context = contextvars.copy_context()
        self.ended_by: str | None = None
        self.ended_with: dict[str, Any] | None = None
        self.fatal: BaseException | None = None
        self.leaves_something = False  # in the worker: commands in the background

    def begin(self, message: list[Any], may_lead: bool) -> None:
        """Start a call on a thread of its own.

        Args:
            message: the worker's frame.
            may_lead: the thread may read the worker's next messages.

        Raises:
            wire.WireError: it is no call, or its id is in use.
        """
        if not self._register(message):
            return
        token = self.lead.give() if may_lead and not self.lead.is_out else None
        threads.submit(lambda: self._serve(message, token))

    def _register(self, message: list[Any]) -> bool:
        """Check a call, and note its beginning. False: it comes too late.

        Raises:
            wire.WireError: it is no call, or its id is in use.
        """
        _check_call(message)
        step, number = message[1:3]
        if step > self._step:
            raise wire.WireError("a call of a step to come")
        now = time.monotonic()
        with self._lock:
            if self._over or self.ended_by is not None or step < self._step:
                return False
            if number in self._running or len(self._running) >= MAX_TASKS:
                raise wire.WireError("a call whose id is in use, or too many calls")
            if not self._running:
                self._busy_since = now
            self._running[number] = now
        return True

    def _serve(self, message: list[Any], token: object | None) -> None:
        """Do a call; with the lead, also those that come next, one after the other."""
        lead = self.lead
        self._context.copy().run(self._perform, *message[2:])
        while token is not None and lead.keep(token, busy=False):
            try:
                messages = self._worker.receive_soon()
            except wire.WireError as error:
                messages = [["broken", str(error)]]
            one = messages[0] if len(messages) == 1 else [""]
            if one[0] != "call" or not lead.keep(token, busy=True):
                lead.hand_in(token, messages)
                self._wake()
                return
            try:
                registered = self._register(one)
            except wire.WireError as error:
                lead.hand_in(token, [["broken", str(error)]])
                self._wake()
                return
            if registered:
                self._context.copy().run(self._perform, *one[2:])

    def _perform(self, number: int, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        ended_with = None
        try:
            function = self._functions.get(name)
            if function is None:
                raise NameError(f"there is no function {name!r} now")
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
        del self._running[number]
        if not self._running:
            self._busy += time.monotonic() - self._busy_since

    def busy(self, now: float) -> float:
        """Give the seconds so far in which at least one call was at work."""
        with self._lock:
            return self._busy + (now - self._busy_since if self._running else 0.0)

    def expire(self, now: float) -> float | None:
        """Fail the calls that took too long; give the seconds until the next one may, or None."""
        if self._call_timeout is None:
            return None
        with self._lock:
            late = [n for n, began in self._running.items() if now - began >= self._call_timeout]
            for number in late:
                self._end_call(number)
            first = min(self._running.values(), default=None)
        for number in late:
            message = f"the call took longer than {self._call_timeout:g} s"
            self._send(["exc", number, describe_error(TimeoutError(message))])
        return None if first is None else first + self._call_timeout - now

    def close(self) -> float:
        """End the step: what still runs is on its own. Gives the seconds spent in calls."""
        now = time.monotonic()
        with self._lock:
            self._over = True
            self.lead.revoke()
            if self._running:
                self._busy += now - self._busy_since
                self._running.clear()
            return self._busy


def _check_call(message: list[Any]) -> None:
    kind, *rest = message
    types = [type(one) for one in rest]
    if kind != "call" or types != [int, int, str, list, dict]:
        raise wire.WireError(f"a malformed message {kind[:100]!r}")
