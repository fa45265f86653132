"""The Flask application: admission, error responses, metrics and logs.

Errors are JSON. An error of the client has a status of 4xx and one line of help.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from flask import Flask, Response, g, jsonify, request
from werkzeug.exceptions import HTTPException

from web_server.api import metrics, viewer
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
    max_requests: int = 1000,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Flask:
    """Create the Flask application.

    Args:
        pool: the browsers.
        loop: the event loop of the pool.
        admission: which requests are admitted.
        max_requests: limit of concurrent requests. closeBrowser, status and metrics are exempt.
        is_stopping: returns whether the server is stopping. Then only those routes are served.
    """
    app = Flask("web_server", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    requests = metrics.Requests()
    app.extensions["requests"] = requests
    Routes(pool, loop, requests, admission.token).add_to(app)

    @app.before_request
    def admit() -> None:
        g.started = time.monotonic()
        in_progress = requests.start()
        refused = admission.refusal(request.headers.get)
        if refused is not None and request.endpoint not in viewer.ENDPOINTS:
            raise refused
        if is_stopping() and request.endpoint not in _ALWAYS:
            raise stopping()
        if in_progress > max_requests and request.endpoint not in _ALWAYS:
            message = f"{max_requests} requests are in progress: try again"
            raise Unavailable(message, retry_after=1)

    @app.after_request
    def account(response: Response) -> Response:
        route = request.endpoint or "unknown"
        seconds = time.monotonic() - g.get("started", time.monotonic())
        requests.count(route, response.status_code, seconds)
        _log_request(route, response.status_code, seconds * 1000)
        return response

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        if "started" in g:
            requests.end()

    _handle_errors(app)
    return app


def _log_request(route: str, status: int, milliseconds: float) -> None:
    fields: dict[str, Any] = {"route": route, "status": status, "ms": round(milliseconds, 1)}
    fields |= {name: g.get(name) for name in ("browser", "action") if g.get(name)}
    log.info("%s %d %.0f ms", route, status, milliseconds, extra={FIELDS: fields})


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
            404: "unknown route; docs/web_server.md lists the routes",
            405: "send POST with a JSON body to this route",
            413: "the request is too large",
        }
        status = error.code or 500
        return answer(status, hints.get(status, error.description or error.name))

    @app.errorhandler(Exception)
    def internal(error: Exception) -> Response:
        # The boundary of the process: log the error and keep serving.
        log.exception("%s failed", request.path)
        return answer(500, f"the browser server failed: {type(error).__name__}; see its log")
