"""Retries of failed model calls: when to wait, how long, and when to give up."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import tenacity

from ck_pro.exceptions import ModelTimeout, ModelUnavailable
from ck_pro.model.types import CallContext

_T = TypeVar("_T")
_LOG = logging.getLogger("ck_pro.model")

Wait = Callable[[float, threading.Event | None], None]
"""Waits for a number of seconds, or until the event is set."""

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds: the first wait, which doubles with each attempt, and the longest one."""


class Transient(ModelUnavailable):
    """A failure that a retry may overcome. `call_with_retries` never raises it.

    Args:
        message: one line: the service, and what happened.
        retry_after: seconds that the service asked to wait.
    """

    def __init__(self, message: str, retry_after: float | None = None):
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(Transient):
    """One attempt exceeded its time limit."""


def wait_interruptibly(seconds: float, cancel: threading.Event | None) -> None:
    """Wait for `seconds`, or until `cancel` is set."""
    if cancel is not None:
        cancel.wait(seconds)
    else:
        time.sleep(seconds)


def call_with_retries(
    call: Callable[[], _T],
    context: CallContext,
    *,
    max_retry_times: int,
    max_retry_seconds: float,
    wait: Wait = wait_interruptibly,
) -> tuple[_T, int]:
    """Run `call`, and retry it after each `Transient` failure.

    Waits grow exponentially with jitter, unless the service asks for a longer one. A retry does not
    start if it would begin later than `max_retry_seconds` after the first attempt.

    Args:
        call: one attempt.
        context: its `cancel` interrupts a wait; its budget limits the wait.
        max_retry_times: attempts after the first.
        max_retry_seconds: seconds within which attempts may start; waits count.
        wait: how to wait.

    Returns:
        The value of `call`, and the number of attempts.

    Raises:
        ModelTimeout: the last attempt timed out.
        ModelUnavailable: the last attempt failed otherwise.
        Cancelled, LimitReached: the context ended the call.
    """

    def attempt() -> _T:
        context.check()
        return call()

    def sleep(seconds: float) -> None:
        context.check()
        wait(context.seconds_left(seconds), context.cancel)
        context.check()

    def too_late(state: tenacity.RetryCallState) -> bool:
        spent = max(state.seconds_since_start or 0.0, state.idle_for)
        return spent + state.upcoming_sleep > max_retry_seconds

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Transient),
        stop=lambda s: s.attempt_number > max_retry_times or too_late(s),
        wait=_next_wait,
        sleep=sleep,
        before_sleep=lambda s: _report_wait(s, context),
    )
    start = time.monotonic()
    try:
        result = retrying(attempt)
    except tenacity.RetryError as e:
        context.check()  # an exhausted limit of the run takes precedence
        raise _final_error(e.last_attempt, max_retry_seconds, time.monotonic() - start) from None
    return result, int(retrying.statistics["attempt_number"])


def _next_wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.retry_after if isinstance(error, Transient) else None
    if asked:  # not 0: with a wrong clock, a date in the past would use up all retries at once
        # jitter upwards only, so that clients with the same Retry-After spread out
        return asked + random.uniform(0, min(1.0, 0.1 * asked))
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (state.attempt_number - 1))
    return random.uniform(longest / 2, longest)


def _report_wait(state: tenacity.RetryCallState, context: CallContext) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    _LOG.warning("%s; retrying in %.1f s", error, state.upcoming_sleep)
    if context.on_wait is not None:
        context.on_wait(f"retrying in {state.upcoming_sleep:.1f} s: {error}")


def _final_error(last: Any, max_retry_seconds: float, spent: float) -> ModelUnavailable:
    error = last.exception()
    tries = f"{last.attempt_number} attempt{'s' if last.attempt_number > 1 else ''}"
    if isinstance(error, TimedOut):
        return ModelTimeout(
            f"{error}; gave up after {tries} and {spent:.3g} s (for a slow model, raise "
            "`request_timeout`; for more attempts, raise `max_retry_seconds` as well)"
        )
    if error.retry_after is not None and error.retry_after > max_retry_seconds:
        why = f"it asks to wait {error.retry_after:.0f} s, more than `max_retry_seconds`"
    else:
        why = "check that the service is up, or raise `max_retry_times` or `max_retry_seconds`"
    return ModelUnavailable(f"{error}; gave up after {tries} ({why})")
