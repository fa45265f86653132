"""One page as a client knows it by its `pageId`.

A client that does not follow tabs stays on one page for ever, so what a page opens comes in its
place: a `Tab` is a stack of surfaces, the pop-up on top of its opener. The opener lives on below
(forms, logins and `window.opener` work), and going back past the pop-up's beginning, or the
pop-up closing itself, leads back to it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from playwright.async_api import Error, Request

from web_server.contract import TabInfo
from web_server.delta import History
from web_server.policy import Policy, normalise_url
from web_server.settle import NAVIGATION_SECONDS
from web_server.surface import Host, PageHung, Surface
from web_server.view import one_line

MAX_DEPTH = 6
"""How many surfaces a page may be stacked of."""
_ERROR_PAGE = "chrome-error://"


class Tab:
    """A page of a session.

    Args:
        page_id: its id on the wire.
        home: the URL it was opened with, where `restart` leads.
        surface: the Playwright page it begins with.
        policy: which URLs it may be sent to.
        host: the session.
    """

    def __init__(
        self, page_id: str, home: str, surface: Surface, policy: Policy, host: Host
    ) -> None:
        self.id = page_id
        self.home = home
        self.surfaces = [surface]
        self.last_url = home
        self.last_title = ""
        self.session_storage: dict[str, str] = {}
        self.failure = ""
        self.discarded: list[Surface] = []
        self.history = History()
        self.remembered_requests = -1
        self._policy = policy
        self._host = host
        self._told: tuple[Surface, int] | None = None

    @property
    def surface(self) -> Surface:
        """The Playwright page that is seen now."""
        return self.surfaces[-1]

    def url(self) -> str:
        """The URL of the document, or of the one that could not be opened."""
        url = self.surface.page.url
        if url.startswith(_ERROR_PAGE):
            return self.surface.activity.unreachable or self.last_url
        return url

    def info(self, *, current: bool) -> TabInfo:
        """How the tab is listed in an observation."""
        url = self.last_url if self.surface.lost else self.url()
        return TabInfo(pageId=self.id, title=self.last_title or url, url=url, current=current)

    async def goto(self, text: str) -> str:
        """Navigate. Faults and refusals do not raise: they are told in the next observation.

        Returns:
            what happened, in a few words.
        """
        url = normalise_url(text)
        self.failure = ""
        refusal = self._policy.refuse_url(url)
        if refusal:
            self.failure = f"{one_line(url)[:300]} was not opened: {refusal}"
            self._host.news.note("blocked: " + self.failure)
            return self.failure
        self.last_url = url
        activity = self.surface.activity
        activity.failure = ""
        activity.patience = 2 * NAVIGATION_SECONDS  # we stop it ourselves
        try:
            reply = await asyncio.wait_for(
                activity.cdp.send("Page.navigate", {"url": url}), NAVIGATION_SECONDS
            )
        except asyncio.TimeoutError:
            await self._stop_loading()
            self.failure = f"{url} did not answer within {NAVIGATION_SECONDS:g} s"
            self._host.news.note(self.failure)
            return self.failure
        except Error as error:
            self.failure = f"{url} was not opened: {protocol_reason(error)}"
            self._host.news.note(self.failure)
            return self.failure
        if reply.get("isDownload"):
            return f"{url} is a download"
        if reply.get("errorText"):
            activity.failure = reply["errorText"]
        return f"went to {url}"

    async def _stop_loading(self) -> None:
        try:
            await asyncio.wait_for(self.surface.activity.cdp.send("Page.stopLoading"), 5)
        except asyncio.TimeoutError:
            raise PageHung from None

    async def go_in_history(self, step: int) -> str:
        """Go back (-1) or forward (1); back past a pop-up's beginning closes it.

        Returns:
            what happened, in a few words.
        """
        cdp = self.surface.activity.cdp
        history = await cdp.send("Page.getNavigationHistory")
        entries: list[dict[str, Any]] = history["entries"]
        index = history["currentIndex"] + step
        if index == 0 and entries[0]["url"] == "about:blank":
            index = -1
        self.failure = ""
        if 0 <= index < len(entries):
            self.surface.activity.expect_navigation()
            await cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[index]["id"]})
            return "went back" if step < 0 else "went forward"
        if step < 0 and len(self.surfaces) > 1:
            self.discarded.append(self.surfaces.pop())
            return "closed the pop-up and went back to the page that opened it"
        return "there is no page to go " + ("back to" if step < 0 else "forward to")

    async def close_discarded(self) -> None:
        """Close the pop-ups that were left by going back."""
        while self.discarded:
            await self.discarded.pop().close()
            await self.surface.page.bring_to_front()

    def push(self, surface: Surface) -> bool:
        """Show a pop-up in place of its opener; False when the stack is full."""
        if len(self.surfaces) >= MAX_DEPTH:
            return False
        self.surfaces.append(surface)
        return True

    async def tell_document(self) -> None:
        """Tell once of a document that came with an HTTP error or did not come at all."""
        activity = self.surface.activity
        if activity.unanswered:
            line, activity.unanswered = activity.unanswered, ""
            self._host.news.note(f"{line}: the page stayed; goto that URL waits longer", loud=True)
        if activity.outside:
            url, activity.outside = one_line(activity.outside)[:300], ""
            line = f"{url} is for another program: nothing was opened"
            self._host.news.note(line, loud=True)
        document = activity.document
        if (document is None and not activity.unreachable) or (
            self._told == (self.surface, activity.commits)
        ):
            return
        self._told = (self.surface, activity.commits)
        self.failure = ""
        status = 0 if document is None else await _status(document)
        if status >= 400 and document is not None:
            self.failure = f"HTTP status {status} at {one_line(document.url)[:300]}"
        elif activity.unreachable:
            reason = activity.failure or "it could not be reached"
            self.failure = f"{activity.unreachable} could not be opened: {reason}"
        if self.failure:
            self._host.news.note(self.failure)


async def _status(document: Request) -> int:
    """The HTTP status of a document; 0 if none came."""
    try:
        response = await asyncio.wait_for(document.response(), 2)
    except (Error, asyncio.TimeoutError):
        return 0
    return 0 if response is None else response.status


def protocol_reason(error: Error) -> str:
    """The browser library's message without its framing and call log."""
    text = error.message.split("\nCall log", 1)[0]
    text = re.sub(r"^.*?Protocol error \([\w.]+\): ", "", text.split(": ", 1)[-1] or text)
    return one_line(text)
