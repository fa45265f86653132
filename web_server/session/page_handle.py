"""One Playwright page with its observer, its activity, and the state of its renderer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from enum import Enum
from typing import Any, Protocol, TypeVar

from playwright.async_api import Error, Page

from web_server.deadline import Deadline
from web_server.observe.observer import Observer
from web_server.session.dialogs import Dialogs
from web_server.session.file_choosers import FileChoosers
from web_server.session.page_errors import PageErrors
from web_server.session.page_limits import PageLimits
from web_server.session.pending_events import PendingEvents
from web_server.settle.activity import Activity
from web_server.settle.settle import Settler

T = TypeVar("T")

NOTCH_PIXELS = 100
"""Distance that one notch of the mouse wheel scrolls."""
MAX_NOTCHES = 50
"""Notches per action; for a longer distance each notch scrolls further."""
CLOSE_SECONDS = 5.0
"""How long a page may take to close."""
_ANSWER_SECONDS = 1.0
_CRASH_REPORT_SECONDS = 0.3


class PageLost(Exception):
    """The page's renderer or Chromium crashed; the work on the page did not finish."""


class PageHung(Exception):
    """The page's renderer does not respond."""


class Renderer(Enum):
    """State of a renderer that was too slow."""

    RESPONSIVE = "responsive"
    STOPPED = "responsive since its script was stopped"
    HUNG = "not responsive"


class Host(Protocol):
    """The session that a page belongs to."""

    pending: PendingEvents
    follows_tabs: bool
    deadline: Deadline

    async def alive(self) -> bool:
        """Return whether Chromium responds."""

    def unreached(self, url: str) -> str:
        """Return why the proxy refused or lost the connection to a URL's host, or empty."""

    def popup(self, page_handle: PageHandle, page: Page) -> None:
        """Handle a page that this page opened."""

    def page_closed(self, page_handle: PageHandle) -> None:
        """Handle the end of the page."""


async def _no_check() -> None:
    pass


class PageHandle:
    """One page of the browser.

    Args:
        page: the Playwright page.
        token: the session's secret, see `timers.js`.
        host: the session.

    Attributes:
        before_input: awaited right before a mouse button is pressed; raises to prevent it.
        before_key: the same for a key.
        mouse_at: where the mouse is, and the number of documents shown when it moved there.
        given_up: it showed dialogs without end.
        excess: the limit that the page exceeded, such as "opened more than 300 frames", or empty.
        closing: the server closes the page, so its end is not reported.
        is_new: it opened as a tab or a pop-up, and has not been reported yet.
        opened_line: the event that reported its opening, or empty.
    """

    def __init__(self, page: Page, token: str, host: Host) -> None:
        self.page = page
        self.observer = Observer(page)
        self.activity = Activity(page)
        self.settler = Settler(self.activity, token)
        self.limits = PageLimits(page, self._on_excess)
        self.errors = PageErrors(page, self.activity, self.limits)
        self.dialogs = Dialogs(
            page, host.pending, lambda: not host.follows_tabs, self._on_dialogs_without_end
        )
        self.choosers = FileChoosers(self.activity, host.pending)
        self.before_input: Callable[[], Awaitable[None]] = _no_check
        self.before_key: Callable[[], Awaitable[None]] = _no_check
        self.mouse_at: tuple[float, float, int] | None = None
        self.given_up = False
        self.excess = ""
        self.closing = False
        self.is_new = False
        self.opened_line = ""
        self._host = host
        self._lost = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        page.on("crash", lambda _page: self.mark_lost())
        page.on("close", lambda _page: host.page_closed(self))
        page.on("popup", lambda popup: host.popup(self, popup))

    async def attach(self) -> None:
        """Open the DevTools sessions. Call once, before the first navigation."""
        await asyncio.gather(self.settler.attach(), self.observer.attach())
        await asyncio.gather(self.choosers.attach(), self.errors.attach(self.activity.cdp))

    # --- the renderer ---

    @property
    def lost(self) -> bool:
        """Whether the page crashed, closed or was given up."""
        return self._lost.is_set()

    @property
    def loss(self) -> str:
        """Why the page is lost, in a few words."""
        reason = "showed dialogs without end" if self.given_up else "crashed"
        return f"the page {self.excess or reason}"

    def mark_lost(self) -> None:
        """Mark the page as gone, with its renderer or all of Chromium."""
        self._lost.set()

    def _on_dialogs_without_end(self) -> None:
        """Give the page up; it is loaded again."""
        self.given_up = True
        self.mark_lost()

    def _on_excess(self, reason: str) -> None:
        """Close the page at once, so that it does not block the other sessions."""
        self.excess = reason
        self.closing = True
        self.mark_lost()
        self._ending = asyncio.ensure_future(self.close())

    async def guard(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run work that needs the renderer, no longer than the renderer lives.

        Args:
            work: the coroutine.
            seconds: its time limit.

        Raises:
            PageLost: the renderer crashed.
            PageHung: the time limit passed.
        """
        working = asyncio.ensure_future(work)
        losing = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait(
                {working, losing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if self.lost:
                raise PageLost
            if not working.done():
                raise PageHung
            return working.result()
        except Error:
            # Calls fail a moment before the crash is reported.
            if self.page.is_closed() or await self._lost_soon() or not await self._host.alive():
                raise PageLost from None
            raise
        finally:
            losing.cancel()
            if not working.done():
                working.cancel()
            await asyncio.gather(losing, return_exceptions=True)
            if working.done() and not working.cancelled():
                working.exception()

    async def _lost_soon(self) -> bool:
        try:
            await asyncio.wait_for(self._lost.wait(), _CRASH_REPORT_SECONDS)
        except asyncio.TimeoutError:
            return False
        return True

    async def answers(self, seconds: float) -> bool:
        """Return whether the renderer runs a script within so many seconds."""
        asking = self.activity.cdp.send("Runtime.evaluate", {"expression": "1"})
        try:
            await asyncio.wait_for(asking, seconds)
        except (asyncio.TimeoutError, Error):
            return False
        return True

    async def unhang(self) -> Renderer:
        """Stop the script that keeps the renderer busy, if the renderer does not respond."""
        if await self.answers(_ANSWER_SECONDS):
            return Renderer.RESPONSIVE
        with suppress(asyncio.TimeoutError, Error):
            terminating = self.activity.cdp.send("Runtime.terminateExecution")
            await asyncio.wait_for(terminating, _ANSWER_SECONDS)
        return Renderer.STOPPED if await self.answers(_ANSWER_SECONDS) else Renderer.HUNG

    async def stop_long_script(self) -> None:
        """Stop a script that keeps the renderer from responding, and report it.

        Raises:
            PageHung: the renderer still does not respond.
        """
        state = await self.unhang()
        if state is Renderer.STOPPED:
            line = "a script of the page ran too long and was stopped"
            self._host.pending.note(line, in_tree=True)
        if state is Renderer.HUNG:
            raise PageHung

    def busy_reason(self) -> str:
        """Return why a page that does not respond may be busy, in parentheses, or empty."""
        reasons = [] if self.activity.loaded else ["it is still loading"]
        reasons += filter(None, [self.limits.busy_reason()])
        return f" ({' and '.join(reasons)})" if reasons else ""

    # --- closing ---

    async def close(self) -> None:
        """Close the page; Chromium ends a renderer that hangs."""
        try:
            await asyncio.wait_for(self.page.close(), CLOSE_SECONDS)
        except (asyncio.TimeoutError, Error):
            pass  # Chromium ended, and the page with it
        self.mark_lost()

    async def close_unless_asked(self) -> bool:
        """Close the page as a user does; return False if it asks whether to leave it, and stays."""
        self.closing = True
        stayed = self.dialogs.stayed
        stayed.clear()
        waited = [asyncio.ensure_future(event.wait()) for event in (self._lost, stayed)]
        try:
            await asyncio.wait_for(self.page.close(run_before_unload=True), CLOSE_SECONDS)
            await asyncio.wait(waited, timeout=CLOSE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if stayed.is_set():
                self.closing = False
                return False
        except (asyncio.TimeoutError, Error):
            pass  # it hangs or is closed already
        finally:
            for each in waited:
                each.cancel()
        await self.close()
        return True

    # --- mouse and keyboard ---

    @property
    def pointer(self) -> list[float]:
        """Position of the mouse in CSS pixels of the viewport; empty if it never moved there."""
        return list(self.mouse_at[:2]) if self.mouse_at is not None else []

    def begin_action(self) -> None:
        """Reset what belongs to one action: the count of dialogs, and the checks before input."""
        self.dialogs.begin_action()
        self.before_input = self.before_key = _no_check

    async def move_mouse(self, x: float, y: float, steps: int = 1) -> None:
        """Move the mouse to a point of the viewport, in so many steps."""
        self.mouse_at = (x, y, self.activity.commits)
        await self.page.mouse.move(x, y, steps=steps)

    async def turn_wheel(self, dx: float, dy: float) -> None:
        """Turn the wheel by so many pixels, notch by notch: some canvases count notches."""
        notches = min(MAX_NOTCHES, max(1, round(max(abs(dx), abs(dy)) / NOTCH_PIXELS)))
        for _ in range(notches):
            await self.page.mouse.wheel(dx / notches, dy / notches)

    async def press_key(self, chord: str, hold_ms: float = 0) -> None:
        """Press a chord, in Playwright's names; hold it for milliseconds."""
        await self.before_key()
        await self.page.keyboard.press(chord, delay=hold_ms)
