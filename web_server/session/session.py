"""One leased browser: its pages by the ids that the client knows, and what happened to them."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from playwright.async_api import Browser, Error, Page

from web_server.chromium.clipboard import Clipboard, Copied
from web_server.chromium.engine import Engine
from web_server.contract import GetBrowser
from web_server.deadline import Deadline
from web_server.errors import BadRequest, NotFound
from web_server.network.policy import Policy
from web_server.network.proxy import FilterProxy
from web_server.session.closed_tabs import ClosedTab, ClosedTabs
from web_server.session.downloads import Downloads
from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle
from web_server.session.pending_events import PendingEvents
from web_server.session.session_context import SessionContext
from web_server.session.storage import Storage, session_storage_script
from web_server.session.uploads import Uploads
from web_server.view import one_line, shortened

MAX_TABS = 20

T = TypeVar("T")


class Session:
    """A leased browser, by the id that the client holds.

    It outlives its browser context: when Chromium dies, `rebuild` makes a new context with the
    cookies, storage, pages and URLs of the old one.

    Args:
        request: what the client asked for at getBrowser.
        policy: what its pages may reach.
        folder: where folders of sessions are made.
        max_download: the largest download in bytes.
        engine: starts and watches the Chromium that it lives in.
    """

    def __init__(
        self,
        request: GetBrowser,
        policy: Policy,
        folder: Path,
        max_download: int,
        engine: Engine,
    ) -> None:
        self.id = secrets.token_hex(16)
        self.engine = engine
        self.follows_tabs = request.tabs
        self.lock = asyncio.Lock()
        self.tabs: dict[str, Tab] = {}
        self.current = ""
        self.folder = folder / self.id
        self.pending = PendingEvents()
        self.copied: Copied = {}
        self.used = time.time()
        self.policy = policy
        self.deadline = Deadline()
        self._next_id = 0
        self._arrivals: set[asyncio.Task[None]] = set()
        self._extra: set[PageHandle] = set()
        self.closed_tabs = ClosedTabs()
        self._storage = Storage(request.storageState)
        self.downloads = Downloads(
            self.id, self.folder, max_download, self.pending.note, self._owns
        )
        self.uploads = Uploads(self.folder / "uploads", self.downloads)
        self.rounds = self.folder / "rounds"
        self.rounds.mkdir()
        self._context = SessionContext(
            request,
            self._storage,
            FilterProxy(policy, self._on_refused),
            self.downloads,
            self,
            secrets.token_hex(8),
            engine,
        )

    @property
    def viewport(self) -> tuple[int, int]:
        """Width and height of what is seen of a page, in CSS pixels."""
        return self._context.viewport

    @property
    def browser(self) -> Browser | None:
        """The Chromium that it lives in; None before the first one."""
        return self._context.browser

    @property
    def clipboard(self) -> Clipboard:
        """The clipboard that its pages share with those of other sessions, one at a time."""
        return self._context.clipboard

    @property
    def closed(self) -> bool:
        """Whether its end has begun."""
        return self._context.closed

    # --- what surfaces tell and ask us (see `surface.Host`) ---

    async def alive(self) -> bool:
        """Whether the Chromium that the session lives in answers."""
        return await self._context.alive()

    def unreached(self, url: str) -> str:
        """Why no connection to the host of a URL was made; empty if one was."""
        return self._context.unreached(url)

    def popup(self, page_handle: PageHandle, page: Page) -> None:
        """A page opened another one: take it in once it can be observed."""
        task = asyncio.ensure_future(self._take_in(page_handle, page))
        self._arrivals.add(task)
        task.add_done_callback(self._arrivals.discard)

    async def _take_in(self, opener: PageHandle, page: Page) -> None:
        tab = next((each for each in self.tabs.values() if opener in each.page_handles), None)
        try:
            if tab is None or len(self.tabs) >= MAX_TABS:
                self.pending.note("closed a pop-up: too many tabs are open", loud=True)
                await page.close()
                return
            page_handle = await self._context.surface_of(page)
            if self.follows_tabs:
                opened = self._add_tab(page_handle, page.url)
                page_handle.opened_line = f"opened tab {self.current}: {shortened(opened.url())}"
                self.pending.note(page_handle.opened_line)
            elif tab.push(page_handle):
                page_handle.opened_line = f"opened in place: {shortened(tab.url())}"
                self.pending.note(page_handle.opened_line)
            else:
                self.pending.note("closed a pop-up: too many are open", loud=True)
                await page.close()
        except Error:
            pass  # it closed itself, or died, before it could be looked at
        finally:
            opener.activity.window_opened()

    def surface_closed(self, page_handle: PageHandle) -> None:
        """A page closed: its opener, or another tab, is seen again."""
        page_handle.mark_lost()
        if self.closed or page_handle.closing:
            return
        for tab in list(self.tabs.values()):
            if page_handle in tab.page_handles and (
                len(tab.page_handles) > 1 or len(self.tabs) > 1
            ):
                tab.page_handles.remove(page_handle)
                told = f"a page of tab {tab.id} was closed"
                self.pending.note(told)
                if not tab.page_handles:
                    self.closed_tabs.add(ClosedTab(tab, page_handle, self.current, told))
                    self._drop_tab(tab)

    def _take_back(self) -> None:
        """Chromium died, and that was what closed pages: their tabs are there again.

        Each with its dead page, so that a tab that cannot be revived now is when it is needed.
        """
        for closed in self.closed_tabs.take():
            closed.tab.page_handles.append(closed.page_handle)
            self.tabs[closed.tab.id] = closed.tab
            self.current = closed.current
            self.pending.withdraw(closed.told)
        self.tabs = dict(sorted(self.tabs.items(), key=lambda item: int(item[0])))

    @asynccontextmanager
    async def extra_page(self) -> AsyncIterator[PageHandle]:
        """A page that is no tab, for one task; it is closed at the end."""
        page_handle = await self._context.new_surface()
        page_handle.closing = True
        self._extra.add(page_handle)
        try:
            yield page_handle
        finally:
            self._extra.discard(page_handle)
            await page_handle.close()

    def _owns(self, frame_id: str) -> bool:
        page_handles = [*self._extra]
        page_handles += [
            page_handle for tab in self.tabs.values() for page_handle in tab.page_handles
        ]
        if self._context.spare is not None:
            page_handles.append(self._context.spare)
        return any(frame_id in page_handle.activity.frames for page_handle in page_handles)

    def _on_refused(self, place: str, reason: str) -> None:
        self.pending.note(f"blocked: {place}: {reason}")

    # --- life ---

    async def open(self, browser: Browser) -> None:
        """Begin in a Chromium; see `SessionContext.open`."""
        await self._context.open(browser)

    async def in_chromium(self, work: Callable[[Browser], Awaitable[T]]) -> T:
        """Do something in the Chromium that runs now; see `Engine.do`."""
        return await self.engine.do(work, lambda: self.closed)

    async def close(self) -> None:
        """End all that it has in Chromium, the proxy, and the session's folder."""
        for task in list(self._arrivals):
            task.cancel()
        await self._context.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    def fits(self, request: GetBrowser) -> bool:
        """Whether a session that was made ahead is what is asked for."""
        asked = request.viewport
        same_size = asked is None or (asked.width, asked.height) == self.viewport
        as_usual = not (request.storageState or request.geoLocation)
        return same_size and as_usual and not (request.allow or request.block)

    def take_on(self, request: GetBrowser) -> None:
        """Become the session of a caller whose request it fits."""
        self.follows_tabs = request.tabs
        self.used = time.time()

    @property
    def crashed(self) -> bool:
        """Whether a page is gone that is shown, or that was made ahead."""
        page_handles = [tab.page_handle for tab in self.tabs.values()]
        if self._context.spare is not None:
            page_handles.append(self._context.spare)
        return any(page_handle.lost for page_handle in page_handles)

    # --- tabs ---

    def tab(self, page_id: str) -> Tab:
        """The tab of that id, which becomes the current one; an empty id means the current.

        Raises:
            NotFound: there is no such page.
        """
        wanted = page_id.strip() or self.current
        if wanted not in self.tabs:
            known = ", ".join(self.tabs) or "none: call /openPage first"
            asked = one_line(wanted)[:40]
            raise NotFound(f"pageId: no page '{asked}' in this browser (open pages: {known})")
        self.current = wanted
        return self.tabs[wanted]

    async def open_tab(self, url: str) -> Tab:
        """Make a page that shows nothing yet; `url` becomes its home.

        Raises:
            BadRequest: too many pages are open.
        """
        if len(self.tabs) >= MAX_TABS:
            raise BadRequest(f"{MAX_TABS} pages are open in this browser: close one first")
        return self._add_tab(await self._context.new_surface(), url)

    def _add_tab(self, page_handle: PageHandle, url: str) -> Tab:
        tab = Tab(str(self._next_id), url, page_handle, self.policy, self)
        tab.shown_before, page_handle.is_new = self.current, True
        self._next_id += 1
        self.tabs[tab.id] = tab
        self.current = tab.id
        return tab

    def _drop_tab(self, tab: Tab) -> None:
        del self.tabs[tab.id]
        if self.current == tab.id:
            self.current = next(reversed(self.tabs), "")

    async def close_tab(self, tab: Tab) -> bool:
        """Close a page and all that is stacked on it; False if it asked whether to leave it."""
        if not await tab.page_handle.close_unless_asked():
            return False
        self._drop_tab(tab)
        for page_handle in tab.page_handles[:-1]:
            await page_handle.close()
        return True

    async def close_if_refused(self, tab: Tab) -> bool:
        """Close a page that has just opened, if all it shows is a URL that the policy refuses.

        The only page of a browser stays, and shows the refusal.
        """
        page_handle, line = tab.page_handle, tab.failure
        is_new, page_handle.is_new = page_handle.is_new, False
        stacked = len(tab.page_handles) > 1
        if not (is_new and line and tab.refused and (stacked or len(self.tabs) > 1)):
            return False
        page_handle.closing = True
        place = tab.refused["place"]
        blocked = f"blocked: {place}: {self.unreached(f'http://{place}')}"
        for told in (line, page_handle.opened_line, blocked):
            self.pending.withdraw(told)
        self.pending.note(f"closed the page that opened: {line}", loud=True)
        if stacked:
            tab.page_handles.pop()
            tab.failure, tab.refused = "", {}
        else:
            self._drop_tab(tab)
            self.current = tab.shown_before if tab.shown_before in self.tabs else self.current
        await page_handle.close()
        with suppress(Error):
            await self.tabs[self.current].page_handle.page.bring_to_front()
        return True

    @property
    def arriving(self) -> bool:
        """Whether a pop-up is about to open."""
        return bool(self._arrivals)

    async def settle_arrivals(self) -> None:
        """Wait until pop-ups that are about to open can be observed."""
        if self._arrivals:
            await asyncio.wait(set(self._arrivals), timeout=self.deadline.to_act())

    # --- after a crash ---

    async def revive(self, tab: Tab, why: str) -> None:
        """Show a tab whose renderer is gone anew, at its URL."""
        self.downloads.restoring = True
        page_handle = await self.replace(tab)
        if tab.session_storage:
            await page_handle.page.add_init_script(session_storage_script(tab))
        await tab.goto(tab.last_url)
        self.pending.note(f"{why}: restored at {tab.last_url}", loud=True)

    async def leave(self, tab: Tab) -> None:
        """Show an empty page in place of one that crashes whenever it is loaded."""
        loss = tab.page_handle.loss
        await self.replace(tab)
        self.pending.note(f"{loss} again: {shortened(tab.last_url)} was left", loud=True)
        tab.last_url = "about:blank"

    async def replace(self, tab: Tab) -> PageHandle:
        """Exchange all surfaces of a tab for a new one, which shows nothing yet."""
        page_handle = await self._context.new_surface()
        gone, tab.page_handles = tab.page_handles, [page_handle]  # before they close: the tab stays
        for each in gone:
            await each.close()
        return page_handle

    async def rebuild(self, browser: Browser) -> None:
        """Make the context and all tabs anew in another Chromium."""
        await self.downloads.detach()
        self.lose()
        await self._context.open(browser)
        self._take_back()
        for tab in list(self.tabs.values()):
            await self.revive(tab, "the browser crashed")

    def lose(self) -> None:
        """Chromium is gone: nobody shall wait for its pages."""
        for tab in self.tabs.values():
            for page_handle in tab.page_handles:
                page_handle.mark_lost()

    async def remember(self, tab: Tab) -> None:
        """Stop watching a tab, and note cookies, storage and URL in case that Chromium dies."""
        context = self._context.context
        if context is None or tab.page_handle.lost or self.closed:
            return
        await self._storage.note(context, tab)
