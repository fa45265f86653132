"""Track what a page is busy with by its events: navigations, requests, frames, windows.

A navigation without a response is cancelled after a while, so that the current page can be used.
Waiting for the page to become quiet is the task of `settle`.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from playwright.async_api import CDPSession, Error, Page, Request

from web_server.chromium.external_links import leads_outside
from web_server.view import one_line

ANSWER_SECONDS = 12.0
"""Limit for the response to a navigation; Chromium does not answer about the page meanwhile."""
REQUESTED_SECONDS = 0.5
"""Limit for a navigation that the page announced to send its request."""
RESTLESS_AFTER = 4
"""A URL that is requested so often while one action settles counts as polling."""

_ABORTED = "ERR_ABORTED"
_NO_CONTENT = (204, 205)
_ANSWER_KNOWN_SECONDS = 1.0
_RELOAD_SECONDS = 2.0
_ANSWER_SOON_SECONDS = 0.2
_MAX_BACKGROUND = 200
_BACKGROUND = frozenset({"xhr", "fetch"})
_AWAITED = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})


def _call_weakly(method: weakref.WeakMethod[Any], argument: weakref.ref[Any]) -> None:
    called, given = method(), argument()
    if called is not None and given is not None:
        called(given)


class Activity:
    """Track what a page is busy with.

    Args:
        page: the page to listen to.

    Attributes:
        patience: seconds for the response to a navigation of the main frame.
        frame_id: DevTools id of the main frame; it changes with the frame's process.
        commits: number of documents that the main frame has shown.
        dom_ready: whether the current document has been parsed.
        loaded: whether its event `load` has fired.
        document: the request of the current document, if there was one.
        unreachable: the document's URL if Chromium shows an error page instead, else empty.
        incomplete_reason: why the document is incomplete, else empty.
        failure: why a navigation since `begin` failed, else empty.
        timeout_reason: message about a navigation that was cancelled, until it is reported.
        external_link: URL of a link for another program, until it is reported.
        download_hinted: whether a request since `begin` seems to have become a download.
        pending_windows: number of windows that opened and are not pages yet.
        requests: number of requests of the page.
        navigations: number of navigations of the main frame that the page started since `begin`.
        frames: DevTools ids of all its frames.
        background: URLs of the last requests of scripts, except polling.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession | None = None
        self._changed = asyncio.Event()
        self._in_flight: set[Request] = set()
        self._images: set[Request] = set()
        self._restless: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
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
        self.incomplete_reason = ""
        self.failure = ""
        self.timeout_reason = ""
        self.external_link = ""
        self.download_hinted = False
        self.pending_windows = 0
        self.requests = 0
        self.navigations = 0
        self.frames: set[str] = set()
        self.background: deque[str] = deque(maxlen=_MAX_BACKGROUND)

    @property
    def cdp(self) -> CDPSession:
        """The DevTools session of the page; only after `attach`."""
        assert self._cdp is not None
        return self._cdp

    async def attach(self) -> None:
        """Subscribe to the page's events. Call once, before the first navigation."""
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
        # With virtual authenticators on, Chromium does not open its dialog for passkeys, which is
        # invisible here and would take all clicks.
        await asyncio.gather(cdp.send("Page.enable"), cdp.send("WebAuthn.enable"))
        tree = await cdp.send("Page.getFrameTree")
        frame = tree["frameTree"]["frame"]
        self.frame_id = frame["id"]
        self.unreachable = frame.get("unreachableUrl", "")  # a window may open with an error page
        self.frames.add(self.frame_id)

    def begin(self) -> None:
        """Start an action: forget all earlier activity."""
        self.failure = ""
        self.patience = ANSWER_SECONDS
        self.download_hinted = False
        self._counts.clear()
        self._announced = 0.0
        self.navigations = 0
        self.pending_windows = 0
        self._in_flight.clear()
        self._images.clear()

    # --- pending activity ---

    @property
    def navigating(self) -> bool:
        """Whether a navigation of the main frame is in progress."""
        if self._navigation is not None:
            return True
        return 0 < time.monotonic() - self._announced < REQUESTED_SECONDS

    @property
    def pending_requests(self) -> list[Request]:
        """Requests in flight since `begin`, except polling."""
        return [request for request in self._in_flight if not self._is_polling(request)]

    def _is_polling(self, request: Request) -> bool:
        url = _url_without_query(request)
        return self._restless[url] > 0 or self._counts[url] >= RESTLESS_AFTER

    @property
    def loading_images(self) -> bool:
        """Whether images that were requested since `begin` are loading."""
        return bool(self._images)

    def ignore_requests(self, requests: Iterable[Request]) -> None:
        """Stop waiting for requests of these URLs until the next document."""
        self._restless.update(_url_without_query(request) for request in requests)

    @property
    def has_events(self) -> bool:
        """Whether an event arrived since the last wait of `until`."""
        return self._changed.is_set()

    async def until(self, condition: Callable[[], bool], deadline: float) -> bool:
        """Wait until a condition holds.

        Args:
            condition: checked after each event.
            deadline: on the monotonic clock.

        Returns:
            False if the deadline passed first.
        """
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._changed.clear()
            # An announced navigation may expire without an event, so check again after a while.
            limit = min(left, REQUESTED_SECONDS) if self._announced else left
            try:
                await asyncio.wait_for(self._changed.wait(), limit)
            except asyncio.TimeoutError:
                continue
        return True

    def expect_navigation(self) -> None:
        """Call before a navigation that the page does not start, such as going back."""
        self._announced = time.monotonic()

    def window_opened(self) -> None:
        """Call when a pop-up of this page has become a page."""
        self.pending_windows = max(0, self.pending_windows - 1)
        self._changed.set()

    # --- requests ---

    def _on_request(self, request: Request) -> None:
        if leads_outside(request.url):
            return  # never sent, and already noted when it was announced
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self._navigation = request
            self._failed = None
            self._announced = 0.0
            # weakly, so that the timer does not keep a closed session in memory
            give_up = weakref.WeakMethod(self._give_up), weakref.ref(request)
            asyncio.get_running_loop().call_later(self.patience, _call_weakly, *give_up)
        self.requests += 1
        if request.resource_type in _AWAITED:
            self._in_flight.add(request)
            self._counts[_url_without_query(request)] += 1
            if request.resource_type in _BACKGROUND and not self._is_polling(request):
                self.background.append(request.url)
        elif request.resource_type == "image":
            self._images.add(request)
        self._changed.set()

    def _give_up(self, request: Request) -> None:
        """Cancel a navigation without a response, so that the current page can be used."""
        if request is not self._navigation:
            return
        self._navigation = None
        url = one_line(request.url)[:300]
        self.timeout_reason = f"{url} did not answer within {self.patience:g} s"
        task = asyncio.ensure_future(self.stop_loading())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def stop_scripts(self) -> None:
        """Stop loading, and turn the page's scripts off."""
        try:
            await self.cdp.send("Emulation.setScriptExecutionDisabled", {"value": True})
        except Error:
            pass  # the page is closed
        await self.stop_loading()
        if self.loaded:
            return
        # The document was not parsed to its end. Without scripts it can be.
        commits = self.commits
        with suppress(Error):
            await self.cdp.send("Page.reload")
        end = time.monotonic() + _RELOAD_SECONDS
        await self.until(lambda: self.commits > commits and self.dom_ready, end)
        await self.stop_loading()

    async def stop_loading(self) -> None:
        """Stop loading, and cancel a pending navigation."""
        try:
            await self.cdp.send("Page.stopLoading")
        except Error:
            pass  # the page is closed

    def _on_request_end(self, request: Request) -> None:
        self._in_flight.discard(request)
        self._images.discard(request)
        self._changed.set()

    def _on_request_failed(self, request: Request) -> None:
        if request is self._navigation:
            self._navigation, self._failed = None, request
            self.failure = request.failure or "failed"
            # a navigation that becomes a download fails before the download is reported
            self.download_hinted = _ABORTED in self.failure
        elif request is self.document and not self.unreachable:
            self._end_incomplete(request)
        self._on_request_end(request)

    async def awaits_response(self) -> bool:
        """Whether a navigation waits for the response of its server.

        Chromium does not answer about the page meanwhile, so the page seems not to respond.
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

    async def no_content_reason(self) -> str:
        """Message if the response to the last failed navigation had no content, else empty."""
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

    def _end_incomplete(self, document: Request) -> None:
        """Mark the document as incomplete: no event reports its end."""
        self.dom_ready = True
        if _ABORTED not in (document.failure or ""):
            self.incomplete_reason = document.failure or "failed"

    # --- documents, frames, windows ---

    def _on_announced(self, event: dict[str, Any]) -> None:
        if leads_outside(event["url"]):
            self.external_link = event["url"]
        elif event["frameId"] == self.frame_id and event["disposition"] == "currentTab":
            self._announced = time.monotonic()
            self.navigations += 1
            self._changed.set()
        elif event["disposition"] == "download":
            self.download_hinted = True

    def _on_window_open(self, event: dict[str, Any]) -> None:
        # Without a user gesture, Chromium's pop-up blocker refuses the window.
        if leads_outside(event["url"]):
            self.external_link = event["url"]
        elif event.get("userGesture"):
            self.pending_windows += 1
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
        self.incomplete_reason = ""
        if failed is not None and not self.unreachable:
            self._end_incomplete(failed)
        self.commits += 1
        self.timeout_reason = ""
        self._restless.clear()
        self.background.clear()
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


def _url_without_query(request: Request) -> str:
    """The URL of a request without its query, which is the same at each poll."""
    return request.url.split("?", 1)[0].split("#", 1)[0]
