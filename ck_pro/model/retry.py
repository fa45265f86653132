"""Which failures of a model service are worth another try, and when."""

from __future__ import annotations

import email.utils
import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, TypeVar

import tenacity

from ck_pro.exceptions import (
    ContentFiltered,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from ck_pro.model.types import CallContext

_T = TypeVar("_T")
_LOG = logging.getLogger("ck_pro.model")

Wait = Callable[[float, threading.Event | None], None]
"""Waits so many seconds, less when the event is set."""

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds: the first wait (it doubles with each attempt) and the longest that we choose."""

_NOT_IMPLEMENTED = (501, 505)
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_FILTERED = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "bio_policy",
        "misalignment_policy_violation",
        "data_inspection_failed",
    }
)
_MEANT = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", *_NO_QUOTA), 429),
    **dict.fromkeys(("invalid_request_error", "BadRequestError", "context_length_exceeded"), 400),
    **dict.fromkeys(("invalid_prompt", "invalid_value", "unsupported_value"), 400),
    **dict.fromkeys(("unsupported_parameter", "data_residency_mismatch"), 400),
    **dict.fromkeys(("invalid_image", "invalid_image_format", "invalid_base64_image"), 400),
    **dict.fromkeys(("invalid_image_url", "invalid_image_mode", "image_parse_error"), 400),
    **dict.fromkeys(("image_too_large", "image_too_small", "image_file_too_large"), 400),
    **dict.fromkeys(("unsupported_image_media_type", "empty_image_file"), 400),
    **dict.fromkeys(("invalid_api_key", "authentication_error", "AuthenticationError"), 401),
    "billing_error": 402,
    **dict.fromkeys(("permission_error", "PermissionDeniedError"), 403),
    **dict.fromkeys(("model_not_found", "not_found_error", "NotFoundError"), 404),
    "request_too_large": 413,
}
"""Codes and types of errors that stand in a reply of status 200, and the status that they should
have had; those that are not here may pass. Source: the error references of OpenAI and Anthropic,
the classes of vLLM's errors."""
_HINTS = {
    400: "the request itself is not accepted: see `call_kwargs`; a prompt that is too long: "
    "set `max_prompt_tokens`",
    401: "check the API key",
    402: "the account has no credit",
    403: "the key may not use this model",
    404: "no such model or address: check `call_target` and call_kwargs['model']",
    413: "the prompt is too long: set `max_prompt_tokens`",
    422: "the request itself is not accepted: see `call_kwargs`",
    429: "the account's quota is used up",
}


class Transient(ModelUnavailable):
    """A failure that another try may mend. Never leaves this package: see `call_with_retries`.

    Args:
        message: one line: which target, what happened.
        retry_after: seconds that the service asked to wait.
    """

    def __init__(self, message: str, retry_after: float | None = None):
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(Transient):
    """No whole reply came in time."""


def wait_interruptibly(seconds: float, cancel: threading.Event | None) -> None:
    """Wait, but no longer than until `cancel` is set."""
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
    """Call, and again after each `Transient` failure: with growing, jittered waits.

    Args:
        call: one attempt.
        context: its `cancel` ends a wait, its budget bounds it.
        max_retry_times: attempts after the first.
        max_retry_seconds: bound on the whole, waits and attempts together.
        wait: how to wait.

    Returns:
        What the call returned, and the number of attempts.

    Raises:
        ModelUnavailable: no attempt succeeded, or the next would come too late.
        Cancelled, LimitReached: the context says to stop.
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
        before_sleep=lambda s: _tell_wait(s, context),
    )
    start = time.monotonic()
    try:
        result = retrying(attempt)
    except tenacity.RetryError as e:
        context.check()  # when the run's own time is up, that is the reason
        raise _gave_up(e.last_attempt, max_retry_seconds, time.monotonic() - start) from None
    return result, int(retrying.statistics["attempt_number"])


def _next_wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.retry_after if isinstance(error, Transient) else None
    if asked:  # "at once", as a clock that differs reads a date, would use all tries up in no time
        # jitter upwards only: all who were told the same second must not come back in it
        return asked + random.uniform(0, min(1.0, 0.1 * asked))
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (state.attempt_number - 1))
    return random.uniform(longest / 2, longest)


def _tell_wait(state: tenacity.RetryCallState, context: CallContext) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    _LOG.warning("%s; next try in %.1f s", error, state.upcoming_sleep)
    if context.on_wait is not None:
        context.on_wait(f"asks again in {state.upcoming_sleep:.1f} s: {error}")


def _gave_up(last: Any, max_retry_seconds: float, spent: float) -> ModelUnavailable:
    error = last.exception()
    tries = f"{last.attempt_number} attempt{'s' if last.attempt_number > 1 else ''}"
    if isinstance(error, TimedOut):
        return ModelTimeout(
            f"{error}; gave up after {tries} and {spent:.3g} s (a slow model: raise "
            "`request_timeout`; more attempts: raise `max_retry_seconds` too)"
        )
    if error.retry_after is not None and error.retry_after > max_retry_seconds:
        why = f"it asks to wait {error.retry_after:.0f} s, more than `max_retry_seconds`"
    else:
        why = "is the service up? `max_retry_times` and `max_retry_seconds` bound the tries"
    return ModelUnavailable(f"{error}; gave up after {tries} ({why})")


def service_error(
    target: str,
    status: int,
    reply: Any,
    headers: Mapping[str, str] | None = None,
    heading: str = "",
) -> ModelError:
    """The error for a status that is no success.

    Args:
        target: which service, for the message.
        status: HTTP status.
        reply: the body as JSON or text.
        headers: of the reply; `Retry-After` is read.
        heading: what the message says in place of the status.
    """
    code, said = _error_text(reply)
    line = f"{target}: {heading or f'HTTP {status}'}" + (f": {said}" if said else "")
    if code in _FILTERED:
        return ContentFiltered(f"{target}: the content filter stopped the prompt: {said}")
    passing = status in (408, 409, 425, 429) or (status >= 500 and status not in _NOT_IMPLEMENTED)
    if passing and code not in _NO_QUOTA:
        return Transient(line, retry_after_seconds(headers or {}))
    if 300 <= status < 400 and (headers or {}).get("location"):
        # another's address: without a login or a signed query in it
        where = re.sub(r"//[^/@]*@", "//", re.split("[?#]", (headers or {}).get("location", ""))[0])
        return ModelRefused(f"{target}: redirects to '{where}'; use that address if you trust it")
    hint = _HINTS.get(status)
    return ModelRefused(f"{line} ({hint})" if hint else line)


def told_error(target: str, reply: Mapping[str, Any], headers: Mapping[str, str]) -> ModelError:
    """The error for an error object in a reply of status 200, as gateways send them."""
    error = reply["error"]
    told = error if isinstance(error, Mapping) else {}
    names = [str(told.get(key)) for key in ("code", "type")]
    known = (int(n) if re.fullmatch("[45][0-9][0-9]", n) else _MEANT.get(n) for n in names)
    # of an unknown one, an upstream that broke, nobody can say that it will not pass
    status = next(filter(None, known), 500)
    return service_error(target, status, reply, headers, heading="answered with an error")


def is_filtered(body: str) -> bool:
    """Whether the body of an error says that the content filter stopped the prompt."""
    try:
        return _error_text(json.loads(body))[0] in _FILTERED
    except (ValueError, RecursionError):
        return False


def _error_text(reply: Any) -> tuple[str, str]:
    """Code and message of an error body: OpenAI's form, FastAPI's `detail`, or any text."""
    if isinstance(reply, dict):
        error = reply.get("error") or reply.get("detail") or reply.get("message") or reply
        if isinstance(error, dict):
            inner = error.get("code") or error.get("type") or ""
            return str(inner), one_line(str(error.get("message") or error))
        return "", one_line(str(error))
    return "", one_line(str(reply or ""))


def one_line(text: str, most: int = 300) -> str:
    """A text of others as one line for our messages, cut at `most` characters."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= most else flat[: most - 3] + "..."


def retry_after_seconds(
    headers: Mapping[str, str], now: Callable[[], float] = time.time
) -> float | None:
    """Seconds that a reply asks to wait; None when it does not say, or not so that we can tell.

    Reads `retry-after-ms` (OpenAI, Azure) and `Retry-After` as seconds or HTTP date (RFC 9110,
    10.2.3). A date that is past means now.
    """
    lower = {k.lower(): v for k, v in headers.items()}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        seconds = _number(lower.get(name, ""))
        if seconds is not None:
            return max(0.0, seconds / scale)
    try:
        when: datetime = email.utils.parsedate_to_datetime(lower.get("retry-after", ""))
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return max(0.0, when.timestamp() - now())
    except (TypeError, ValueError, OverflowError, IndexError):
        return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e9 else None  # nan and inf fail this too
