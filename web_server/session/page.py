"""One tab, which the wire calls a page and names by its `pageId`.

A client that does not follow tabs always stays on one page, so pop-ups open in place: a `Tab` is a
stack of pages, with a pop-up on top of its opener. The opener keeps running (forms, logins and
`window.opener` work). Going back past the pop-up's first document, or closing it, shows the opener.
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
"""Most pages in the stack of a tab."""
STAYED = "the page was not left"
"""Message of an action that would have left a page, when the page asked whether to leave it."""
_ERROR_PAGE = "chrome-error://"
_END_SECONDS = 3.0
"""How long a page may take to unload before the server checks that it responds."""
_RESPONSE = (
    "[performance.getEntriesByType('navigation')[0]?.responseStatus || 0, document.contentType]"
)


class Tab:
    """A tab of a session.

    Args:
        page_id: its id on the wire.
        home: the URL it was opened with, for `restart`.
        page_handle: its first page.
        policy: which URLs it may open.
        host: the session.

    Attributes:
        failure: why the last navigation failed, or empty.
        refused: what the policy refused, as `refused` of the observation.
        pdf_due: Chromium cannot show the document, and it is to be downloaded.
        shown_before: id of the tab that was current when this one opened, or empty.
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
        self._reported: tuple[PageHandle, int] | None = None

    @property
    def page_handle(self) -> PageHandle:
        """The page on top of the stack."""
        return self.page_handles[-1]

    def url(self) -> str:
        """Return the URL of the document, or of the one that could not be opened."""
        url = self.page_handle.page.url
        if url.startswith(_ERROR_PAGE):
            return self.page_handle.activity.unreachable or self.last_url
        return url

    def info(self, *, current: bool) -> TabInfo:
        """Return the tab's entry in an observation."""
        url = self.last_url if self.page_handle.lost else self.url()
        return TabInfo(pageId=self.id, title=self.last_title or url, url=url, current=current)

    async def goto(self, text: str) -> str:
        """Navigate. Failures and refusals do not raise: the next observation reports them.

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
        activity.patience = 2 * NAVIGATION_SECONDS  # it is stopped here
        try:
            reply = await self._navigate(url, seconds)
        except asyncio.TimeoutError:
            await self._stop_loading()
            return self._fail(f"{shortened(url)} did not answer within {seconds:.3g} s")
        except Error as error:
            return self._fail(f"{shortened(url)} was not opened: {protocol_reason(error)}")
        if reply.get("isDownload"):
            return f"{shortened(url)} is a download"
        if reply.get("errorText"):
            activity.failure = reply["errorText"]
        if self.page_handle.dialogs.stays > stays:
            self.last_url, activity.failure = before, ""
            return STAYED
        if activity.failure == "net::ERR_ABORTED":
            activity.download_hinted = False
            return self._fail(f"{shortened(url)} led to no page")
        return f"went to {shortened(url)}"

    def _fail(self, line: str) -> str:
        """Report a navigation that left the old document, which is then not reported itself."""
        self.failure = line
        self._reported = (self.page_handle, self.page_handle.activity.commits)
        self._host.pending.note(line)
        return line

    def refuse(self, text: str) -> bool:
        """Return whether the policy refuses a URL, and report it."""
        url = normalise_url(text)
        self.failure, self.refused = "", {}
        refusal = self._policy.refuse_url(url)
        if refusal:
            self.failure = f"{shortened(url)} was not opened: {refusal}"
            self.refused = _refused(url, refusal)
            self._host.pending.note("blocked: " + self.failure)
        return bool(refusal)

    async def _navigate(self, url: str, seconds: float) -> dict[str, Any]:
        """Navigate to a URL, and stop a script that keeps the old page from unloading.

        Raises:
            PageHung: the old page does not respond.
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
        """Go back (-1) or forward (1). Going back past a pop-up's first document closes it.

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

    async def reload(self) -> str:
        """Load the document again; return what happened, in a few words."""
        self.failure = ""
        self.page_handle.activity.expect_navigation()
        await self.page_handle.activity.cdp.send("Page.reload")
        return "loaded the page again"

    async def close_discarded(self) -> None:
        """Close the pop-ups that the client left by going back."""
        while self.discarded:
            await self.discarded.pop().close()
            await self.page_handle.page.bring_to_front()

    def push(self, page_handle: PageHandle) -> bool:
        """Show a pop-up in place of its opener; return False if the stack is full."""
        if len(self.page_handles) >= MAX_DEPTH:
            return False
        self.page_handles.append(page_handle)
        page_handle.is_new = True
        return True

    async def report_document(self) -> None:
        """Report once that a document has an HTTP error, is incomplete or could not be opened."""
        activity = self.page_handle.activity
        if activity.timeout_reason:
            line, activity.timeout_reason = activity.timeout_reason, ""
            self._host.pending.note(f"{line}: the page stayed", in_tree=True)
        if activity.external_link:
            url, activity.external_link = shortened(activity.external_link).replace(" ", "%20"), ""
            line = f"{url} is for another program: nothing was opened"
            self._host.pending.note(line, in_tree=True)
        if self._reported == (self.page_handle, activity.commits):
            return
        self._reported = (self.page_handle, activity.commits)
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
    """Return what the policy refused, for programs; empty for any other reason."""
    if not isinstance(reason, Refusal):
        return {}
    return {"place": place_of(url), "private": reason.private}


async def _answer(page: Page, document: Request | None) -> tuple[int, str]:
    """Return HTTP status and content type of a document; 0 and empty if they are unknown.

    The first request of a new window is not reported. Then the page is asked.
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
        pass  # the page closed or hangs, and the observation finds out
    return 0, ""


def protocol_reason(error: Error) -> str:
    """Return Playwright's message without its prefix and call log."""
    text = error.message.split("\nCall log", 1)[0]
    text = re.sub(r"^.*?Protocol error \([\w.]+\): ", "", text.split(": ", 1)[-1] or text)
    return one_line(text)
