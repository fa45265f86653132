"""Save the file at a URL, with the session's cookies, proxy, policy and limits.

A separate page navigates there. The response headers are changed so that Chromium downloads what it
would show. The file is never held in memory, and Chromium follows redirects as usual.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urljoin

from playwright.async_api import CDPSession, Error

from web_server.contract import Download
from web_server.errors import Conflict
from web_server.network.policy import normalise_url
from web_server.session.page import Tab, protocol_reason
from web_server.session.page_handle import PageHandle
from web_server.session.session import Session
from web_server.view import one_line, shortened

SAVE_SECONDS = 100.0
"""Time limit of the response and the download together."""
_ATTACHMENT = "attachment"
_NO_CONTENT = (204, 205)


async def save_address(session: Session, tab: Tab, text: str) -> str:
    """Download the file at a URL.

    Args:
        session: the leased browser, which lists the file among its downloads.
        tab: the page that refers to the URL.
        text: the URL.

    Returns:
        one line with the file's name, size and type.

    Raises:
        Conflict: the policy refuses the URL, or the server sends no file.
    """
    url = normalise_url(text)
    refusal = session.policy.refuse_url(url)
    if refusal:
        raise Conflict(f"{shortened(url)} was not saved: {refusal}")
    async with session.extra_page() as page_handle:
        saving = _Saving(page_handle)
        began = session.downloads.expect(page_handle.activity.frame_id)
        try:
            download = await asyncio.wait_for(saving.run(url, tab.url(), began), SAVE_SECONDS)
        except asyncio.TimeoutError:
            reason = f"it did not arrive within {SAVE_SECONDS:g} s"
            raise Conflict(f"{shortened(url)} was not saved: {reason}") from None
        except Error as error:
            reason = session.unreached(saving.url or url) or protocol_reason(error)
            raise Conflict(f"{shortened(url)} was not saved: {reason}") from None
        finally:
            session.downloads.expect_no_more(page_handle.activity.frame_id)
    if isinstance(download, str):
        reason = (
            session.unreached(saving.url or url) or page_handle.activity.timeout_reason or download
        )
        raise Conflict(f"{shortened(url)} was not saved: {reason}")
    kind = f", {saving.kind}" if saving.kind else ""
    return f"saved {download.name} ({download.size:,} bytes{kind}) from {shortened(url)}"


class _Saving:
    """The download of one URL in a separate page.

    Attributes:
        kind: content type of the response; empty before it.
        url: the URL that redirects led to; empty without redirects.
    """

    def __init__(self, page_handle: PageHandle) -> None:
        self._cdp: CDPSession = page_handle.activity.cdp
        self._tasks: set[asyncio.Future[Any]] = set()
        self._refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.kind = ""
        self.url = ""

    async def run(
        self, url: str, referrer: str, began: asyncio.Future[Download | str]
    ) -> Download | str:
        """Return the download, or the reason why it failed."""
        self._cdp.on("Fetch.requestPaused", self._on_paused)
        await self._cdp.send("Network.enable")
        await self._cdp.send("Network.setBypassServiceWorker", {"bypass": True})
        patterns = [{"resourceType": "Document", "requestStage": "Response"}]
        await self._cdp.send("Fetch.enable", {"patterns": patterns})
        reply = await self._cdp.send("Page.navigate", navigation(url, referrer))
        if self._refused.done():
            return self._refused.result()
        if not reply.get("isDownload"):
            return reply.get("errorText") or "it led to a page that cannot be saved"
        return await began

    def _on_paused(self, event: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._answer(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, event: dict[str, Any]) -> None:
        """Continue a paused response, as a download."""
        request_id, status = event["requestId"], event.get("responseStatusCode", 0)
        headers = event.get("responseHeaders") or []
        try:
            if not status or 300 <= status < 400:
                self.url = urljoin(event["request"]["url"], header_of(headers, "location"))
                await self._cdp.send("Fetch.continueRequest", {"requestId": request_id})
            elif status >= 400 or status in _NO_CONTENT:
                if not self._refused.done():
                    self._refused.set_result(f"HTTP status {status}")
                reason = {"requestId": request_id, "errorReason": "Aborted"}
                await self._cdp.send("Fetch.failRequest", reason)
            else:
                self.kind = one_line(header_of(headers, "content-type").partition(";")[0])[:80]
                changed = {"responseCode": status, "responseHeaders": as_download(headers)}
                await self._cdp.send("Fetch.continueResponse", {"requestId": request_id, **changed})
        except Error:
            pass  # the page closed


def navigation(url: str, referrer: str) -> dict[str, str]:
    """Return the arguments of `Page.navigate`."""
    if not referrer.startswith(("http:", "https:")):
        return {"url": url}
    policy = "strictOriginWhenCrossOrigin"
    return {"url": url, "referrer": referrer, "referrerPolicy": policy}


def header_of(headers: list[dict[str, str]], name: str) -> str:
    """Return the first header of that name; empty if there is none."""
    return next((each["value"] for each in headers if each["name"].lower() == name), "")


def as_download(headers: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return response headers that make a browser download the response under the same name."""
    given = header_of(headers, "content-disposition")
    name = re.sub(r"^\s*[\w-]+\s*(?=;|$)", "", given)
    others = [each for each in headers if each["name"].lower() != "content-disposition"]
    return [*others, {"name": "Content-Disposition", "value": f"{_ATTACHMENT}{name}"}]
