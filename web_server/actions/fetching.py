"""Request an address through the session: its cookies, proxy, policy and limits, without cache.

A separate page goes to the address. The method, the body and the headers are set on the way, and
the response is read before the page would show it. So redirects are followed as always.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Coroutine, Mapping
from typing import Any
from urllib.parse import urljoin

from playwright.async_api import CDPSession, Error

from web_server.actions.saving import header_of, navigation
from web_server.errors import BadRequest, Conflict
from web_server.network.policy import normalise_url
from web_server.session.page import Tab, protocol_reason
from web_server.session.session import Session
from web_server.view import one_line, shortened

FETCH_SECONDS = 60.0
"""Limit for one request and its response."""
MAX_TEXT = 10_000_000
"""Limit for the response in bytes."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_REDIRECTS = (301, 302, 303, 307, 308)
_PROXY_FAILURES = (403, 502, 504)
_RELATIVE = ("/", "?")
_CHUNK = 1_000_000


async def fetch_address(
    session: Session, tab: Tab, url: str, method: str, body: str, headers: Mapping[str, Any]
) -> dict[str, Any]:
    """Request an address and return its response.

    Args:
        session: the leased browser.
        tab: the page that the request comes from, as the referrer and the origin.
        url: the address, also relative to the page.
        method: one of METHODS, in any case; empty for GET.
        body: the body of the request.
        headers: further headers.

    Returns:
        `status`, `url` (after redirects), `type` and `text`.

    Raises:
        BadRequest: the method is unknown.
        Conflict: the policy refuses the address, or there is no response within the limits.
    """
    method = method.strip().upper() or "GET"
    if method not in METHODS:
        raise BadRequest(f"method must be one of {', '.join(METHODS)}; not '{one_line(method)}'")
    url = urljoin(tab.url(), url) if url.startswith(_RELATIVE) else normalise_url(url)
    if refusal := session.policy.refuse_url(url):
        raise Conflict(f"{shortened(url)} was not requested: {refusal}")
    async with session.extra_page() as page_handle:
        request = {"method": method, "body": body, "headers": dict(headers)}
        fetching = _Fetching(page_handle.activity.cdp, request, tab.url())
        try:
            found = await asyncio.wait_for(fetching.run(url), FETCH_SECONDS)
        except asyncio.TimeoutError:
            found = f"no response within {FETCH_SECONDS:g} s"
        except Error as error:
            found = protocol_reason(error)
        lost = session.unreached(fetching.url or url)
        if isinstance(found, str) or (lost and found["status"] in _PROXY_FAILURES):
            reason = lost or found
            raise Conflict(f"{shortened(url)} was not requested: {reason}")
        return found


class _Fetching:
    """One request by a separate page.

    Args:
        cdp: the debugging session of the page.
        request: method, body and headers.
        origin: address of the page that the request comes from.

    Attributes:
        url: the last address that was requested.
    """

    def __init__(self, cdp: CDPSession, request: dict[str, Any], origin: str) -> None:
        self._cdp = cdp
        self._given: dict[str, Any] | None = request
        self._origin = origin
        self._tasks: set[asyncio.Future[Any]] = set()
        self._found: asyncio.Future[dict[str, Any] | str] = (
            asyncio.get_running_loop().create_future()
        )
        self.url = ""

    async def run(self, url: str) -> dict[str, Any] | str:
        """Return the response, or why there is none."""
        self._cdp.on("Fetch.requestPaused", self._on_paused)
        await self._cdp.send("Network.enable")
        await self._cdp.send("Network.setBypassServiceWorker", {"bypass": True})
        await self._cdp.send("Network.setCacheDisabled", {"cacheDisabled": True})
        stages = [{"requestStage": stage} for stage in ("Request", "Response")]
        await self._cdp.send("Fetch.enable", {"patterns": stages})
        going = self._cdp.send("Page.navigate", navigation(url, self._origin))
        self._start(self._report_failure(going))
        return await self._found

    async def _report_failure(self, going: Coroutine[Any, Any, dict[str, Any]]) -> None:
        reply = await going
        if reply.get("errorText") and not self._found.done():
            self._found.set_result(str(reply["errorText"]))

    def _on_paused(self, event: dict[str, Any]) -> None:
        self._start(self._answer(event))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self._found.done():
            self._found.set_exception(error)

    async def _answer(self, event: dict[str, Any]) -> None:
        """Complete the request, follow a redirect, or read the response."""
        this = {"requestId": event["requestId"]}
        status = event.get("responseStatusCode")
        if event.get("responseErrorReason") is not None:
            await self._cdp.send("Fetch.continueRequest", this)
        elif status is None:
            self.url = event["request"]["url"]
            await self._cdp.send("Fetch.continueRequest", {**this, **self._changes(event)})
        elif status in _REDIRECTS and header_of(event.get("responseHeaders") or [], "location"):
            location = header_of(event["responseHeaders"], "location")
            self.url = urljoin(event["request"]["url"], location)
            await self._cdp.send("Fetch.continueRequest", this)
        else:
            found = await self._response(event, status)
            await self._cdp.send("Fetch.failRequest", {**this, "errorReason": "Aborted"})
            if not self._found.done():
                self._found.set_result(found)

    def _changes(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return the method, body and headers of the first request; later ones follow redirects."""
        given, self._given = self._given, None
        if given is None:
            return {}
        headers = {**event["request"]["headers"]}
        if given["method"] not in ("GET", "HEAD") and (origin := _origin(self._origin)):
            headers["Origin"] = origin
        lower = {str(name).lower() for name in given["headers"]}
        headers = {name: text for name, text in headers.items() if name.lower() not in lower}
        headers |= {str(name): str(text) for name, text in given["headers"].items()}
        changes: dict[str, Any] = {
            "method": given["method"],
            "headers": [{"name": name, "value": text} for name, text in headers.items()],
        }
        if given["body"]:
            changes["postData"] = base64.b64encode(given["body"].encode()).decode()
        return changes

    async def _response(self, event: dict[str, Any], status: int) -> dict[str, Any] | str:
        kind = header_of(event.get("responseHeaders") or [], "content-type")
        facts = {"status": status, "url": event["request"]["url"], "type": kind}
        if event["request"]["method"] == "HEAD" or status in (204, 205, 304):
            return {**facts, "text": ""}
        stream = await self._cdp.send(
            "Fetch.takeResponseBodyAsStream", {"requestId": event["requestId"]}
        )
        content = bytearray()
        while True:
            chunk = await self._cdp.send("IO.read", {"handle": stream["stream"], "size": _CHUNK})
            data = chunk["data"]
            content += base64.b64decode(data) if chunk.get("base64Encoded") else data.encode()
            if len(content) > MAX_TEXT:
                return f"the response is larger than {MAX_TEXT:,} bytes: save the URL as a file"
            if chunk["eof"]:
                return {**facts, "text": _decoded(bytes(content), kind)}


def _origin(url: str) -> str:
    found = re.match(r"https?://[^/?#]+", url)
    return found[0] if found else ""


def _decoded(content: bytes, kind: str) -> str:
    charset = re.search(r"charset=\"?([\w-]+)", kind)
    try:
        return content.decode(charset[1] if charset else "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")
