"""The page on which a person sees a leased browser and acts in it: to log in, to solve a captcha.

Its address contains a key that is valid for this one browser, so that the person needs no token.
See `contract.view_path`.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Coroutine
from typing import Any

from flask import Flask, Response, jsonify, request

from web_server import contract
from web_server.api.parsing import parse
from web_server.errors import BadRequest, NotFound
from web_server.javascript import bundle_script
from web_server.operations.driver import Driver
from web_server.pool.pool import Lease, Pool

ENDPOINTS = frozenset({"view", "view_image", "view_input"})
"""The endpoints that check the key of their address themselves."""

_PAGE = """<!doctype html>
<meta charset="utf-8"><title>Browser of a run</title>
<style>body{margin:1em;font:14px sans-serif}img{border:1px solid #888;max-width:100%}</style>
<p>Click the picture and type; the run resumes on this page. <output></output></p>
<img tabindex="0" alt="the page">
<script nonce="NONCE">SCRIPT</script>
"""
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


class Viewer:
    """The routes of the page.

    Args:
        pool: the leased browsers.
        driver: carries out requests.
        run: runs a coroutine on the event loop, and returns its result.
        token: the bearer token of the server; "" for none.
    """

    def __init__(
        self,
        pool: Pool,
        driver: Driver,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
        token: str,
    ) -> None:
        self._pool, self._driver, self._run, self._token = pool, driver, run, token

    def add_to(self, app: Flask) -> None:
        """Add the routes."""
        path = "/view/<name>/<key>"
        app.add_url_rule(path, "view", self.page, methods=["GET"])
        app.add_url_rule(f"{path}/image", "view_image", self.image, methods=["GET"])
        app.add_url_rule(f"{path}/input", "view_input", self.input, methods=["POST"])

    def page(self, name: str, key: str) -> Response:
        """Return the page."""
        self._run(self._find(name, key))
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; "
            "img-src blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        page = _PAGE.replace("NONCE", nonce).replace("SCRIPT", bundle_script("api", ("view",)))
        headers = {**_HEADERS, "Content-Security-Policy": policy}
        return Response(page, mimetype="text/html", headers=headers)

    def image(self, name: str, key: str) -> Response:
        """Return a picture of the visible part of the current page."""

        async def look(lease: Lease) -> bytes:
            return await self._driver.visible_part(lease.session.id)

        image = self._run(self._parked(name, key, look))
        return Response(image, mimetype="image/jpeg", headers=_HEADERS)

    def input(self, name: str, key: str) -> Response:
        """Pass on one click, turn of the wheel, text or key of the person."""
        self._run(self._find(name, key))
        action = _action(parse(contract.ViewInput, request.get_data()))

        async def act(lease: Lease) -> dict[str, Any]:
            named = action.model_copy(update={"browserId": lease.session.id})
            reply, _ = await self._driver.act(named)
            return reply

        return jsonify({"message": self._run(self._parked(name, key, act))["message"]})

    async def _find(self, name: str, key: str) -> Lease:
        """Return the lease for which an address was made.

        Raises:
            NotFound: the address has another key, or the lease ended.
        """
        for browser_id, lease in self._pool.leases.items():
            expected = contract.view_path(self._token, browser_id)
            if hmac.compare_digest(expected.encode(), f"view/{name}/{key}".encode()):
                return lease
        raise NotFound("this browser is closed, or the address is not complete")

    async def _parked(
        self, name: str, key: str, work: Callable[[Lease], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Use a lease without a change of whether it is parked."""
        lease = await self._find(name, key)
        parked = lease.parked
        try:
            return await work(lease)
        finally:
            lease.parked = parked


def _action(given: contract.ViewInput) -> contract.PerformAction:
    """Return the action for an input of the person.

    Raises:
        BadRequest: an unknown kind of input.
    """
    x, y = given.x, given.y
    if given.kind == "click":
        return contract.PerformAction(actionName="click_at", x=x, y=y)
    if given.kind == "wheel":
        return contract.PerformAction(actionName="wheel", x=x, y=y, deltaY=given.deltaY)
    if given.kind == "type":
        return contract.PerformAction(actionName="type_text", text=given.text)
    if given.kind == "press":
        return contract.PerformAction(actionName="press", keys=[given.text])
    raise BadRequest("kind: use click, wheel, type or press")
