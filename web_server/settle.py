"""Waiting until what an action started has come to rest: by events, never by a fixed sleep.

`Activity` listens to one page: navigations (DevTools `Page` events), requests in flight
(Playwright's), and, through `settle.js` in an isolated world (`settle_world`), changes of the
document, running animations and the short timers that the action's handlers set (`timers.js`).

A page may never rest. So every wait has a cap, and what kept it waiting (a polled URL, a ticking
node) is left out of the next ones for as long as the document lives.
"""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections import Counter
from typing import Any

from playwright.async_api import CDPSession, Error, Page, Request

from web_server.settle_world import SettleWorld
from web_server.view import one_line

NAVIGATION_SECONDS = 30.0
"""How long a navigation may take until its document is there."""
ANSWER_SECONDS = 12.0
"""How long a page may wait for another that it leads to; Chromium answers nothing meanwhile."""
LOAD_SECONDS = 8.0
"""How long, after the document came, scripts, styles and data of a new page are waited for."""
REQUEST_SECONDS = 4.0
"""How long the requests that an action started are waited for."""
QUIET_SECONDS = 1.5
"""How long the document may go on changing after an action."""
REQUESTED_SECONDS = 0.5
"""How long a navigation that a page announced may take to send its request."""
WINDOW_SECONDS = 5.0
"""How long a window that a page opened may take to become a page."""
RESTLESS_AFTER = 4
"""So often a URL may be asked for while one action settles, until it counts as polling."""

_AWAITED = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})


def _call_weakly(method: weakref.WeakMethod[Any], argument: weakref.ref[Any]) -> None:
    called, given = method(), argument()
    if called is not None and given is not None:
        called(given)


class Activity:
    """What a page is busy with.

    Args:
        page: the page to listen to.
        token: the secret under which `timers.js` answers in that page's context.
    """

    def __init__(self, page: Page, token: str) -> None:
        self._page = page
        self._token = token
        self._cdp: CDPSession | None = None
        self._settler: SettleWorld | None = None
        self._changed = asyncio.Event()
        self._in_flight: dict[Request, float] = {}
        self._pictures: set[Request] = set()
        self._restless: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._announced = 0.0
        self._navigation: Request | None = None
        self._failed: Request | None = None
        self._armed_at = 0.0
        self._download_hinted = False
        self.patience = ANSWER_SECONDS
        self._stopping: set[asyncio.Task[None]] = set()
        self.linked_download = ""
        self.unanswered = ""
        self._dom_ready = True
        self.commits = 0
        self._commits_before = 0
        self.failure = ""
        self.keeps_changing = False
        self.windows_due = 0
        self._untold = False
        self.requests = 0
        self.frames: set[str] = set()
        self.document: Request | None = None
        self.unreachable = ""

    @property
    def cdp(self) -> CDPSession:
        """The DevTools session of the page; only after `attach`."""
        assert self._cdp is not None
        return self._cdp

    @property
    def _world(self) -> SettleWorld:
        assert self._settler is not None
        return self._settler

    @property
    def still(self) -> str:
        """Name of the event of the document by which `settle.js` tells that it came to rest."""
        return self._token + "still"

    async def attach(self) -> None:
        """Begin to listen. To be called once, before the page goes anywhere."""
        page = self._page
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_request_end)
        page.on("requestfailed", self._on_request_failed)
        cdp = await page.context.new_cdp_session(page)
        self._cdp = cdp
        self._settler = SettleWorld(cdp, "", self._token)
        cdp.on("Page.frameRequestedNavigation", self._on_announced)
        cdp.on("Page.windowOpen", self._on_window_open)
        cdp.on("Page.frameNavigated", self._on_navigated)
        cdp.on("Page.frameAttached", lambda event: self.frames.add(event["frameId"]))
        cdp.on("Page.frameDetached", self._on_detached)
        cdp.on("Page.navigatedWithinDocument", self._on_same_document)
        cdp.on("Page.domContentEventFired", self._on_dom_ready)
        cdp.on("Page.loadEventFired", self._on_load)
        await cdp.send("Page.enable")
        tree = await cdp.send("Page.getFrameTree")
        self._settler.frame_id = tree["frameTree"]["frame"]["id"]
        self.frames.add(self._settler.frame_id)
        await self.call("arm")  # so that the script is there when the first page is asked for

    def _wake(self) -> None:
        self._changed.set()

    def _on_request(self, request: Request) -> None:
        if request.is_navigation_request() and request.frame == self._page.main_frame:
            self._navigation = request
            self._failed = None
            self._announced = 0.0
            # weakly: a timer must not keep a closed session for as long as it runs
            give_up = weakref.WeakMethod(self._give_up), weakref.ref(request)
            asyncio.get_running_loop().call_later(self.patience, _call_weakly, *give_up)
        self.requests += 1
        if request.resource_type in _AWAITED:
            self._in_flight[request] = time.monotonic()
            self._asked[_key(request)] += 1
        elif request.resource_type == "image":
            self._pictures.add(request)
        self._wake()

    def _give_up(self, request: Request) -> None:
        """Stop a navigation that nobody answers: the page that is left is of use meanwhile."""
        if request is not self._navigation:
            return
        self._navigation = None
        self.unanswered = f"{one_line(request.url)[:300]} did not answer within {self.patience:g} s"
        task = asyncio.ensure_future(self._stop_loading())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _stop_loading(self) -> None:
        try:
            await self.cdp.send("Page.stopLoading")
        except Error:
            pass  # the page is gone, and the navigation with it

    def _on_request_end(self, request: Request) -> None:
        self._in_flight.pop(request, None)
        self._pictures.discard(request)
        self._wake()

    def _on_request_failed(self, request: Request) -> None:
        if request is self._navigation:
            self._navigation, self._failed = None, request
            self.failure = request.failure or "failed"
            # what becomes a download ends so as a navigation, before the download is told
            self._download_hinted = "ERR_ABORTED" in self.failure
        self._on_request_end(request)

    def _on_announced(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._world.frame_id and event["disposition"] == "currentTab":
            self._announced = time.monotonic()
            self._wake()
        elif event["disposition"] == "download":
            self._download_hinted = True

    def _on_window_open(self, event: dict[str, Any]) -> None:
        # Without a gesture of the user Chromium's own blocker keeps the window from opening.
        if event.get("userGesture"):
            self.windows_due += 1
            self._wake()

    def window_opened(self) -> None:
        """To be called when a pop-up of this page has become a page."""
        self.windows_due = max(0, self.windows_due - 1)
        self._wake()

    def expect_navigation(self) -> None:
        """To be called before what navigates without the page's doing, such as going back."""
        self._announced = time.monotonic()

    def _on_navigated(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        self.frames.add(frame["id"])
        if frame.get("parentId"):
            return
        self._announced = 0.0
        self.document = self._navigation or self._failed
        self._navigation = self._failed = None
        self.unreachable = frame.get("unreachableUrl", "")
        self._world.frame_id = frame["id"]
        self._world.forget()
        self._dom_ready = False
        self.keeps_changing = False
        self.commits += 1
        self._restless.clear()
        self._wake()

    def _on_detached(self, event: dict[str, Any]) -> None:
        if event.get("reason") != "swap":
            self.frames.discard(event["frameId"])

    def _on_same_document(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._world.frame_id:
            self._announced = 0.0
            self._wake()

    def _on_dom_ready(self, _event: dict[str, Any]) -> None:
        self._dom_ready = True
        self._wake()

    def _on_load(self, _event: dict[str, Any]) -> None:
        self._dom_ready = True
        self._wake()

    async def arm(self) -> None:
        """Begin to watch the document. To be called right before an action."""
        self.failure = ""
        self.patience = ANSWER_SECONDS
        self._download_hinted = False
        self.linked_download = ""
        self._armed_at = time.monotonic()
        self._commits_before = self.commits
        self._asked.clear()
        self._announced = 0.0
        self.windows_due = 0
        # What was in flight before the action is no doing of it.
        self._in_flight.clear()
        self._pictures.clear()
        await self.call("arm")

    async def until_loaded(self, seconds: float) -> None:
        """Wait for pictures that were asked for since `arm`, at most so long."""
        await self._until(lambda: not self._pictures, time.monotonic() + seconds)

    async def settle(self) -> dict[str, Any]:
        """Wait until the page has come to rest.

        Returns:
            `navigated`: a new document came since `arm`; `changed`: the document changed;
            `late`: a cap ended the wait; `failure`: why a navigation came to nothing, or empty;
            `seen`: what listens for `still` heard of the very end, after which nothing came.
        """
        changes = 0
        late = False
        deadline = time.monotonic() + REQUEST_SECONDS
        while True:
            quiet = await self.call("quiet", QUIET_SECONDS * 1000)
            seen = quiet is not None and bool(quiet["seen"])
            if quiet is not None:
                changes += quiet["changes"]
                late = late or quiet["late"]
                self.linked_download = next(iter(quiet["downloads"]), self.linked_download)
            if self._navigating():
                if not await self._until_committed():
                    late = True
                    break
                deadline = time.monotonic() + LOAD_SECONDS
                continue
            if self.commits != self._commits_before and not self._dom_ready:
                if not await self._until(lambda: self._dom_ready, deadline):
                    late = True
                    break
                continue
            waiting = self._awaited()
            if not waiting and (quiet is not None or time.monotonic() > deadline):
                break
            if time.monotonic() > deadline:
                late = True
                self._restless.update(_key(request) for request in waiting)
                break
            if waiting:
                await self._until(lambda: not self._awaited() or self._navigating(), deadline)
            else:
                await self._until(self._changed.is_set, min(deadline, time.monotonic() + 0.1))
        if self.windows_due:
            seen = False
            soon = time.monotonic() + WINDOW_SECONDS
            await self._until(lambda: self.windows_due == 0, soon)
        self.keeps_changing = self.keeps_changing or late
        return {
            "navigated": self.commits != self._commits_before,
            "changed": changes > 0,
            "late": late,
            "failure": self.failure,
            "seen": seen,
        }

    @property
    def download_due(self) -> float | None:
        """When the action was begun that seems to have started a download; None if none did."""
        return self._armed_at if self._download_hinted or self.linked_download else None

    async def rest(self) -> list[Any] | None:
        """Stop watching the document.

        Returns:
            origin, local storage, session storage (both as objects) and cookies (as the document
            tells them) of the document; None if they are as they were at the last time.
        """
        again, self._untold = self._untold, True
        answer = await self.call("rest", again)
        self._untold = False
        if not isinstance(answer, str):
            return None
        told: list[Any] = json.loads(answer)
        return told

    def _navigating(self) -> bool:
        """Whether a navigation of the main frame is under way."""
        if self._navigation is not None:
            return True
        return 0 < time.monotonic() - self._announced < REQUESTED_SECONDS

    def _awaited(self) -> list[Request]:
        """Requests in flight that are not known to go on for ever."""
        return [
            request
            for request in self._in_flight
            if self._restless[_key(request)] == 0 and self._asked[_key(request)] < RESTLESS_AFTER
        ]

    async def _until_committed(self) -> bool:
        return await self._until(
            lambda: not self._navigating(), time.monotonic() + NAVIGATION_SECONDS
        )

    async def _until(self, condition: Any, deadline: float) -> bool:
        """Wait for events until `condition()` holds; False when the deadline came first."""
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

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of `settle.js`; None when the document went away meanwhile."""
        return await self._world.call(function, *arguments)


def _key(request: Request) -> str:
    """A request's URL without query: what polls for ever asks the same place again and again."""
    return request.url.split("?", 1)[0].split("#", 1)[0]
