"""A spare session, so that the next caller need not wait for one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from playwright.async_api import Browser, Error

from web_server.contract import GetBrowser
from web_server.errors import Unavailable
from web_server.session.session import Session

log = logging.getLogger("web_server")

AFTER_SECONDS = 1.0
"""Delay after a lease, so that the first page of that lease is not slowed down."""
AT_LATEST_SECONDS = 15.0
"""How long requests in progress may delay the next spare session."""


class Spare:
    """Keep one session ready, on the event loop.

    Args:
        make: makes a session with default options.
        at_work: returns whether a request is in progress, which would be slowed down.

    Attributes:
        session: the spare session, if it is ready.
    """

    def __init__(self, make: Callable[[], Awaitable[Session]], at_work: Callable[[], bool]) -> None:
        self._make = make
        self._at_work = at_work
        self._making: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._stopped = False
        self.session: Session | None = None

    def take(self, request: GetBrowser, browser: Browser) -> Session | None:
        """Return the spare session if it works and fits the request; else None.

        Args:
            request: what the caller asks for.
            browser: the running Chromium.
        """
        session = self.session
        if session is None:
            return None
        if session.browser is not browser or session.crashed:
            self.session = None
            self._in_background(session.close())
            return None
        if not session.fits(request):
            return None
        self.session = None
        session.assign(request)
        return session

    def replenish(self) -> None:
        """Start making a session in the background, unless one is ready or in progress."""
        if self.session is None and self._making is None and not self._stopped:
            self._making = asyncio.ensure_future(self._make_later())

    async def make(self) -> None:
        """Make the session now."""
        try:
            session = await self._make()
        except (Error, Unavailable) as error:
            if not self._stopped:
                log.warning("making a spare session failed: %s", error)
            return
        if self._stopped:
            await session.close()
        else:
            self.session = session

    async def _make_later(self) -> None:
        try:
            await self._until_idle()
            await self.make()
        finally:
            self._making = None

    async def _until_idle(self) -> None:
        """Wait until no request is in progress, above all the first page of the last lease."""
        end = time.monotonic() + AT_LATEST_SECONDS
        await asyncio.sleep(AFTER_SECONDS)
        while self._at_work() and time.monotonic() < end:
            await asyncio.sleep(AFTER_SECONDS / 10)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def make_no_more(self) -> None:
        """Stop making sessions."""
        self._stopped = True

    async def stop(self) -> None:
        """Stop making sessions, and close the spare one."""
        self.make_no_more()
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)
        await asyncio.gather(*self._closing, return_exceptions=True)
        session, self.session = self.session, None
        if session is not None:
            await session.close()
