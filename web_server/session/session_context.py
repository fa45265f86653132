"""A session's browser context in Chromium, behind its filtering proxy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Error, Page

from web_server.chromium.clipboard import Clipboard
from web_server.chromium.engine import Engine
from web_server.contract import GetBrowser, Viewport
from web_server.errors import BadRequest
from web_server.network.proxy import FilterProxy
from web_server.observe.observer import Observer
from web_server.session.downloads import Downloads
from web_server.session.page_handle import Host, PageHandle, PageHung, PageLost
from web_server.session.storage import Storage, storage_state_problem
from web_server.settle.settle_world import timers_script

log = logging.getLogger("web_server")

T = TypeVar("T")

PAGE_SECONDS = 30.0
"""Time limit of a new page, and of Playwright calls without another limit."""
NEW_PAGE_SECONDS = 20.0
"""Time limit of each of two attempts to make a page; then Chromium is given up."""


class SessionContext:
    """The browser context of a session; replaced when Chromium is replaced.

    Args:
        request: the client's request at getBrowser.
        storage: the cookies and local storage of a new context.
        proxy: the connection of its pages to the network; closed with the context.
        downloads: receives what its pages download.
        host: the session.
        token: the secret under which `timers.js` answers in its pages.
        engine: starts and watches Chromium.

    Attributes:
        context: Playwright's context; None before the first one.
        browser: its Chromium; None before the first one.
        closed: no context is made any more.
    """

    def __init__(
        self,
        request: GetBrowser,
        storage: Storage,
        proxy: FilterProxy,
        downloads: Downloads,
        host: Host,
        token: str,
        engine: Engine,
    ) -> None:
        viewport = request.viewport or Viewport()
        self.viewport = (viewport.width, viewport.height)
        self._geo = request.geoLocation
        self._storage = storage
        self._proxy = proxy
        self._proxy_url = ""
        self._downloads = downloads
        self._host = host
        self._token = token
        self._engine = engine
        self._making: asyncio.Task[PageHandle] | None = None
        self.context: BrowserContext | None = None
        self.browser: Browser | None = None
        self.closed = False

    @property
    def clipboard(self) -> Clipboard:
        """Chromium's clipboard."""
        assert self._engine.clipboard is not None
        return self._engine.clipboard

    @property
    def spare(self) -> PageHandle | None:
        """The page that was made before it is needed, if it is ready."""
        making = self._making
        if making is None or not making.done() or making.cancelled() or making.exception():
            return None
        return making.result()

    def unreached(self, url: str) -> str:
        """Return why the proxy refused or lost the connection to a URL's host, or empty."""
        parts = urlsplit(url)
        port = parts.port or (80 if parts.scheme == "http" else 443)
        return self._proxy.failures.get(f"{parts.hostname}:{port}", "")

    async def alive(self) -> bool:
        """Return whether Chromium responds."""
        return await self._engine.alive(self.browser)

    # --- the context ---

    async def open(self, browser: Browser) -> None:
        """Make the context: at the start, and again after Chromium was replaced.

        Raises:
            BadRequest: Chromium refuses the client's `storageState`.
            Error: from Playwright; the session then has no Chromium yet.
        """
        if not self._proxy_url:
            self._proxy_url = await self._proxy.start()
        self._drop_spare()
        context = self.context = await self._new_context(browser)
        try:
            if self.closed:
                # Closing does not wait for requests in progress: this context came after it.
                raise Error("the browser was closed meanwhile")
            context.set_default_timeout(PAGE_SECONDS * 1000)
            await asyncio.gather(
                context.grant_permissions(["geolocation"] if self._geo else []),
                context.add_init_script(timers_script(self._token)),
                Observer.prepare_context(context),
            )
            await self._make_spare(browser, context)
        except BaseException:
            await self._close_context()
            raise
        self.browser = browser

    async def _new_context(self, browser: Browser) -> BrowserContext:
        geo = self._geo
        try:
            making = browser.new_context(
                viewport={"width": self.viewport[0], "height": self.viewport[1]},
                device_scale_factor=1,
                proxy={"server": self._proxy_url},
                geolocation=geo.model_dump() if geo else None,  # type: ignore[arg-type]
                storage_state=self._storage.state(),  # type: ignore[arg-type]
            )
            return await asyncio.wait_for(making, PAGE_SECONDS)
        except asyncio.TimeoutError:
            raise Error("Chromium made no context in time") from None
        except (Error, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            if not self._storage.given or not await self._engine.alive(browser):
                raise
            raise BadRequest(storage_state_problem(error)) from None

    async def close(self) -> None:
        """Close the context, its downloads and the proxy."""
        self.closed = True
        self._drop_spare()
        await self._downloads.detach()
        await self._close_context()
        await self._proxy.stop()

    async def _close_context(self) -> None:
        if self.context is not None:
            try:
                await asyncio.wait_for(self.context.close(), 10)
            except (Error, asyncio.TimeoutError):
                pass  # Chromium ended, and the context with it

    # --- pages ---

    async def _make_spare(self, browser: Browser, context: BrowserContext) -> None:
        """Make the first page early: only a page knows the DevTools id of its context."""
        self._making = asyncio.ensure_future(self._make_page_handle(browser, context))
        spare = await self._making
        target = await _answer(spare, spare.activity.cdp.send("Target.getTargetInfo"))
        await self._downloads.attach(browser, target["targetInfo"]["browserContextId"])

    async def new_page_handle(self, seconds: float = PAGE_SECONDS) -> PageHandle:
        """Return an empty page.

        Args:
            seconds: how long to wait for it. A page that comes later is kept for the next call.

        Raises:
            PageHung: it was not ready in time.
            Error: Chromium makes no pages.
        """
        spare = self.spare
        if self._making is None or (self._making.done() and (spare is None or spare.lost)):
            assert self.context is not None and self.browser is not None
            making = self._make_page_handle(self.browser, self.context)
            self._making = asyncio.ensure_future(making)
            self._making.add_done_callback(_retrieve)
        try:
            page_handle = await asyncio.wait_for(asyncio.shield(self._making), seconds)
        except asyncio.TimeoutError:
            raise PageHung from None
        self._making = None
        return page_handle

    def _drop_spare(self) -> None:
        making, self._making = self._making, None
        if making is not None:
            making.cancel()

    async def _make_page_handle(self, browser: Browser, context: BrowserContext) -> PageHandle:
        return await self.page_handle_for(await self._new_page(browser, context))

    async def page_handle_for(self, page: Page) -> PageHandle:
        """Return the handle of a page that the server or another page opened, ready to observe."""
        page_handle = PageHandle(page, self._token, self._host)
        await _answer(page_handle, page_handle.attach())
        return page_handle

    async def _new_page(self, browser: Browser, context: BrowserContext) -> Page:
        """Make a page; give up a Chromium that makes none.

        Chromium may answer all other calls when the process that starts its renderers has died.
        """
        for _ in range(2):
            try:
                return await asyncio.wait_for(context.new_page(), NEW_PAGE_SECONDS)
            except asyncio.TimeoutError:
                log.warning("Chromium made no page within %g s", NEW_PAGE_SECONDS)
        self._engine.give_up(browser)
        raise Error("Chromium makes no pages any more")


async def _answer(page_handle: PageHandle, asked: Coroutine[Any, Any, T]) -> T:
    """Return what a new page answers; raise Error if its renderer died before it answered."""
    try:
        return await page_handle.guard(asked, PAGE_SECONDS)
    except (PageLost, PageHung):
        raise Error("the renderer of a new page died") from None


def _retrieve(task: asyncio.Task[PageHandle]) -> None:
    """Mark the exception of a page that no call waits for as retrieved."""
    if not task.cancelled():
        task.exception()
