"""The routes: parse the request, run the work on the event loop, build the response."""

from __future__ import annotations

import base64
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from flask import Flask, Response, g, jsonify, request
from playwright.async_api import Error

from web_server import contract
from web_server.api import metrics
from web_server.api.parsing import parse, unknown_fields
from web_server.api.viewer import Viewer
from web_server.chromium.loop import LoopThread
from web_server.chromium.memory import TreeMemory
from web_server.errors import BadRequest, NotFound, ServerError, Unavailable
from web_server.operations.driver import Driver
from web_server.pool.pool import Pool
from web_server.session.page_handle import PageHung, PageLost
from web_server.session.secret_book import SecretBook

log = logging.getLogger("web_server")

VERSION = "1.0"
REQUEST_SECONDS = 240.0
_QUEUE_EXTRA_SECONDS = 60.0
_CHUNK = 3 * 256 * 1024  # a multiple of three, so that chunks of base64 can be joined
_LOST = "send the request again; cookies and pages are restored"

T = TypeVar("T")
W = TypeVar("W", bound=contract.Wire)
Route = Callable[[], Response]


def _parse(model: type[W]) -> W:
    """Parse the body of the request; a later error response mentions unknown fields."""
    raw = request.get_data()
    body = parse(model, raw)
    g.hint = partial(unknown_fields, model, raw)
    return body


class Routes:
    """One method per route."""

    def __init__(
        self, pool: Pool, loop: LoopThread, requests: metrics.Requests, token: str = ""
    ) -> None:
        self._pool = pool
        self._loop = loop
        self._requests = requests
        self._driver = Driver(pool)
        self._memory = TreeMemory()
        self._viewer = Viewer(pool, self._driver, self._run, token)

    def add_to(self, app: Flask) -> None:
        posts: dict[str, Route] = {
            "getBrowser": self.get_browser,
            "closeBrowser": self.close_browser,
            "renewBrowser": self.renew_browser,
            "openPage": self.open_page,
            "gotoUrl": self.goto_url,
            "getAccessibilityTree": self.observe,
            "describeAction": self.describe_action,
            "performAction": self.perform,
            "takeScreenshot": self.take_screenshot,
            "takePicture": self.take_picture,
            "loadScreenshot": self.load_screenshot,
            "gethtmlcontent": self.html_content,
            "getFile": self.get_file,
        }
        for name, route in posts.items():
            app.add_url_rule(f"/{name}", name, route, methods=["POST"])
        app.add_url_rule("/status", "status", self.status, methods=["GET"])
        app.add_url_rule("/metrics", "metrics", self.metrics, methods=["GET"])
        self._viewer.add_to(app)

    def _run(self, work: Coroutine[Any, Any, T], seconds: float = REQUEST_SECONDS) -> T:
        secrets = self._secrets()
        try:
            result: T = secrets.masked(self._loop.call(work, seconds))
            return result
        except ServerError as error:
            error.message = secrets.masked(error.message)
            error.observation = secrets.masked(error.observation)
            raise
        except TimeoutError:
            raise ServerError(f"the browser did not finish within {seconds:g} s") from None
        except (Error, PageLost, PageHung) as error:
            # Chromium or Playwright's process ended, and again during the recovery.
            log.warning("%s failed", request.path, exc_info=True)
            raise Unavailable(f"the browser crashed: {_LOST}", retry_after=1) from error

    def _secrets(self) -> SecretBook:
        """Return the secrets of the request's browser; they are masked in its replies."""
        lease = self._pool.leases.get(g.get("leased", ""))
        return lease.session.secrets if lease is not None else SecretBook()

    def get_browser(self) -> Response:
        body = _parse(contract.GetBrowser)
        hung_up = request.environ.get("waitress.client_disconnected", lambda: False)
        seconds = self._pool.options.queue_seconds + _QUEUE_EXTRA_SECONDS
        lease = self._run(self._pool.lease(body, hung_up), seconds)
        return jsonify(
            {
                "browserId": lease.session.id,
                "expiresAt": lease.expires_at,
                "sandboxUrl": request.url_root.rstrip("/"),
                "features": contract.FEATURES,
            }
        )

    def close_browser(self) -> Response:
        body = _parse(contract.BrowserRequest)
        self._run(self._pool.release(_browser_id(body)))
        return jsonify({"message": "browser closed"})

    def renew_browser(self) -> Response:
        body = _parse(contract.RenewBrowser)

        async def renew() -> float:
            lease = self._pool.renew(_browser_id(body), body.leaseSeconds)
            lease.parked = body.parked
            return lease.expires_at

        return jsonify({"browserId": body.browserId, "expiresAt": self._run(renew())})

    def open_page(self) -> Response:
        body = _parse(contract.OpenPage)
        options = body if body.observe else None
        work = self._driver.open_page(_browser_id(body), body.url, options)
        page_id, view = self._run(work)
        return _reply({"browserId": body.browserId, "pageId": page_id}, view)

    def goto_url(self) -> Response:
        body = _parse(contract.GotoUrl)
        options = body if body.observe else None
        work = self._driver.goto(_browser_id(body), body.pageId, body.targetUrl, options)
        message, view = self._run(work)
        return _reply({"message": message}, view)

    def observe(self) -> Response:
        body = _parse(contract.GetAccessibilityTree)
        return jsonify(self._run(self._driver.observe(_browser_id(body), body.pageId, body)))

    def perform(self) -> Response:
        body = _parse(contract.PerformAction)
        _browser_id(body)
        g.action = body.actionName[:40]
        reply, view = self._run(self._driver.act(body), 2 * REQUEST_SECONDS)
        return _reply(reply, view)

    def describe_action(self) -> Response:
        body = _parse(contract.PerformAction)
        _browser_id(body)
        return jsonify(self._run(self._driver.describe(body)))

    def take_screenshot(self) -> Response:
        body = _parse(contract.PageRequest)
        image = self._run(self._driver.full_page(_browser_id(body), body.pageId))
        return Response(image, mimetype="image/png")

    def take_picture(self) -> Response:
        body = _parse(contract.PerformAction)
        _browser_id(body)
        return jsonify(self._run(self._driver.step_picture(body)))

    def load_screenshot(self) -> Response:
        body = _parse(contract.RoundRequest)
        work = self._driver.stored_image(_browser_id(body), body.pageId, body.currentRound)
        image = self._run(work)
        kind = "image/png" if image.startswith(b"\x89PNG") else "image/jpeg"
        return Response(image, mimetype=kind)

    def html_content(self) -> Response:
        body = _parse(contract.RoundRequest)
        work = self._driver.html(_browser_id(body), body.pageId, body.currentRound)
        html, url = self._run(work)
        return jsonify({"html": html, "url": url})

    def get_file(self) -> Response:
        body = _parse(contract.GetFile)

        async def find() -> Path:
            return self._driver.file(body.filename)

        try:
            content = self._run(find()).open("rb")
        except OSError:
            raise NotFound("the file is not available: the browser was closed") from None
        return _file_reply(content)

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
                        "parked": lease.parked,
                        "idleSeconds": round(now - lease.session.used, 1),
                    }
                    for browser_id, lease in self._pool.leases.items()
                ],
                "free": self._pool.free,
                "waiting": self._pool.waiting,
                "maxBrowsers": self._pool.options.max_browsers,
                "sandbox": self._pool.engines.sandbox,
            }

        return jsonify({**self._run(look()), "memory": self._memory.bytes()})

    def metrics(self) -> Response:
        async def look() -> dict[str, float]:
            return {
                "browsers_leased": len(self._pool.leases),
                "browsers_free": self._pool.free,
                "callers_waiting": self._pool.waiting,
                "leases_total": self._pool.started,
                "leases_expired_total": self._pool.expired,
                "chromium_crashes_total": self._pool.engines.crashes,
            }

        values = {
            **self._run(look()),
            "requests_at_work": self._requests.in_progress,
            "memory_bytes": self._memory.bytes(),
        }
        text = metrics.render(values, self._requests)
        return Response(text, content_type=metrics.CONTENT_TYPE)


def _browser_id(body: contract.BrowserRequest) -> str:
    if not body.browserId.strip():
        raise BadRequest("browserId is missing: call /getBrowser first")
    g.browser = body.browserId[:8]
    g.leased = body.browserId.strip()
    return body.browserId


def _file_reply(content: BinaryIO) -> Response:
    """Return a file as `{"file": "<base64>"}`, encoded in chunks while it is sent."""
    size = os.fstat(content.fileno()).st_size

    def chunks() -> Iterator[bytes]:
        yield b'{"file":"'
        while chunk := content.read(_CHUNK):
            yield base64.b64encode(chunk)
        yield b'"}\n'

    response = Response(chunks(), mimetype="application/json")
    response.content_length = len(b'{"file":""}\n') + 4 * -(-size // 3)
    response.call_on_close(content.close)
    return response


def _reply(reply: dict[str, Any], view: dict[str, Any] | None) -> Response:
    if view is not None:
        reply["observation"] = view
    return jsonify(reply)
