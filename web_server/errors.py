"""Errors of the browser server, each with its HTTP status.

A message is one line: what was wrong and what to do.
"""

from __future__ import annotations

from typing import Any


class ServerError(Exception):
    """Base of all error responses.

    Args:
        message: one line for the client: what was wrong and what to do.
        retry_after: seconds after which the same request may succeed, sent as `Retry-After`.
    """

    status = 500
    code = ""
    """Identifies the error for programs if the status is not enough."""

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
    """The request is not allowed, for example because a web page sent it."""

    status = 403


class NotFound(ServerError):
    """The browser, page, file, round or element does not exist."""

    status = 404


class BrowserGone(NotFound):
    """The browser is not leased. The code distinguishes this error from a missing element."""

    code = "browser_gone"


class Conflict(ServerError):
    """The action does not apply to the element in its current state: covered, disabled, ..."""

    status = 409


class TooLarge(ServerError):
    """The upload exceeds the storage limit of the session."""

    status = 413


class Busy(ServerError):
    """Another request for the same browser is in progress."""

    status = 423


class TooManyWaiting(ServerError):
    """The queue for a free browser is full."""

    status = 429


class Unavailable(ServerError):
    """No browser became free in time, Chromium cannot be started, or the server is stopping."""

    status = 503


RETRY_SECONDS = 30
"""`Retry-After` if no browser is available."""


def stopping() -> Unavailable:
    """Return the error for requests while the server is stopping."""
    return Unavailable(
        "the browser server is stopping: try again when it runs", retry_after=RETRY_SECONDS
    )
