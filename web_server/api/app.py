"""The application: who is let in, how faults are told, what is counted and logged.

JSON in, JSON out; every fault of the caller is a 4xx with one line of help.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, g, jsonify, request
from werkzeug.exceptions import HTTPException

from web_server.api import metrics
from web_server.api.admission import Admission
from web_server.api.logs import FIELDS
from web_server.api.routes import Routes
from web_server.chromium.loop import LoopThread
from web_server.errors import (
    BadRequest,
    ServerError,
    Unavailable,
    stopping,
)
from web_server.pool.pool import Pool

log = logging.getLogger("web_server")

_ALWAYS = frozenset({"closeBrowser", "status", "metrics"})


def create_app(
    pool: Pool,
    loop: LoopThread,
    admission: Admission,
    most: int = 1000,
    ending: Callable[[], bool] = lambda: False,
) -> Flask:
    """The Flask application.

    Args:
        pool: the browsers.
        loop: the event loop on which the pool lives.
        admission: which requests may be made at all.
        most: so many requests may be at work at once; further ones are turned away, but for those
            that give a browser back or look at the server.
        ending: tells whether the server is about to stop; all but those are turned away then.
    """
    app = Flask("web_server", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    requests = metrics.Requests()
    app.extensions["requests"] = requests
    Routes(pool, loop, requests).add_to(app)

    @app.before_request
    def admit() -> None:
        g.begun = time.monotonic()
        at_work = requests.begin()
        refused = admission.refusal(request.headers.get)
        if refused is not None:
            raise refused
        if ending() and request.endpoint not in _ALWAYS:
            raise stopping()
        if at_work > most and request.endpoint not in _ALWAYS:
            raise Unavailable(f"{most} requests are at work: try again", retry_after=1)

    @app.after_request
    def account(response: Response) -> Response:
        route = request.endpoint or "unknown"
        seconds = time.monotonic() - g.get("begun", time.monotonic())
        requests.count(route, response.status_code, seconds)
        fields: dict[str, Any] = {
            "route": route,
            "status": response.status_code,
            "ms": round(seconds * 1000, 1),
        }
        if g.get("browser"):
            fields["browser"] = g.browser
        if g.get("action"):
            fields["action"] = g.action
        message = "%s %d %.0f ms", route, response.status_code, seconds * 1000
        log.info(*message, extra={FIELDS: fields})
        return response

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        if "begun" in g:
            requests.end()

    _handle_errors(app)
    return app


def _handle_errors(app: Flask) -> None:
    def answer(status: int, message: str, more: dict[str, Any] | None = None) -> Response:
        response = jsonify({"error": message, **(more or {})})
        response.status_code = status
        return response

    @app.errorhandler(ServerError)
    def expected(error: ServerError) -> Response:
        given = {"observation": error.observation, "code": error.code or None}
        more = {key: value for key, value in given.items() if value is not None}
        hint = g.hint() if isinstance(error, BadRequest) and "hint" in g else ""
        message = f"{error.message} ({hint})" if hint else error.message
        response = answer(error.status, message, more)
        if error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response

    @app.errorhandler(HTTPException)
    def http(error: HTTPException) -> Response:
        hints = {
            404: "no such route; docs/web_server.md lists them",
            405: "this route takes POST with a JSON body",
            413: "the request is too large",
        }
        status = error.code or 500
        return answer(status, hints.get(status, error.description or error.name))

    @app.errorhandler(Exception)
    def ours(error: Exception) -> Response:
        # The boundary of the process: whatever it was, it is logged and the server goes on.
        log.exception("%s failed", request.path)
        return answer(500, f"the browser server failed: {type(error).__name__}; see its log")
