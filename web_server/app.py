"""The routes: JSON in, JSON out; every fault of the caller is a 4xx with one line of help."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from flask import Flask, Response, g, jsonify, request
from pydantic import ValidationError
from werkzeug.exceptions import HTTPException

from web_server import contract, metrics
from web_server.driver import Driver
from web_server.errors import BadRequest, Forbidden, ServerError, Unauthorized
from web_server.logs import FIELDS
from web_server.loop import LoopThread
from web_server.memory import tree_bytes
from web_server.pool import Pool

log = logging.getLogger("web_server")

VERSION = "1.0"
REQUEST_SECONDS = 240.0
_QUEUE_EXTRA_SECONDS = 60.0

T = TypeVar("T")
W = TypeVar("W", bound=contract.Wire)
Route = Callable[[], Response]


def create_app(pool: Pool, loop: LoopThread, token: str = "") -> Flask:
    """The Flask application.

    Args:
        pool: the browsers.
        loop: the event loop on which the pool lives.
        token: bearer token that every request must carry; none by default.
    """
    app = Flask("web_server", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    requests = metrics.Requests()
    app.extensions["requests"] = requests
    _Routes(pool, loop, requests).add_to(app)

    @app.before_request
    def admit() -> None:
        g.begun = time.monotonic()
        requests.begin()
        # Browsers name the page that makes them send something; agents' clients do not. So no
        # web page, not even one of this machine's user, can drive a session.
        if request.headers.get("Origin"):
            raise Forbidden("requests from web pages are refused")
        given = request.headers.get("Authorization", "")
        if token and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise Unauthorized("the header `Authorization: Bearer <token>` is missing or wrong")

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
        more = {"observation": error.observation} if error.observation is not None else {}
        response = answer(error.status, error.message, more)
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


def parse(model: type[W]) -> W:
    """The request's body as a wire type.

    Raises:
        BadRequest: it is not JSON, not an object, or a field has the wrong type.
    """
    raw = request.get_data()
    try:
        body = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise BadRequest(f"{where}: {first['msg']}") from None


class _Routes:
    """One method per route."""

    def __init__(self, pool: Pool, loop: LoopThread, requests: metrics.Requests) -> None:
        self._pool = pool
        self._loop = loop
        self._requests = requests
        self._driver = Driver(pool)

    def add_to(self, app: Flask) -> None:
        posts: dict[str, Route] = {
            "getBrowser": self.get_browser,
            "closeBrowser": self.close_browser,
            "renewBrowser": self.renew_browser,
            "openPage": self.open_page,
            "gotoUrl": self.goto_url,
            "getAccessibilityTree": self.observe,
            "performAction": self.perform,
            "takeScreenshot": self.take_screenshot,
            "loadScreenshot": self.load_screenshot,
            "gethtmlcontent": self.html_content,
            "getFile": self.get_file,
        }
        for name, route in posts.items():
            app.add_url_rule(f"/{name}", name, route, methods=["POST"])
        app.add_url_rule("/status", "status", self.status, methods=["GET"])
        app.add_url_rule("/metrics", "metrics", self.metrics, methods=["GET"])

    def _run(self, work: Coroutine[Any, Any, T], seconds: float = REQUEST_SECONDS) -> T:
        try:
            return self._loop.call(work, seconds)
        except TimeoutError:
            raise ServerError(f"the browser did not finish within {seconds:g} s") from None

    def get_browser(self) -> Response:
        wanted = parse(contract.GetBrowser)
        hung_up = request.environ.get("waitress.client_disconnected", lambda: False)
        seconds = self._pool.options.queue_seconds + _QUEUE_EXTRA_SECONDS
        lease = self._run(self._pool.lease(wanted, hung_up), seconds)
        return jsonify(
            {
                "browserId": lease.session.id,
                "expiresAt": lease.expires_at,
                "sandboxUrl": request.url_root.rstrip("/"),
            }
        )

    def close_browser(self) -> Response:
        wanted = parse(contract.BrowserRequest)
        self._run(self._pool.release(_browser_id(wanted)))
        return jsonify({"message": "browser closed"})

    def renew_browser(self) -> Response:
        wanted = parse(contract.RenewBrowser)

        async def renew() -> float:
            return self._pool.renew(_browser_id(wanted), wanted.leaseSeconds).expires_at

        return jsonify({"browserId": wanted.browserId, "expiresAt": self._run(renew())})

    def open_page(self) -> Response:
        wanted = parse(contract.OpenPage)
        options = wanted if wanted.observe else None
        work = self._driver.open_page(_browser_id(wanted), wanted.url, options)
        page_id, view = self._run(work)
        return _reply({"browserId": wanted.browserId, "pageId": page_id}, view)

    def goto_url(self) -> Response:
        wanted = parse(contract.GotoUrl)
        options = wanted if wanted.observe else None
        work = self._driver.goto(_browser_id(wanted), wanted.pageId, wanted.targetUrl, options)
        message, view = self._run(work)
        return _reply({"message": message}, view)

    def observe(self) -> Response:
        wanted = parse(contract.GetAccessibilityTree)
        return jsonify(self._run(self._driver.observe(_browser_id(wanted), wanted.pageId, wanted)))

    def perform(self) -> Response:
        wanted = parse(contract.PerformAction)
        _browser_id(wanted)
        g.action = wanted.actionName[:40]
        message, view = self._run(self._driver.act(wanted), 2 * REQUEST_SECONDS)
        return _reply({"message": message}, view)

    def take_screenshot(self) -> Response:
        wanted = parse(contract.PageRequest)
        image = self._run(self._driver.full_page(_browser_id(wanted), wanted.pageId))
        return Response(image, mimetype="image/png")

    def load_screenshot(self) -> Response:
        wanted = parse(contract.RoundRequest)
        work = self._driver.stored_image(_browser_id(wanted), wanted.pageId, wanted.currentRound)
        image = self._run(work)
        kind = "image/png" if image.startswith(b"\x89PNG") else "image/jpeg"
        return Response(image, mimetype=kind)

    def html_content(self) -> Response:
        wanted = parse(contract.RoundRequest)
        work = self._driver.html(_browser_id(wanted), wanted.pageId, wanted.currentRound)
        html, url = self._run(work)
        return jsonify({"html": html, "url": url})

    def get_file(self) -> Response:
        wanted = parse(contract.GetFile)

        async def read() -> bytes:
            return self._driver.file(wanted.filename)

        content = self._run(read())
        return jsonify({"file": base64.b64encode(content).decode("ascii")})

    def status(self) -> Response:
        async def look() -> dict[str, Any]:
            now = time.time()
            return {
                "version": VERSION,
                "browsers": [
                    {
                        "browserId": browser_id[:8],
                        "expiresAt": lease.expires_at,
                        "pages": len(lease.session.tabs),
                        "idleSeconds": round(now - lease.session.used, 1),
                    }
                    for browser_id, lease in self._pool.leases.items()
                ],
                "free": self._pool.free,
                "waiting": self._pool.waiting,
                "maxBrowsers": self._pool.options.max_browsers,
            }

        return jsonify({**self._run(look()), "memory": tree_bytes()})

    def metrics(self) -> Response:
        async def look() -> dict[str, float]:
            return {
                "browsers_leased": len(self._pool.leases),
                "browsers_free": self._pool.free,
                "callers_waiting": self._pool.waiting,
                "leases_total": self._pool.started,
                "leases_expired_total": self._pool.expired,
                "chromium_crashes_total": self._pool.engine.crashes,
            }

        values = {**self._run(look()), "memory_bytes": tree_bytes()}
        text = metrics.render(values, self._requests)
        return Response(text, content_type=metrics.CONTENT_TYPE)


def _browser_id(wanted: contract.BrowserRequest) -> str:
    if not wanted.browserId.strip():
        raise BadRequest("browserId is missing: call /getBrowser first")
    g.browser = wanted.browserId[:8]
    return wanted.browserId


def _reply(body: dict[str, Any], view: dict[str, Any] | None) -> Response:
    if view is not None:
        body["observation"] = view
    return jsonify(body)
