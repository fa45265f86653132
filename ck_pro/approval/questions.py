"""The questions to the user that calls of a step wait for: reviews of actions, and `ask_human`."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ck_pro.exceptions import AwaitingHuman

_CHECK_SECONDS = 0.2


class _Call:
    """A call of a function by the code of a run, and the number of its pending questions."""

    def __init__(self, questions: Questions):
        self.questions = questions
        self.pending = 0


_calls: contextvars.ContextVar[tuple[_Call, ...]] = contextvars.ContextVar("calls", default=())
"""The calls that this thread works on: of the main agent, then of its sub-agents."""


class Questions:
    """The pending questions of one run, those of its sub-agents included.

    A step ends when they have been decided: a decision to stop must not get lost if the code of the
    step ends, calls `stop`, or is killed meanwhile.

    Attributes:
        stop: the error with which a call stopped for the user.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending = 0
        self.stop: AwaitingHuman | None = None

    @contextmanager
    def of_call(self) -> Iterator[None]:
        """Run a call; its questions end with it."""
        call = _Call(self)
        token = _calls.set((*_calls.get(), call))
        try:
            yield
        except AwaitingHuman as error:
            self.stop = self.stop or error
            raise
        finally:
            _calls.reset(token)
            self._add(call, -call.pending)

    def settle(self, check: Callable[[], None]) -> None:
        """Wait until no question is pending.

        Args:
            check: raises if the run must stop.

        Raises:
            AwaitingHuman: a call stopped for the user.
        """
        with self._changed:
            while self._pending:
                check()
                self._changed.wait(_CHECK_SECONDS)
        if self.stop is not None:
            raise self.stop

    def _add(self, call: _Call, number: int) -> None:
        with self._changed:
            call.pending += number
            self._pending += number
            self._changed.notify_all()


class pending_question:
    """A question of the current call, and of the calls of the agents above it.

    It ends with this context, or with the calls if they stop for the user.

    Attributes:
        is_open: set it if the caller will stop for the user.
    """

    def __init__(self) -> None:
        self._calls = _calls.get()
        self.is_open = False

    def __enter__(self) -> pending_question:
        for call in self._calls:
            call.questions._add(call, 1)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if not (self.is_open or isinstance(error, AwaitingHuman)):
            for call in self._calls:
                call.questions._add(call, -1)
