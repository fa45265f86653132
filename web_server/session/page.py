"""One page as a client knows it by its `pageId`.

A client that does not follow tabs stays on one page for ever, so what a page opens comes in its
place: a `Tab` is a stack of surfaces, the pop-up on top of its opener. The opener lives on below
(forms, logins and `window.opener` work), and going back past the pop-up's beginning, or the
pop-up closing itself, leads back to it.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from playwright.async_api import Error, Page, Request

from web_server.contract import TabInfo
from web_server.network.policy import Policy, Refusal, normalise_url, place_of
from web_server.observe.page_diff import History
from web_server.session.page_handle import Host, PageHandle, PageHung
from web_server.settle.settle import NAVIGATION_SECONDS
from web_server.view import one_line, shortened

MAX_DEPTH = 6
"""How many surfaces a page may be stacked of."""
STAYED = "the page was not left"
"""What an action says that would have left a page that asked whether to leave it."""
_ERROR_PAGE = "chrome-error://"
_END_SECONDS = 3.0
"""How long a page may take to end before it is asked whether it still responds."""
_RESPONSE = (
    "[performance.getEntriesByType('navigation')[0]?.responseStatus || 0, document.contentType]"
)


class Tab:
    """A page of a session.

    Args:
        page_id: its id on the wire.
        home: the URL it was opened with, where `restart` leads.
        surface: the Playwright page it begins with.
        policy: which URLs it may be sent to.
        host: the session.

    Attributes:
        pdf_due: whether a document came that shows as an empty page, and is to be downloaded.
        shown_before: id of the tab that was the current one when this one opened, or empty.
    """

    def __init__(
        self, page_id: str, home: str, page_handle: PageHandle, policy: Policy, host: Host
    ) -> None:
        self.id = page_id
        self.home = home
        self.page_handles = [page_handle]
        self.last_url = home
        self.last_title = ""
        self.session_storage: dict[str, str] = {}
        self.failure = ""
        self.refused: dict[str, Any] = {}
        self.discarded: list[PageHandle] = []
        self.history = History()
        self.remembered_requests = -1
        self.pdf_due = False
        self.shown_before = ""
        self._policy = policy
        self._host = host
        self._told: tuple[PageHandle, int] | None = None

    @property
    def page_handle(self) -> PageHandle:
        """The Playwright page that is seen now."""
        return self.page_handles[-1]

    def url(self) -> str:
        """The URL of the document, or of the one that could not be opened."""
        url = self.page_handle.page.url
        if url.startswith(_ERROR_PAGE):
            return self.page_handle.activity.unreachable or self.last_url
        return url

    def info(self, *, current: bool) -> TabInfo:
        """How the tab is listed in an observation."""
        url = self.last_url if self.page_handle.lost else self.url()
        return TabInfo(pageId=self.id, title=self.last_title or url, url=url, current=current)

    async def goto(self, text: str) -> str:
        """Navigate. Faults and refusals do not raise: they are told in the next observation.

        Returns:
            what happened, in a few words.
        """
        if self.refuse(text):
            return self.failure
        url = normalise_url(text)
        before, stays = self.last_url, self.page_handle.dialogs.stays
        self.last_url = url
        activity = self.page_handle.activity
        activity.failure = ""
        seconds = self._host.deadline.to_act(NAVIGATION_SECONDS)
        activity.patience = 2 * NAVIGATION_SECONDS  # we stop it ourselves
        try:
            reply = await self._navigate(url, seconds)
        except asyncio.TimeoutError:
            await self._stop_loading()
            self.failure = f"{shortened(url)} did not answer within {seconds:.3g} s"
            self._host.pending.note(self.failure)
            return self.failure
        except Error as error:
            self.failure = f"{shortened(url)} was not opened: {protocol_reason(error)}"
            self._host.pending.note(self.failure)
            return self.failure
        if reply.get("isDownload"):
            return f"{shortened(url)} is a download"
        if reply.get("errorText"):
            activity.failure = reply["errorText"]
        if self.page_handle.dialogs.stays > stays:
            self.last_url, activity.failure = before, ""
            return STAYED
        if activity.failure == "net::ERR_ABORTED":
            activity.download_hinted = False
            self.failure = f"{shortened(url)} led to no page"
            self._host.pending.note(self.failure)
            return self.failure
        return f"went to {shortened(url)}"

    def refuse(self, text: str) -> bool:
        """Report a URL that the policy refuses by its text; whether it is one."""
        url = normalise_url(text)
        self.failure, self.refused = "", {}
        refusal = self._policy.refuse_url(url)
        if refusal:
            self.failure = f"{shortened(url)} was not opened: {refusal}"
            self.refused = _refused(url, refusal)
            self._host.pending.note("blocked: " + self.failure)
        return bool(refusal)

    async def _navigate(self, url: str, seconds: float) -> dict[str, Any]:
        """Ask for a URL. A script that holds up the end of the old page is stopped.

        Raises:
            PageHung: the old page does not respond, and does not end.
        """
        page_handle = self.page_handle
        asked = asyncio.ensure_future(page_handle.activity.cdp.send("Page.navigate", {"url": url}))
        end = time.monotonic() + seconds
        try:
            await asyncio.wait({asked}, timeout=min(seconds, _END_SECONDS))
            if not asked.done() and not await page_handle.activity.awaits_response():
                await page_handle.stop_long_script()
            reply: dict[str, Any] = await asyncio.wait_for(asked, end - time.monotonic())
            return reply
        finally:
            asked.cancel()

    async def _stop_loading(self) -> None:
        try:
            await asyncio.wait_for(self.page_handle.activity.cdp.send("Page.stopLoading"), 2)
        except asyncio.TimeoutError:
            raise PageHung from None

    async def go_in_history(self, step: int) -> str:
        """Go back (-1) or forward (1); back past a pop-up's beginning closes it.

        Returns:
            what happened, in a few words.
        """
        cdp = self.page_handle.activity.cdp
        history = await cdp.send("Page.getNavigationHistory")
        entries: list[dict[str, Any]] = history["entries"]
        index = history["currentIndex"] + step
        if index == 0 and entries[0]["url"] == "about:blank":
            index = -1
        self.failure = ""
        if 0 <= index < len(entries):
            self.page_handle.activity.expect_navigation()
            await cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[index]["id"]})
            return "went back" if step < 0 else "went forward"
        if step < 0 and len(self.page_handles) > 1:
            self.discarded.append(self.page_handles.pop())
            return "closed the pop-up and went back to the page that opened it"
        return "there is no page to go " + ("back to" if step < 0 else "forward to")

    async def close_discarded(self) -> None:
        """Close the pop-ups that were left by going back."""
        while self.discarded:
            await self.discarded.pop().close()
            await self.page_handle.page.bring_to_front()

    def push(self, page_handle: PageHandle) -> bool:
        """Show a pop-up in place of its opener; False when the stack is full."""
        if len(self.page_handles) >= MAX_DEPTH:
            return False
        self.page_handles.append(page_handle)
        page_handle.is_new = True
        return True

    async def report_document(self) -> None:
        """Tell once of a document that came with an HTTP error or did not come at all."""
        activity = self.page_handle.activity
        if activity.timeout_reason:
            line, activity.timeout_reason = activity.timeout_reason, ""
            self._host.pending.note(f"{line}: the page stayed", in_tree=True)
        if activity.external_link:
            url, activity.external_link = shortened(activity.external_link).replace(" ", "%20"), ""
            line = f"{url} is for another program: nothing was opened"
            self._host.pending.note(line, in_tree=True)
        if self._told == (self.page_handle, activity.commits):
            return
        self._told = (self.page_handle, activity.commits)
        document = activity.document
        if document is not None or activity.unreachable:
            self.failure = ""
        status, kind = await _answer(self.page_handle.page, document)
        self.pdf_due = status < 400 and kind.lower().startswith("application/pdf")
        if status >= 400:
            url = self.url() if document is None else document.url
            self.failure = f"HTTP status {status} at {shortened(url)}"
            reason = self._host.unreached(url)
            self.refused = _refused(url, reason)
            if self.refused:
                self.failure = f"{shortened(url)} was not opened: {reason}"
        elif activity.unreachable:
            url = activity.unreachable
            reason = self._host.unreached(url) or activity.failure
            self.failure = f"{shortened(url)} could not be opened" + (reason and f": {reason}")
            self.refused = _refused(url, reason)
        elif activity.incomplete_reason:
            self.failure = (
                f"{shortened(self.url())} broke off before its end: {activity.incomplete_reason}"
            )
        else:
            return
        self._host.pending.note(self.failure)


def _refused(url: str, reason: str) -> dict[str, Any]:
    """What the policy refused, for programs; empty where the reason is another."""
    if not isinstance(reason, Refusal):
        return {}
    return {"place": place_of(url), "private": reason.private}


async def _answer(page: Page, document: Request | None) -> tuple[int, str]:
    """HTTP status and content type of a document; 0 and empty if none came.

    Of what a new window began with no request is known: then the page itself is asked.
    """
    try:
        if document is not None:
            response = await asyncio.wait_for(document.response(), 2)
            if response is not None:
                return response.status, response.headers.get("content-type", "")
        elif page.url.startswith("http"):
            status, kind = await asyncio.wait_for(page.evaluate(_RESPONSE), 2)
            return status, kind
    except (Error, asyncio.TimeoutError):
        pass  # it went away, or does not answer, which whoever looks at it will find
    return 0, ""


def protocol_reason(error: Error) -> str:
    """The browser library's message without its framing and call log."""
    text = error.message.split("\nCall log", 1)[0]
    text = re.sub(r"^.*?Protocol error \([\w.]+\): ", "", text.split(": ", 1)[-1] or text)
    return one_line(text)
