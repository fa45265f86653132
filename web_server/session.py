"""One leased browser: a context of the shared Chromium with its pages, downloads and proxy."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Error, Page

from web_server.contract import GetBrowser
from web_server.downloads import Downloads
from web_server.errors import BadRequest, NotFound
from web_server.observe import Observer
from web_server.page import Tab
from web_server.policy import Policy
from web_server.proxy import FilterProxy
from web_server.settle_world import timers_script
from web_server.storage import Storage, session_storage_script
from web_server.surface import Surface
from web_server.uploads import Uploads

MAX_TABS = 20
MAX_LINES = 50
_PAGE_SECONDS = 30.0


class Session:
    """A leased browser, by the id that the client holds.

    It outlives its browser context: when Chromium dies, `revive` makes a new context with the
    cookies, storage, pages and URLs of the old one.

    Args:
        request: what the client asked for at getBrowser.
        policy: what its pages may reach.
        folder: where folders of sessions are made.
        max_download: the largest download in bytes.
        alive: tells whether a Chromium is the present one and answers.
    """

    def __init__(
        self,
        request: GetBrowser,
        policy: Policy,
        folder: Path,
        max_download: int,
        alive: Callable[[Browser | None], Awaitable[bool]],
    ) -> None:
        self._alive = alive
        self.id = secrets.token_hex(16)
        self.follows_tabs = request.tabs
        self.lock = asyncio.Lock()
        self.tabs: dict[str, Tab] = {}
        self.current = ""
        self.context: BrowserContext | None = None
        self.browser: Browser | None = None
        self.folder = folder / self.id
        self.events: list[str] = []
        self.notices: list[str] = []
        self.dialogs: list[str] = []
        self._same_dialog = (0, "")
        self.next_answer: tuple[bool, str | None] | None = None
        self.used = time.time()
        self._request = request
        self._policy = policy
        self._token = secrets.token_hex(8)
        self._next_id = 0
        self._arrivals: set[asyncio.Task[None]] = set()
        self._storage = Storage(request.storageState)
        self.closed = False
        self._spare: Surface | None = None
        viewport = request.viewport
        self.viewport = (viewport.width, viewport.height) if viewport else (1280, 720)
        self.downloads = Downloads(self.id, self.folder, max_download, self.note, self._owns)
        self.uploads = Uploads(self.folder / "uploads", self.downloads)
        self.rounds = self.folder / "rounds"
        self.rounds.mkdir()
        self._proxy = FilterProxy(policy, self._on_refused)
        self._proxy_url = ""

    # --- what surfaces tell and ask us (see `surface.Host`) ---

    async def alive(self) -> bool:
        """Whether the Chromium that the session lives in answers."""
        return await self._alive(self.browser)

    def note(self, line: str, *, loud: bool = False) -> None:
        """Keep a line for the next observation; `loud` ones are shown in the tree as well."""
        for lines in (self.events, self.notices) if loud else (self.events,):
            if len(lines) < MAX_LINES and line not in lines:
                lines.append(line)

    def tell_dialog(self, line: str) -> None:
        """Keep a line about a dialog for the next observation."""
        count, last = self._same_dialog
        if self.dialogs and line == last:
            self._same_dialog = (count + 1, line)
            self.dialogs[-1] = f"{line} ({count + 1} times)"
        elif len(self.dialogs) < MAX_LINES:
            self._same_dialog = (1, line)
            self.dialogs.append(line)

    def dialog_answer(self) -> tuple[bool, str | None]:
        """The answer that was ordered for the next dialog; else it is accepted."""
        answer, self.next_answer = self.next_answer, None
        return answer or (True, None)

    def popup(self, surface: Surface, page: Page) -> None:
        """A page opened another one: take it in once it can be observed."""
        task = asyncio.ensure_future(self._take_in(surface, page))
        self._arrivals.add(task)
        task.add_done_callback(self._arrivals.discard)

    async def _take_in(self, opener: Surface, page: Page) -> None:
        tab = next((each for each in self.tabs.values() if opener in each.surfaces), None)
        surface = Surface(page, self._token, self)
        try:
            if tab is None or len(self.tabs) >= MAX_TABS:
                self.note("closed a pop-up: too many tabs are open", loud=True)
                await page.close()
                return
            await asyncio.wait_for(surface.attach(), _PAGE_SECONDS)
            if self.follows_tabs:
                self._add_tab(surface, page.url)
                self.note(f"opened tab {self.current}: {page.url}")
            elif tab.push(surface):
                self.note(f"opened in place: {page.url}")
            else:
                self.note("closed a pop-up: too many are open", loud=True)
                await page.close()
        except (Error, asyncio.TimeoutError):
            pass  # it closed itself before it could be looked at
        finally:
            opener.activity.window_opened()

    def surface_closed(self, surface: Surface) -> None:
        """A page closed: its opener, or another tab, is seen again."""
        surface.mark_lost()
        if self.closed:
            return
        for tab in list(self.tabs.values()):
            if surface in tab.surfaces and (len(tab.surfaces) > 1 or len(self.tabs) > 1):
                tab.surfaces.remove(surface)
                self.note(f"a page of tab {tab.id} was closed")
                if not tab.surfaces:
                    self._drop_tab(tab)

    def _owns(self, frame_id: str) -> bool:
        surfaces = [surface for tab in self.tabs.values() for surface in tab.surfaces]
        if self._spare is not None:
            surfaces.append(self._spare)
        return any(frame_id in surface.activity.frames for surface in surfaces)

    def _on_refused(self, place: str, reason: str) -> None:
        self.note(f"blocked: {place}: {reason}")

    # --- life ---

    async def open(self, browser: Browser) -> None:
        """Make the browser context: at the start, and again when Chromium was replaced.

        Raises:
            BadRequest: the client's `storageState` is none.
            Error: of the browser library; the session then belongs to no Chromium yet.
        """
        if not self._proxy_url:
            self._proxy_url = await self._proxy.start()
        context = self.context = await self._new_context(browser)
        try:
            if self.closed:
                # Closing does not wait for requests at work: this context came after its end.
                raise Error("the browser was closed meanwhile")
            context.set_default_timeout(_PAGE_SECONDS * 1000)
            await asyncio.gather(
                context.grant_permissions(["geolocation"] if self._request.geoLocation else []),
                context.add_init_script(timers_script(self._token)),
                Observer.prepare_context(context),
            )
            await self._first_surface(browser, context)
        except BaseException:
            await self._close_context()
            raise
        self.browser = browser

    async def _new_context(self, browser: Browser) -> BrowserContext:
        geo = self._request.geoLocation
        try:
            return await browser.new_context(
                viewport={"width": self.viewport[0], "height": self.viewport[1]},
                device_scale_factor=1,
                proxy={"server": self._proxy_url},
                geolocation=geo.model_dump() if geo else None,  # type: ignore[arg-type]
                storage_state=self._storage.state(),  # type: ignore[arg-type]
            )
        except (Error, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if not self._storage.given or not await self._alive(browser):
                raise
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise BadRequest(f"storageState cannot be used: {reason}") from None

    async def _first_surface(self, browser: Browser, context: BrowserContext) -> None:
        """Make a page ahead of its use: its context's DevTools id is told only by a page."""
        page = await context.new_page()
        self._spare = Surface(page, self._token, self)
        await self._spare.attach()
        target = await self._spare.activity.cdp.send("Target.getTargetInfo")
        await self.downloads.attach(browser, target["targetInfo"]["browserContextId"])

    async def close(self) -> None:
        """End the context, the proxy and the session's folder."""
        self.closed = True
        for task in list(self._arrivals):
            task.cancel()
        await self.downloads.detach()
        await self._close_context()
        await self._proxy.stop()
        await asyncio.to_thread(shutil.rmtree, self.folder, True)

    async def _close_context(self) -> None:
        if self.context is not None:
            try:
                await asyncio.wait_for(self.context.close(), 10)
            except (Error, asyncio.TimeoutError):
                pass  # Chromium is gone already, and the context with it

    def fits(self, request: GetBrowser) -> bool:
        """Whether a session that was made ahead is what is asked for; it then takes that on."""
        if request.storageState or request.geoLocation or request.viewport:
            return False
        self._request = request
        self.follows_tabs = request.tabs
        self.used = time.time()
        return True

    @property
    def crashed(self) -> bool:
        """Whether the page of one of its tabs is gone."""
        return any(tab.surface.lost for tab in self.tabs.values())

    # --- tabs ---

    def tab(self, page_id: str) -> Tab:
        """The tab of that id, which becomes the current one; an empty id means the current.

        Raises:
            NotFound: there is no such page.
        """
        wanted = page_id.strip() or self.current
        if wanted not in self.tabs:
            known = ", ".join(self.tabs) or "none: call /openPage first"
            raise NotFound(f"no page '{wanted}' in this browser (open pages: {known})")
        self.current = wanted
        return self.tabs[wanted]

    async def open_tab(self, url: str) -> Tab:
        """Make a page that shows nothing yet; `url` becomes its home.

        Raises:
            BadRequest: too many pages are open.
        """
        if len(self.tabs) >= MAX_TABS:
            raise BadRequest(f"{MAX_TABS} pages are open in this browser: close one first")
        return self._add_tab(await self._new_surface(), url)

    async def _new_surface(self) -> Surface:
        surface, self._spare = self._spare, None
        if surface is not None and not surface.lost:
            return surface
        try:
            return await self._make_surface()
        except Error:
            # A renderer may die while it starts, and Chromium be well.
            if self.closed or not await self.alive():
                raise
            return await self._make_surface()

    async def _make_surface(self) -> Surface:
        assert self.context is not None
        surface = Surface(await self.context.new_page(), self._token, self)
        await surface.attach()
        return surface

    def _add_tab(self, surface: Surface, url: str) -> Tab:
        tab = Tab(str(self._next_id), url, surface, self._policy, self)
        self._next_id += 1
        self.tabs[tab.id] = tab
        self.current = tab.id
        return tab

    def _drop_tab(self, tab: Tab) -> None:
        del self.tabs[tab.id]
        if self.current == tab.id:
            self.current = next(reversed(self.tabs), "")

    async def close_tab(self, tab: Tab) -> None:
        """Close a page and all that is stacked on it."""
        self._drop_tab(tab)
        for surface in tab.surfaces:
            await surface.close()

    @property
    def arriving(self) -> bool:
        """Whether a pop-up is about to open."""
        return bool(self._arrivals)

    async def settle_arrivals(self) -> None:
        """Wait until pop-ups that are about to open can be observed."""
        if self._arrivals:
            await asyncio.wait(set(self._arrivals), timeout=_PAGE_SECONDS)

    # --- after a crash ---

    async def revive(self, tab: Tab, why: str) -> None:
        """Show a tab whose renderer is gone anew, at its URL."""
        for surface in tab.surfaces:
            await surface.close()
        surface = await self._new_surface()
        tab.surfaces = [surface]
        if tab.session_storage:
            await surface.page.add_init_script(session_storage_script(tab))
        await tab.goto(tab.last_url)
        self.note(f"{why}: restored at {tab.last_url}", loud=True)

    async def rebuild(self, browser: Browser) -> None:
        """Make the context and all tabs anew in another Chromium."""
        await self.downloads.detach()
        for tab in self.tabs.values():
            for surface in tab.surfaces:
                surface.mark_lost()
        await self.open(browser)
        for tab in list(self.tabs.values()):
            await self.revive(tab, "the browser crashed")

    def lose(self) -> None:
        """Chromium is gone: nobody shall wait for its pages."""
        for tab in self.tabs.values():
            for surface in tab.surfaces:
                surface.mark_lost()

    async def remember(self, tab: Tab) -> None:
        """Stop watching a tab, and note cookies, storage and URL in case that Chromium dies."""
        if self.context is None or tab.surface.lost or self.closed:
            return
        await self._storage.note(self.context, tab)
