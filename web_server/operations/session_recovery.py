"""Keeping leased browsers usable: one request at a time, recovery from crashes and hangs, rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from playwright.async_api import Browser, Error

from web_server.contract import ObserveOptions
from web_server.deadline import Deadline
from web_server.errors import Busy, NotFound
from web_server.javascript import load_script
from web_server.pool.pool import Pool
from web_server.quoting import quoted
from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle, PageHung, PageLost, Renderer
from web_server.session.session import Session
from web_server.settle.settle import Settled
from web_server.view import one_line

LOCK_SECONDS = 60.0
_BEFORE_LIMIT = 1.0
"""So many seconds before its limit a wait for rest ends by itself: a page that does not rest is
no page that does not respond."""
DOWNLOAD_SECONDS = 10.0
DOWNLOAD_BEGIN_SECONDS = 2.0
"""How long a navigation that seems to have become a download may take to say so."""
DOWNLOAD_LINK_SECONDS = 4.0
"""How long the server of a link with `download` may take to answer."""


class SessionRecovery:
    """Holds the sessions of a pool for those who work on them.

    Args:
        pool: where the browsers are.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._background: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def session(self, browser_id: str, waiting: float = 0.0) -> AsyncIterator[Session]:
        """The session of that id, alive and for us alone.

        Args:
            browser_id: its id.
            waiting: seconds that the request asks to wait for.

        Raises:
            NotFound: there is no such browser.
            Busy: another request holds it for too long.
        """
        lease = self.pool.find(browser_id)
        session = lease.session
        session.used = time.time()
        try:
            await asyncio.wait_for(session.lock.acquire(), LOCK_SECONDS)
        except asyncio.TimeoutError:
            raise Busy("another request is still at work on this browser: try again") from None
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
        """Have a session go on in the Chromium that runs now, should its own have died."""
        await session.in_chromium(lambda browser: self._bring_over(session, browser))

    async def ensure(self, session: Session, tab: Tab) -> None:
        """Bring back a tab whose page is gone.

        Raises:
            NotFound: it closed itself.
        """
        if session.closed:
            raise PageLost
        await session.in_chromium(lambda browser: self._bring_back(session, tab, browser))

    async def open_tab(self, session: Session, url: str) -> Tab:
        """Make a page that shows nothing yet; `url` becomes its home.

        Raises:
            BadRequest: too many pages are open.
        """

        async def opened(browser: Browser) -> Tab:
            await self._bring_over(session, browser)
            return await session.open_tab(url)

        return await session.in_chromium(opened)

    async def _bring_back(self, session: Session, tab: Tab, browser: Browser) -> None:
        if await self._bring_over(session, browser):
            return
        if not tab.page_handles:
            await self._find_alive(session, browser)
            raise NotFound(f"pageId: page {tab.id} was closed meanwhile")
        if tab.page_handle.lost:
            await session.revive(tab, tab.page_handle.loss)
            await self._settle_anew(session, tab)

    async def _bring_over(self, session: Session, browser: Browser) -> bool:
        """Rebuild a session in this Chromium, if it lives in another; whether it did.

        The page that is shown comes back to rest before anything is done to it.
        """
        if session.browser is browser:
            if session.closed_tabs:
                await self._find_alive(session, browser)
                session.closed_tabs.take()  # pages closed, but not because Chromium died
            return False
        await session.rebuild(browser)
        tab = session.tabs.get(session.current)
        if tab is not None:
            await self._settle_anew(session, tab)
        return True

    async def _find_alive(self, session: Session, browser: Browser) -> None:
        if not await session.engine.alive(browser):
            raise Error("Chromium died, and its pages closed")

    async def _settle_anew(self, session: Session, tab: Tab) -> None:
        """Have a page that was loaded anew come to rest; one that crashes again is left."""
        try:
            await self.settle(session, tab)
        except PageHung:
            pass  # whoever needs the page finds that out, and recovers it
        except PageLost:
            if not session.closed and await session.alive():
                await session.leave(tab)

    async def recover(self, session: Session, tab: Tab, problem: Exception) -> str:
        """After a crash or a hang: make the tab usable again, if that is possible.

        Returns:
            what happened, in a few words.
        """
        if session.closed:
            raise PageLost
        if isinstance(problem, PageHung) and not tab.page_handle.lost:
            with suppress(PageHung):  # the observation says so
                await tab.page_handle.stop_long_script()
            return "the page did not respond in time"
        loss = tab.page_handle.loss if tab.page_handles else "the page closed"
        await self.ensure(session, tab)
        return loss

    async def clear_way(self, session: Session, tab: Tab) -> None:
        """Before a navigation: put an empty page in the place of one that would hinder it.

        A page that does not respond, or loads one document after the other, ends there.
        """
        page_handle = tab.page_handle
        reloading = page_handle.settler.reloading
        if reloading or (
            not page_handle.lost
            and await page_handle.unhang() is Renderer.HUNG
            and not page_handle.lost
        ):
            await session.replace(tab)

    async def settle(
        self, session: Session, tab: Tab, options: ObserveOptions | None = None
    ) -> Settled:
        """Wait until page, pop-ups and downloads have come to rest.

        Args:
            session, tab: what is waited for.
            options: of the observation that is to follow, if any: the page is looked at in the
                moment when it rests, which saves a round trip.

        Returns:
            as `Settler.settle`.
        """
        await tab.close_discarded()
        page_handle = tab.page_handle
        if page_handle.page.is_closed():
            # A pop-up that closed itself: what is below it needs no waiting.
            return Settled()
        if options is not None:
            page_handle.observer.observe_when(
                page_handle.settler.quiet_event, options.scope, options.fulltree
            )
        settled = await self._settled(session, page_handle)
        if settled.copied:
            copied = await page_handle.guard(
                session.clipboard.keep(session), session.deadline.to_act()
            )
            if copied:
                session.pending.note(f"the page copied {quoted(copied)}")
        if session.arriving:
            settled.observed = False
            await session.settle_arrivals()
        if tab.id in session.tabs and tab.page_handle is not page_handle:
            settled = await self._settled(session, tab.page_handle)
            settled.navigated, settled.observed = True, False
        elif session.current in session.tabs and session.current != tab.id:
            await self._settled(session, session.tabs[session.current].page_handle)
            settled.observed = False
        if page_handle.settler.download_due is not None:
            settled.observed = False
            await self._wait_for_download(session, page_handle)
        if session.downloads.active:
            settled.observed = False
            await session.downloads.wait(session.deadline.to_act(DOWNLOAD_SECONDS))
        await self._tell_document(session, tab)
        opened = session.tabs.get(session.current)
        if opened is not None and opened is not tab:
            await self._tell_document(session, opened)
        if session.tabs.get(session.current) is not opened:
            settled.observed = False
        return settled

    async def _settled(self, session: Session, page_handle: PageHandle) -> Settled:
        """Wait until one page has come to rest; see `Settler.settle`."""
        deadline = session.deadline
        settling = page_handle.settler.settle(deadline.acting - _BEFORE_LIMIT)
        return await page_handle.guard(settling, deadline.to_act())

    async def _wait_for_download(self, session: Session, page_handle: PageHandle) -> None:
        """Wait for the beginning of a download that an action seems to have started."""
        due, link = page_handle.settler.download_due, page_handle.settler.linked_download
        empty = "" if link else await page_handle.activity.no_content_reason()
        if empty:
            session.pending.note(empty)
            return
        seconds = DOWNLOAD_LINK_SECONDS if link else DOWNLOAD_BEGIN_SECONDS
        seconds = session.deadline.to_act(seconds)
        if not await session.downloads.wait_for_begin(due or 0.0, seconds) and link:
            session.pending.note(f"the download of {one_line(link)[:300]} has not begun yet")

    async def _tell_document(self, session: Session, tab: Tab) -> None:
        """Tell what came of a tab's document; one that can only be read as a file is downloaded."""
        await tab.tell_document()
        if await session.close_if_refused(tab) or not tab.pdf_due:
            return
        tab.pdf_due = False
        session.pending.note("this page is a PDF document: read the downloaded file", loud=True)
        if session.downloads.has(tab.url()):
            return
        asked = time.monotonic()
        deadline = session.deadline
        download = tab.page_handle.page.evaluate(load_script("operations", "download_document"))
        await tab.page_handle.guard(download, deadline.to_act())
        if await session.downloads.wait_for_begin(asked, deadline.to_act(DOWNLOAD_LINK_SECONDS)):
            await session.downloads.wait(deadline.to_act(DOWNLOAD_SECONDS))

    def remember(self, session: Session, tab: Tab) -> None:
        """Note what a crash would lose, without keeping the caller waiting."""
        task = asyncio.ensure_future(session.remember(tab))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
