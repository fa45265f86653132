"""What a page is busy with, heard from its events: navigations, requests, frames, windows.

Nothing here waits for the page to do anything; that is `settle`. A navigation that nobody answers
is given up, so that the page that it would leave is of use meanwhile.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from playwright.async_api import CDPSession, Error, Page, Request

from web_server.chromium.external_links import leads_outside
from web_server.view import one_line

ANSWER_SECONDS = 12.0
"""How long a page may wait for another that it leads to; Chromium answers nothing meanwhile."""
REQUESTED_SECONDS = 0.5
"""How long a navigation that a page announced may take to send its request."""
RESTLESS_AFTER = 4
"""So often a URL may be asked for while one action settles, until it counts as polling."""

_ABORTED = "ERR_ABORTED"
_NO_CONTENT = (204, 205)
_ANSWER_KNOWN_SECONDS = 1.0
_RELOAD_SECONDS = 2.0
_ANSWER_SOON_SECONDS = 0.2
_AWAITED = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})


def _call_weakly(method: weakref.WeakMethod[Any], argument: weakref.ref[Any]) -> None:
    called, given = method(), argument()
    if called is not None and given is not None:
        called(given)


class Activity:
    """What a page is busy with.

    Args:
        page: the page to listen to.

    Attributes:
        patience: how long, in seconds, a navigation of the main frame may stay unanswered.
        frame_id: DevTools id of the main frame; another process may take it over under a new one.
        commits: how many documents have come into the main frame.
        dom_ready: whether the document that came last has been read to its end.
        loaded: whether it has had its event `load`.
        document: the request that brought it, if there was one.
        unreachable: its URL if an error page stands in its place, else empty.
        broken: why the document came in part only, or empty.
        failure: why a navigation since `begin` came to nothing, or empty.
        unanswered: what is to be told of a navigation that was given up, or empty.
        outside: a link that was for another program, if it is not told yet, or empty.
        download_hinted: whether something since `begin` seems to have become a download.
        windows_due: how many windows have been opened that are no pages yet.
        requests: how many requests the page has ever made.
        departures: how many navigations of the main frame the page began since `begin`.
        frames: DevTools ids of all its frames.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession | None = None
        self._changed = asyncio.Event()
        self._in_flight: set[Request] = set()
        self._pictures: set[Request] = set()
        self._restless: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._announced = 0.0
        self._navigation: Request | None = None
        self._failed: Request | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        self.patience = ANSWER_SECONDS
        self.frame_id = ""
        self.commits = 0
        self.dom_ready = True
        self.loaded = True
        self.document: Request | None = None
        self.unreachable = ""
        self.broken = ""
        self.failure = ""
        self.unanswered = ""
        self.outside = ""
        self.download_hinted = False
        self.windows_due = 0
        self.requests = 0
        self.departures = 0
        self.frames: set[str] = set()

    @property
    def cdp(self) -> CDPSession:
        """The DevTools session of the page; only after `attach`."""
        assert self._cdp is not None
        return self._cdp

    async def attach(self) -> None:
        """Begin to listen. To be called once, before the page goes anywhere."""
        page = self._page
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_request_end)
        page.on("requestfailed", self._on_request_failed)
        cdp = await page.context.new_cdp_session(page)
        self._cdp = cdp
        cdp.on("Page.frameRequestedNavigation", self._on_announced)
        cdp.on("Page.windowOpen", self._on_window_open)
        cdp.on("Page.frameNavigated", self._on_navigated)
        cdp.on("Page.frameAttached", lambda event: self.frames.add(event["frameId"]))
        cdp.on("Page.frameDetached", self._on_detached)
        cdp.on("Page.navigatedWithinDocument", self._on_same_document)
        cdp.on("Page.domContentEventFired", self._on_read)
        cdp.on("Page.loadEventFired", self._on_loaded)
        # With keys kept by us, of which there are none, Chromium does not ask a person for one: by
        # a window that nobody sees and that takes all clicks.
        await asyncio.gather(cdp.send("Page.enable"), cdp.send("WebAuthn.enable"))
        tree = await cdp.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]
        self.frame_id = frame["id"]
        self.unreachable = frame.get("unreachableUrl", "")  # of a window that began with it
        self.frames.add(self.frame_id)

    def begin(self) -> None:
        """An action begins: what was under way before is no doing of it."""
        self.failure = ""
        self.patience = ANSWER_SECONDS
        self.download_hinted = False
        self._asked.clear()
        self._announced = 0.0
        self.departures = 0
        self.windows_due = 0
        self._in_flight.clear()
        self._pictures.clear()

    # --- what there is to wait for ---

    @property
    def navigating(self) -> bool:
        """Whether a navigation of the main frame is under way."""
        if self._navigation is not None:
            return True
        return 0 < time.monotonic() - self._announced < REQUESTED_SECONDS

    @property
    def awaited(self) -> list[Request]:
        """Requests in flight since `begin` that are not known to go on for ever."""
        return [
            request
            for request in self._in_flight
            if self._restless[_key(request)] == 0 and self._asked[_key(request)] < RESTLESS_AFTER
        ]

    @property
    def pictures(self) -> bool:
        """Whether pictures that were asked for since `begin` are on their way."""
        return bool(self._pictures)

    def leave_out(self, requests: Iterable[Request]) -> None:
        """Await requests of such URLs no more, for as long as the document lives."""
        self._restless.update(_key(request) for request in requests)

    @property
    def told(self) -> bool:
        """Whether anything was heard since `until` waited last."""
        return self._changed.is_set()

    async def until(self, condition: Callable[[], bool], deadline: float) -> bool:
        """Wait for events until `condition()` holds; False when the deadline came first.

        Args:
            condition: asked after each event.
            deadline: by the monotonic clock.
        """
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.clear()
            # An announced navigation lapses without an event, so look again after a while.
            limit = min(left, REQUESTED_SECONDS) if self._announced else left
            try:
                await asyncio.wait_for(self._changed.wait(), limit)
            except asyncio.TimeoutError:
                continue
        return True

    def expect_navigation(self) -> None:
        """To be called before what navigates without the page's doing, such as going back."""
        self._announced = time.monotonic()

    def window_opened(self) -> None:
        """To be called when a pop-up of this page has become a page."""
        self.windows_due = max(0, self.windows_due - 1)
        self._changed.set()

    # --- requests ---

    def _on_request(self, request: Request) -> None:
        if leads_outside(request.url):
            return  # nothing comes of it, and it was announced
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self._navigation = request
            self._failed = None
            self._announced = 0.0
            # weakly: a timer must not keep a closed session for as long as it runs
            give_up = weakref.WeakMethod(self._give_up), weakref.ref(request)
            asyncio.get_running_loop().call_later(self.patience, _call_weakly, *give_up)
        self.requests += 1
        if request.resource_type in _AWAITED:
            self._in_flight.add(request)
            self._asked[_key(request)] += 1
        elif request.resource_type == "image":
            self._pictures.add(request)
        self._changed.set()

    def _give_up(self, request: Request) -> None:
        """Stop a navigation that nobody answers: the page that is left is of use meanwhile."""
        if request is not self._navigation:
            return
        self._navigation = None
        self.unanswered = f"{one_line(request.url)[:300]} did not answer within {self.patience:g} s"
        task = asyncio.ensure_future(self.stop_loading())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def stop_scripts(self) -> None:
        """Stop what the page loads, and run none of its scripts from now on."""
        try:
            await self.cdp.send("Emulation.setScriptExecutionDisabled", {"value": True})
        except Error:
            pass  # as below
        await self.stop_loading()
        if self.loaded:
            return
        # The document was stopped half read. Without its scripts it can be read to its end.
        commits = self.commits
        with suppress(Error):
            await self.cdp.send("Page.reload")
        end = time.monotonic() + _RELOAD_SECONDS
        await self.until(lambda: self.commits > commits and self.dom_ready, end)
        await self.stop_loading()

    async def stop_loading(self) -> None:
        """Stop what the page loads, and the navigation that it began."""
        try:
            await self.cdp.send("Page.stopLoading")
        except Error:
            pass  # the page is gone, and the navigation with it

    def _on_request_end(self, request: Request) -> None:
        self._in_flight.discard(request)
        self._pictures.discard(request)
        self._changed.set()

    def _on_request_failed(self, request: Request) -> None:
        if request is self._navigation:
            self._navigation, self._failed = None, request
            self.failure = request.failure or "failed"
            # what becomes a download ends so as a navigation, before the download is told
            self.download_hinted = _ABORTED in self.failure
        elif request is self.document and not self.unreachable:
            self._break_off(request)
        self._on_request_end(request)

    async def awaits_answer(self) -> bool:
        """Whether a navigation was sent to its server and has no answer yet.

        Chromium answers nothing about the page meanwhile, so it does not seem to respond.
        """
        request = self._navigation
        if request is None:
            return False
        try:
            await asyncio.wait_for(request.response(), _ANSWER_SOON_SECONDS)
        except asyncio.TimeoutError:
            return True
        except Error:
            pass  # it failed
        return False

    async def answered_empty(self) -> str:
        """What is to be told if the navigation that failed last was answered, but with no page."""
        failed = self._failed
        if failed is None:
            return ""
        try:
            response = await asyncio.wait_for(failed.response(), _ANSWER_KNOWN_SECONDS)
        except (Error, asyncio.TimeoutError):
            return ""
        if response is None or response.status not in _NO_CONTENT:
            return ""
        return f"{one_line(failed.url)[:300]} led to no page (HTTP status {response.status})"

    def _break_off(self, document: Request) -> None:
        """What came of the document is all: no event tells of its end."""
        self.dom_ready = True
        if _ABORTED not in (document.failure or ""):
            self.broken = document.failure or "failed"

    # --- documents, frames, windows ---

    def _on_announced(self, event: dict[str, Any]) -> None:
        if leads_outside(event["url"]):
            self.outside = event["url"]
        elif event["frameId"] == self.frame_id and event["disposition"] == "currentTab":
            self._announced = time.monotonic()
            self.departures += 1
            self._changed.set()
        elif event["disposition"] == "download":
            self.download_hinted = True

    def _on_window_open(self, event: dict[str, Any]) -> None:
        # Without a gesture of the user Chromium's own blocker keeps the window from opening.
        if leads_outside(event["url"]):
            self.outside = event["url"]
        elif event.get("userGesture"):
            self.windows_due += 1
            self._changed.set()

    def _on_navigated(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        self.frames.add(frame["id"])
        if frame.get("parentId"):
            return
        self._announced = 0.0
        failed = self._failed
        self.document = self._navigation or failed
        self._navigation = self._failed = None
        self.unreachable = frame.get("unreachableUrl", "")
        self.frame_id = frame["id"]
        self.dom_ready = self.loaded = False
        self.broken = ""
        if failed is not None and not self.unreachable:
            self._break_off(failed)
        self.commits += 1
        self.unanswered = ""
        self._restless.clear()
        self._changed.set()

    def _on_detached(self, event: dict[str, Any]) -> None:
        if event.get("reason") != "swap":
            self.frames.discard(event["frameId"])

    def _on_same_document(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self.frame_id:
            self._announced = 0.0
            self._changed.set()

    def _on_read(self, _event: dict[str, Any]) -> None:
        self.dom_ready = True
        self._changed.set()

    def _on_loaded(self, event: dict[str, Any]) -> None:
        self.loaded = True
        self._on_read(event)


def _key(request: Request) -> str:
    """A request's URL without query: what polls for ever asks the same place again and again."""
    return request.url.split("?", 1)[0].split("#", 1)[0]
