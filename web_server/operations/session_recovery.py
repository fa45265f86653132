"""Lock a session for one request, and restore it after crashes and hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from playwright.async_api import Browser, Error

from web_server.deadline import Deadline
from web_server.errors import Busy, NotFound
from web_server.operations.settling import settle
from web_server.pool.pool import Pool
from web_server.session.page import Tab
from web_server.session.page_handle import PageHung, PageLost, Renderer
from web_server.session.session import Session

LOCK_SECONDS = 60.0
"""How long a request waits for the request before it on the same browser."""


class SessionRecovery:
    """Lock and restore the sessions of a pool.

    Args:
        pool: the leased browsers.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._background: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def session(self, browser_id: str, waiting: float = 0.0) -> AsyncIterator[Session]:
        """Lock a session, in a running Chromium, and start the request's time limit.

        Args:
            browser_id: its id.
            waiting: seconds that the request asks to wait for.

        Raises:
            NotFound: no leased browser has that id.
            Busy: another request holds the lock for too long.
        """
        lease = self.pool.find(browser_id)
        session = lease.session
        session.used = time.time()
        try:
            await asyncio.wait_for(session.lock.acquire(), LOCK_SECONDS)
        except asyncio.TimeoutError:
            raise Busy("another request on this browser is still in progress: try again") from None
        try:
            self.pool.find(browser_id)
            session.deadline = Deadline(waiting)
            await self.move(session)
            yield session
        except (Error, PageLost, PageHung):
            if lease.closing:
                raise self.pool.closed_meanwhile() from None
            raise
        finally:
            session.used = time.time()
            session.lock.release()

    async def move(self, session: Session) -> None:
        """Move a session to the running Chromium, if its own crashed."""
        await session.in_chromium(lambda browser: self._bring_over(session, browser))

    async def ensure(self, session: Session, tab: Tab) -> None:
        """Restore a tab whose page is lost.

        Raises:
            NotFound: the page closed itself.
        """
        if session.closed:
            raise PageLost
        await session.in_chromium(lambda browser: self._restore(session, tab, browser))

    async def open_tab(self, session: Session, url: str) -> Tab:
        """Open an empty tab, with `url` as its home.

        Raises:
            BadRequest: too many pages are open.
            Unavailable: Chromium is too busy to open a page.
        """

        async def opened(browser: Browser) -> Tab:
            await self._bring_over(session, browser)
            return await session.open_tab(url)

        return await session.in_chromium(opened)

    async def _restore(self, session: Session, tab: Tab, browser: Browser) -> None:
        if await self._bring_over(session, browser):
            return
        if not tab.page_handles:
            await self._check_alive(session, browser)
            raise NotFound(f"pageId: page {tab.id} was closed meanwhile")
        if tab.page_handle.excess:
            await session.leave(tab)
        elif tab.page_handle.lost:
            await session.revive(tab, tab.page_handle.loss)
            await self._settle_restored(session, tab)

    async def _bring_over(self, session: Session, browser: Browser) -> bool:
        """Rebuild a session in this Chromium if it lives in another; return whether it did."""
        if session.browser is browser:
            if session.closed_tabs:
                await self._check_alive(session, browser)
                session.closed_tabs.take()  # pages closed, but not because Chromium crashed
            return False
        await session.rebuild(browser)
        tab = session.tabs.get(session.current)
        if tab is not None:
            await self._settle_restored(session, tab)
        return True

    async def _check_alive(self, session: Session, browser: Browser) -> None:
        if not await session.engine.alive(browser):
            raise Error("Chromium crashed, and its pages closed")

    async def _settle_restored(self, session: Session, tab: Tab) -> None:
        """Wait for a page that was loaded again; leave one that crashes again."""
        try:
            await settle(session, tab)
        except PageHung:
            pass  # the next use of the page finds out, and handles it
        except PageLost:
            if not session.closed and await session.alive():
                await session.leave(tab)

    async def recover(self, session: Session, tab: Tab, problem: Exception) -> str:
        """Make a tab usable again after a crash or a hang, if possible.

        Returns:
            what happened, in a few words.
        """
        if session.closed:
            raise PageLost
        if isinstance(problem, PageHung) and not tab.page_handle.lost:
            busy = tab.page_handle.busy_reason()
            with suppress(PageHung):  # the observation reports it
                await tab.page_handle.stop_long_script()
            return f"the page did not respond in time{busy}"
        loss = tab.page_handle.loss if tab.page_handles else "the page closed"
        await self.ensure(session, tab)
        return loss

    async def clear_way(self, session: Session, tab: Tab) -> None:
        """Before a navigation, replace a page that would prevent it by an empty one.

        Such a page does not respond, or loads one document after the other.

        Raises:
            PageHung: Chromium makes no page in time.
        """
        page_handle = tab.page_handle
        if page_handle.lost:
            return
        if page_handle.settler.reloading or await page_handle.unhang() is Renderer.HUNG:
            await session.replace(tab)

    def remember(self, session: Session, tab: Tab) -> None:
        """Save what a crash would lose, in the background."""
        task = asyncio.ensure_future(session.remember(tab))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
