"""Errors that the browser server answers with: each knows its HTTP status.

Every message is one line that says what was wrong and what to do.
"""

from __future__ import annotations

from typing import Any


class ServerError(Exception):
    """Base of all answers that are not 200.

    Args:
        message: one line for the caller: what was wrong, and what to do.
        retry_after: seconds after which the same request may succeed (sent as `Retry-After`).
    """

    status = 500
    code = ""
    """Names the error for programs, where the status is not enough."""

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        self.observation: dict[str, Any] | None = None


class BadRequest(ServerError):
    """The request is malformed: a missing field, a wrong type, an unknown action."""

    status = 400


class Unauthorized(ServerError):
    """The bearer token is missing or wrong."""

    status = 401


class Forbidden(ServerError):
    """A request that may not be made at all, such as one that a web page sent."""

    status = 403


class NotFound(ServerError):
    """There is no such browser, page, file, round or element."""

    status = 404


class BrowserGone(NotFound):
    """The browser is not leased (any more). Clients tell it from a missing element by its code."""

    code = "browser_gone"


class Conflict(ServerError):
    """The target cannot be acted on as it is now: covered, disabled, not editable."""

    status = 409


class TooLarge(ServerError):
    """What was sent does not fit into what the server keeps of one session."""

    status = 413


class Busy(ServerError):
    """Another request is still at work on the same browser."""

    status = 423


class TooManyWaiting(ServerError):
    """So many callers wait for a free browser that no further one may queue."""

    status = 429


class Unavailable(ServerError):
    """No browser became free in time, Chromium cannot be started, or the server is stopping."""

    status = 503


RETRY_SECONDS = 30
"""What callers are told to wait who were turned away for want of a browser."""


def stopping() -> Unavailable:
    """What is told to all who come too late."""
    return Unavailable(
        "the browser server is stopping: try again when it runs", retry_after=RETRY_SECONDS
    )
