"""A session's own part of Chromium: a browser context behind a filtering proxy."""

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
from web_server.session.storage import Storage
from web_server.settle.settle_world import timers_script

log = logging.getLogger("web_server")

T = TypeVar("T")

PAGE_SECONDS = 30.0
"""How long a new page, or whatever sets no limit of its own, may take."""

NEW_PAGE_SECONDS = 20.0
"""How long Chromium may take to make a page, twice, until it is given up."""


class SessionContext:
    """The browser context of a session, made anew when Chromium was replaced.

    Args:
        wanted: what the client asked for at getBrowser.
        storage: the cookies and the local storage that a context begins with.
        proxy: the way of all its pages to the network; it ends with us.
        downloads: what its pages download.
        host: the session.
        token: the secret under which `timers.js` answers in its pages.
        engine: starts and watches the Chromium that it lives in.

    Attributes:
        context: the browser library's context; None before the first one.
        browser: the Chromium that it lives in; None before that.
        spare: a page that was made ahead of its use, if there is one.
        closed: whether the end has begun, after which no context is made.
    """

    def __init__(
        self,
        wanted: GetBrowser,
        storage: Storage,
        proxy: FilterProxy,
        downloads: Downloads,
        host: Host,
        token: str,
        engine: Engine,
    ) -> None:
        viewport = wanted.viewport or Viewport()
        self.viewport = (viewport.width, viewport.height)
        self._geo = wanted.geoLocation
        self._storage = storage
        self._proxy = proxy
        self._proxy_url = ""
        self._downloads = downloads
        self._host = host
        self._token = token
        self._engine = engine
        self.context: BrowserContext | None = None
        self.browser: Browser | None = None
        self.spare: PageHandle | None = None
        self.closed = False

    @property
    def clipboard(self) -> Clipboard:
        """The clipboard of the Chromium that it lives in."""
        assert self._engine.clipboard is not None
        return self._engine.clipboard

    def unreached(self, url: str) -> str:
        """Why no connection to the host of a URL was made; empty if one was."""
        parts = urlsplit(url)
        port = parts.port or (80 if parts.scheme == "http" else 443)
        return self._proxy.failures.get(f"{parts.hostname}:{port}", "")

    async def alive(self) -> bool:
        """Whether the Chromium that it lives in answers."""
        return await self._engine.alive(self.browser)

    async def open(self, browser: Browser) -> None:
        """Make the context: at the start, and again when Chromium was replaced.

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
            context.set_default_timeout(PAGE_SECONDS * 1000)
            await asyncio.gather(
                context.grant_permissions(["geolocation"] if self._geo else []),
                context.add_init_script(timers_script(self._token)),
                Observer.prepare_context(context),
            )
            await self._first_surface(browser, context)
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
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise BadRequest(f"storageState cannot be used: {reason}") from None

    async def _first_surface(self, browser: Browser, context: BrowserContext) -> None:
        """Make a page ahead of its use: its context's DevTools id is told only by a page."""
        self.spare = await self.surface_of(await self._new_page(browser, context))
        asking = self.spare.activity.cdp.send("Target.getTargetInfo")
        target = await _answer(self.spare, asking)
        await self._downloads.attach(browser, target["targetInfo"]["browserContextId"])

    async def surface_of(self, page: Page) -> PageHandle:
        """A new page, made by us or opened by another one, as a surface that can be looked at."""
        page_handle = PageHandle(page, self._token, self._host)
        await _answer(page_handle, page_handle.attach())
        return page_handle

    async def _new_page(self, browser: Browser, context: BrowserContext) -> Page:
        """Make a page; a Chromium that answers all else and makes none is given up.

        It is so when the process from which it starts its renderers has died.
        """
        for _ in range(2):
            try:
                return await asyncio.wait_for(context.new_page(), NEW_PAGE_SECONDS)
            except asyncio.TimeoutError:
                log.warning("chromium made no page within %g s", NEW_PAGE_SECONDS)
        self._engine.give_up(browser)
        raise Error("Chromium makes no pages any more")

    async def new_surface(self) -> PageHandle:
        """A page that shows nothing yet."""
        page_handle, self.spare = self.spare, None
        if page_handle is not None and not page_handle.lost:
            return page_handle
        assert self.context is not None and self.browser is not None
        return await self.surface_of(await self._new_page(self.browser, self.context))

    async def close(self) -> None:
        """End the context, its downloads and the proxy."""
        self.closed = True
        await self._downloads.detach()
        await self._close_context()
        await self._proxy.stop()

    async def _close_context(self) -> None:
        if self.context is not None:
            try:
                await asyncio.wait_for(self.context.close(), 10)
            except (Error, asyncio.TimeoutError):
                pass  # Chromium is gone already, and the context with it


async def _answer(page_handle: PageHandle, asked: Coroutine[Any, Any, T]) -> T:
    """What a new page answers. One whose renderer dies at its start never does, and is an error."""
    try:
        return await page_handle.guard(asked, PAGE_SECONDS)
    except (PageLost, PageHung):
        raise Error("the renderer of a new page died") from None
