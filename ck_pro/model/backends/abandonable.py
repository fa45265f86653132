"""Run a blocking call so that its caller can abandon it on a timeout or a cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from ck_pro import threads
from ck_pro.model.backends.backend import ChatRequest

_T = TypeVar("_T")
_POLL_SECONDS = 0.05


class _Outcome(Generic[_T]):
    """The value or the error of a call in another thread."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: _T | None = None
        self.error: BaseException | None = None

    def fill(self, call: Callable[[], _T]) -> None:
        try:
            self.value = call()
        except BaseException as e:  # noqa: BLE001 - raised again in the waiting thread
            self.error = e
        finally:
            self.done.set()


def call_abandonable(call: Callable[[], _T], request: ChatRequest, target: str) -> _T:
    """Run `call` in a thread, and wait for it at most `request.seconds`.

    The HTTP libraries limit each read, not the whole response, and a blocking read cannot be
    interrupted. Therefore a second thread does the blocking. When the call is abandoned, its
    connection is closed and that thread ends.

    Args:
        call: the blocking call.
        request: has the time limit and the context, whose `cancel` is watched.
        target: name of the service, for messages.

    Raises:
        TimedOut: the time limit passed.
        Cancelled, LimitReached: the context ended the call.
    """
    outcome: _Outcome[_T] = _Outcome()
    cancel = request.context.cancel
    deadline = time.monotonic() + request.seconds
    threads.submit(lambda: outcome.fill(call))
    try:
        while not outcome.done.wait(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic()))):
            if cancel is not None and cancel.is_set():
                request.context.check()
            if time.monotonic() >= deadline:
                raise request.timed_out(target)
    finally:
        if not outcome.done.is_set():
            request.abandon()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # type: ignore[return-value]
