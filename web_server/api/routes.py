"""What each route does: parse the request, hand the work to the event loop, put up the reply."""

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
from web_server.api.parsing import ignored, parse
from web_server.chromium.loop import LoopThread
from web_server.chromium.memory import TreeMemory
from web_server.errors import BadRequest, NotFound, ServerError, Unavailable
from web_server.operations.driver import Driver
from web_server.pool.pool import Pool
from web_server.session.page_handle import PageHung, PageLost

log = logging.getLogger("web_server")

VERSION = "1.0"
REQUEST_SECONDS = 240.0
_QUEUE_EXTRA_SECONDS = 60.0
_PIECE = 3 * 256 * 1024  # a multiple of three, so that pieces of base64 join
_LOST = "send the request again, cookies and pages are restored"

T = TypeVar("T")
W = TypeVar("W", bound=contract.Wire)
Route = Callable[[], Response]


def _parse(model: type[W]) -> W:
    """The request's body; what it holds beside that is kept for a hint, should it fail."""
    raw = request.get_data()
    wanted = parse(model, raw)
    g.hint = partial(ignored, model, raw)
    return wanted


class Routes:
    """One method per route."""

    def __init__(self, pool: Pool, loop: LoopThread, requests: metrics.Requests) -> None:
        self._pool = pool
        self._loop = loop
        self._requests = requests
        self._driver = Driver(pool)
        self._memory = TreeMemory()

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
        except (Error, PageLost, PageHung) as error:
            # Chromium or its helper process died, and once more while that was being mended.
            log.warning("%s failed", request.path, exc_info=True)
            raise Unavailable(f"the browser was lost meanwhile: {_LOST}", retry_after=1) from error

    def get_browser(self) -> Response:
        wanted = _parse(contract.GetBrowser)
        hung_up = request.environ.get("waitress.client_disconnected", lambda: False)
        seconds = self._pool.options.queue_seconds + _QUEUE_EXTRA_SECONDS
        lease = self._run(self._pool.lease(wanted, hung_up), seconds)
        return jsonify(
            {
                "browserId": lease.session.id,
                "expiresAt": lease.expires_at,
                "sandboxUrl": request.url_root.rstrip("/"),
                "features": contract.FEATURES,
            }
        )

    def close_browser(self) -> Response:
        wanted = _parse(contract.BrowserRequest)
        self._run(self._pool.release(_browser_id(wanted)))
        return jsonify({"message": "browser closed"})

    def renew_browser(self) -> Response:
        wanted = _parse(contract.RenewBrowser)

        async def renew() -> float:
            lease = self._pool.renew(_browser_id(wanted), wanted.leaseSeconds)
            lease.parked = wanted.parked
            return lease.expires_at

        return jsonify({"browserId": wanted.browserId, "expiresAt": self._run(renew())})

    def open_page(self) -> Response:
        wanted = _parse(contract.OpenPage)
        options = wanted if wanted.observe else None
        work = self._driver.open_page(_browser_id(wanted), wanted.url, options)
        page_id, view = self._run(work)
        return _reply({"browserId": wanted.browserId, "pageId": page_id}, view)

    def goto_url(self) -> Response:
        wanted = _parse(contract.GotoUrl)
        options = wanted if wanted.observe else None
        work = self._driver.goto(_browser_id(wanted), wanted.pageId, wanted.targetUrl, options)
        message, view = self._run(work)
        return _reply({"message": message}, view)

    def observe(self) -> Response:
        wanted = _parse(contract.GetAccessibilityTree)
        return jsonify(self._run(self._driver.observe(_browser_id(wanted), wanted.pageId, wanted)))

    def perform(self) -> Response:
        wanted = _parse(contract.PerformAction)
        _browser_id(wanted)
        g.action = wanted.actionName[:40]
        message, view = self._run(self._driver.act(wanted), 2 * REQUEST_SECONDS)
        return _reply({"message": message}, view)

    def describe_action(self) -> Response:
        wanted = _parse(contract.PerformAction)
        _browser_id(wanted)
        return jsonify(self._run(self._driver.describe(wanted)))

    def take_screenshot(self) -> Response:
        wanted = _parse(contract.PageRequest)
        image = self._run(self._driver.full_page(_browser_id(wanted), wanted.pageId))
        return Response(image, mimetype="image/png")

    def load_screenshot(self) -> Response:
        wanted = _parse(contract.RoundRequest)
        work = self._driver.stored_image(_browser_id(wanted), wanted.pageId, wanted.currentRound)
        image = self._run(work)
        kind = "image/png" if image.startswith(b"\x89PNG") else "image/jpeg"
        return Response(image, mimetype=kind)

    def html_content(self) -> Response:
        wanted = _parse(contract.RoundRequest)
        work = self._driver.html(_browser_id(wanted), wanted.pageId, wanted.currentRound)
        html, url = self._run(work)
        return jsonify({"html": html, "url": url})

    def get_file(self) -> Response:
        wanted = _parse(contract.GetFile)

        async def find() -> Path:
            return self._driver.file(wanted.filename)

        try:
            content = self._run(find()).open("rb")
        except OSError:
            raise NotFound("no such file: the browser was closed meanwhile") from None
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
            "requests_at_work": self._requests.at_work,
            "memory_bytes": self._memory.bytes(),
        }
        text = metrics.render(values, self._requests)
        return Response(text, content_type=metrics.CONTENT_TYPE)


def _browser_id(wanted: contract.BrowserRequest) -> str:
    if not wanted.browserId.strip():
        raise BadRequest("browserId is missing: call /getBrowser first")
    g.browser = wanted.browserId[:8]
    return wanted.browserId


def _file_reply(content: BinaryIO) -> Response:
    """A file as `{"file": "<base64>"}`, encoded piece by piece while it is sent."""
    size = os.fstat(content.fileno()).st_size

    def pieces() -> Iterator[bytes]:
        yield b'{"file":"'
        while piece := content.read(_PIECE):
            yield base64.b64encode(piece)
        yield b'"}\n'

    response = Response(pieces(), mimetype="application/json")
    response.content_length = len(b'{"file":""}\n') + 4 * -(-size // 3)
    response.call_on_close(content.close)
    return response


def _reply(body: dict[str, Any], view: dict[str, Any] | None) -> Response:
    if view is not None:
        body["observation"] = view
    return jsonify(body)
