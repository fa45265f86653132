"""One leased browser: its tabs by their ids on the wire, and its pending events."""

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
from web_server.errors import RETRY_SECONDS, BadRequest, NotFound, Unavailable
from web_server.network.policy import Policy
from web_server.network.proxy import FilterProxy
from web_server.session.closed_tabs import ClosedTab, ClosedTabs
from web_server.session.downloads import Downloads
from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle, PageHung
from web_server.session.pending_events import PendingEvents
from web_server.session.secret_book import SecretBook
from web_server.session.session_context import SessionContext
from web_server.session.storage import Storage, session_storage_script
from web_server.session.uploads import Uploads
from web_server.view import one_line, shortened

MAX_TABS = 20

T = TypeVar("T")


class Session:
    """A leased browser.

    It outlives its browser context: when Chromium crashes, `rebuild` makes a new context with the
    cookies, storage and URLs of the old one.

    Args:
        request: the client's request at getBrowser.
        policy: what its pages may reach.
        folder: parent of the session's folder.
        max_download: size limit of a download in bytes.
        engine: starts and watches Chromium.
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
        self.secrets = SecretBook(request.secrets)
        self.deadline = Deadline()
        self._next_id = 0
        self._arrivals: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
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
        """Width and height of the viewport, in CSS pixels."""
        return self._context.viewport

    @property
    def browser(self) -> Browser | None:
        """The session's Chromium; None before the first one."""
        return self._context.browser

    @property
    def clipboard(self) -> Clipboard:
        """Chromium's clipboard, which its sessions use one at a time."""
        return self._context.clipboard

    @property
    def closed(self) -> bool:
        """Whether the session is closing."""
        return self._context.closed

    # --- `Host`: what pages report and ask ---

    async def alive(self) -> bool:
        """Return whether Chromium responds."""
        return await self._context.alive()

    def unreached(self, url: str) -> str:
        """Return why the proxy refused or lost the connection to a URL's host, or empty."""
        return self._context.unreached(url)

    def popup(self, page_handle: PageHandle, page: Page) -> None:
        """Add a page that another page opened, once it can be observed."""
        task = asyncio.ensure_future(self._add_popup(page_handle, page))
        self._arrivals.add(task)
        task.add_done_callback(self._arrivals.discard)

    async def _add_popup(self, opener: PageHandle, page: Page) -> None:
        tab = next((each for each in self.tabs.values() if opener in each.page_handles), None)
        try:
            if tab is None or len(self.tabs) >= MAX_TABS:
                self.pending.note("closed a pop-up: too many tabs are open", in_tree=True)
                await page.close()
                return
            page_handle = await self._context.page_handle_for(page)
            if self.follows_tabs:
                opened = self._add_tab(page_handle, page.url)
                page_handle.opened_line = f"opened tab {self.current}: {shortened(opened.url())}"
                self.pending.note(page_handle.opened_line)
            elif tab.push(page_handle):
                page_handle.opened_line = f"opened in place: {shortened(tab.url())}"
                self.pending.note(page_handle.opened_line)
            else:
                self.pending.note("closed a pop-up: too many are open", in_tree=True)
                await page.close()
        except Error:
            pass  # it closed itself or crashed before it could be observed
        finally:
            opener.activity.window_opened()

    def page_closed(self, page_handle: PageHandle) -> None:
        """Show the opener of a page that closed, or another tab."""
        page_handle.mark_lost()
        if self.closed or page_handle.closing:
            return
        for tab in list(self.tabs.values()):
            if page_handle in tab.page_handles and (
                len(tab.page_handles) > 1 or len(self.tabs) > 1
            ):
                tab.page_handles.remove(page_handle)
                line = f"a page of tab {tab.id} was closed"
                self.pending.note(line)
                if not tab.page_handles:
                    self.closed_tabs.add(ClosedTab(tab, page_handle, self.current, line))
                    self._drop_tab(tab)

    def _reopen_closed_tabs(self) -> None:
        """Add the tabs again that closed because Chromium crashed.

        Each keeps its lost page, so a tab that cannot be restored now is restored when needed.
        """
        for closed in self.closed_tabs.take():
            closed.tab.page_handles.append(closed.page_handle)
            self.tabs[closed.tab.id] = closed.tab
            self.current = closed.current
            self.pending.withdraw(closed.line)
        self.tabs = dict(sorted(self.tabs.items(), key=lambda item: int(item[0])))

    @asynccontextmanager
    async def extra_page(self) -> AsyncIterator[PageHandle]:
        """Open a page that is not a tab, and close it at the end of the block."""
        page_handle = await self._context.new_page_handle(self.deadline.to_act())
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
        """Make the context in a Chromium; see `SessionContext.open`."""
        await self._context.open(browser)

    async def in_chromium(self, work: Callable[[Browser], Awaitable[T]]) -> T:
        """Run work in the present Chromium; see `Engine.do`."""
        return await self.engine.do(work, lambda: self.closed or self.deadline.left <= 0)

    async def close(self) -> None:
        """Close the context and the proxy, and remove the session's folder."""
        for task in [*self._arrivals, *self._closing]:
            task.cancel()
        await self._context.close()
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    def fits(self, request: GetBrowser) -> bool:
        """Return whether this spare session has what a request asks for."""
        viewport = request.viewport
        same_size = viewport is None or (viewport.width, viewport.height) == self.viewport
        default = not (request.storageState or request.geoLocation)
        return same_size and default and not (request.allow or request.block)

    def assign(self, request: GetBrowser) -> None:
        """Assign this spare session to a request that it fits."""
        self.follows_tabs = request.tabs
        self.secrets = SecretBook(request.secrets)
        self.used = time.time()

    @property
    def crashed(self) -> bool:
        """Whether the page of a tab, or the spare page, is lost."""
        page_handles = [tab.page_handle for tab in self.tabs.values()]
        if self._context.spare is not None:
            page_handles.append(self._context.spare)
        return any(page_handle.lost for page_handle in page_handles)

    # --- tabs ---

    def tab(self, page_id: str) -> Tab:
        """Return a tab, and make it the current one.

        Args:
            page_id: its id; empty for the current tab.

        Raises:
            NotFound: no tab has that id.
        """
        tab_id = page_id.strip() or self.current
        if tab_id not in self.tabs:
            known = ", ".join(self.tabs) or "none: call /openPage first"
            asked = one_line(tab_id)[:40]
            raise NotFound(f"pageId: no page '{asked}' in this browser (open pages: {known})")
        self.current = tab_id
        return self.tabs[tab_id]

    async def open_tab(self, url: str) -> Tab:
        """Open an empty tab, with `url` as its home.

        Raises:
            BadRequest: too many pages are open.
            Unavailable: Chromium is too busy to open a page.
        """
        if len(self.tabs) >= MAX_TABS:
            raise BadRequest(f"{MAX_TABS} pages are open in this browser: close one first")
        try:
            page_handle = await self._context.new_page_handle(self.deadline.to_act())
        except PageHung:
            raise Unavailable(
                "the browser is busy and opened no page in time: send the request again",
                retry_after=RETRY_SECONDS,
            ) from None
        return self._add_tab(page_handle, url)

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
        """Close a tab and its pop-ups; return False if its page asks whether to leave it."""
        if not await tab.page_handle.close_unless_asked():
            return False
        self._drop_tab(tab)
        for page_handle in tab.page_handles[:-1]:
            await page_handle.close()
        return True

    async def close_if_refused(self, tab: Tab) -> bool:
        """Close a page that just opened at a URL that the policy refuses; return whether it did.

        The only page of a browser stays and shows the refusal.
        """
        page_handle, line = tab.page_handle, tab.failure
        is_new, page_handle.is_new = page_handle.is_new, False
        stacked = len(tab.page_handles) > 1
        if not (is_new and line and tab.refused and (stacked or len(self.tabs) > 1)):
            return False
        page_handle.closing = True
        place = tab.refused["place"]
        blocked = f"blocked: {place}: {self.unreached(f'http://{place}')}"
        for each in (line, page_handle.opened_line, blocked):
            self.pending.withdraw(each)
        self.pending.note(f"closed the page that opened: {line}", in_tree=True)
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
        """Whether a pop-up is opening."""
        return bool(self._arrivals)

    async def settle_arrivals(self) -> None:
        """Wait until pop-ups that are opening can be observed."""
        if self._arrivals:
            await asyncio.wait(set(self._arrivals), timeout=self.deadline.to_act())

    # --- after a crash ---

    async def revive(self, tab: Tab, why: str) -> None:
        """Load a tab whose page is lost again, at its URL."""
        self.downloads.restoring = True
        page_handle = await self.replace(tab)
        if tab.session_storage:
            await page_handle.page.add_init_script(session_storage_script(tab))
        await tab.goto(tab.last_url)
        self.pending.note(f"{why}: restored at {tab.last_url}", in_tree=True)

    async def leave(self, tab: Tab) -> None:
        """Show an empty page in place of one that crashed again, or exceeded a limit."""
        lost = tab.page_handle
        await self.replace(tab)
        url = shortened(tab.last_url)
        if lost.excess:
            tab.failure = f"{url} was closed: {lost.loss}"
            self.pending.note(tab.failure)
        else:
            self.pending.note(f"{lost.loss} again: {url} was left", in_tree=True)
        tab.last_url = "about:blank"

    async def replace(self, tab: Tab) -> PageHandle:
        """Replace the page of a tab, with its pop-ups, by an empty one.

        The old pages close in the background: one that hangs takes seconds.

        Raises:
            PageHung: Chromium makes no page in time.
        """
        page_handle = await self._context.new_page_handle(self.deadline.to_act())
        old, tab.page_handles = tab.page_handles, [page_handle]  # before they close: the tab stays
        for each in old:
            task = asyncio.ensure_future(each.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return page_handle

    async def rebuild(self, browser: Browser) -> None:
        """Make the context and all tabs again in another Chromium."""
        await self.downloads.detach()
        self.lose()
        await self._context.open(browser)
        self._reopen_closed_tabs()
        for tab in list(self.tabs.values()):
            await self.revive(tab, "the browser crashed")

    def lose(self) -> None:
        """Mark all pages as lost, after Chromium ended."""
        for tab in self.tabs.values():
            for page_handle in tab.page_handles:
                page_handle.mark_lost()

    async def remember(self, tab: Tab) -> None:
        """Stop watching a tab, and save cookies, storage and URL in case Chromium crashes."""
        context = self._context.context
        if context is None or tab.page_handle.lost or self.closed:
            return
        await self._storage.save(context, tab)
