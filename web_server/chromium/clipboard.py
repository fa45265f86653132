"""A separate clipboard for each session of a Chromium.

Chromium has one clipboard for all sessions. The server keeps it empty: it reads a copied text at
once and stores it with the session, and restores it only while that session pastes. So no session
can paste the text of another one. Pages have no permission to read the clipboard.

Limits: a page may copy by a button during the few milliseconds in which another session pastes. A
copy by a button in a frame of another site is not detected; it is stored only if no other session
acts before the text is pasted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar
from weakref import WeakSet

from playwright.async_api import Browser, CDPSession, Error, Page

from web_server.errors import Conflict
from web_server.javascript import load_script

T = TypeVar("T")

WAIT_SECONDS = 5.0
"""Limit for waiting until another session has copied or pasted."""

LONGEST = 10_000_000
"""Longer texts, in characters, are not stored."""

_EMPTY = {"text/plain": ""}

Copied = dict[str, str]
"""Copied texts by type: `text/plain`, `text/html` and others."""


class Owner(Protocol):
    """A session that copies and pastes.

    Attributes:
        copied: the texts that it copied last.
        lock: held while it acts.
    """

    copied: Copied
    lock: asyncio.Lock


class Clipboard:
    """The clipboard of a Chromium. One session uses it at a time.

    Args:
        browser: the Chromium.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._lock = asyncio.Lock()
        self._page: Page | None = None
        self._cdp: CDPSession | None = None
        self._acted: WeakSet[Owner] = WeakSet()

    def begins(self, owner: Owner) -> None:
        """Note that a session acts, and may copy something undetected."""
        self._acted.add(owner)

    async def paste(self, owner: Owner, press: Callable[[], Awaitable[None]]) -> None:
        """Press keys that paste the text that the session copied.

        Raises:
            Conflict: another session is using the clipboard.
        """
        async with self._lent(owner):
            await self._safely(lambda: self._write(owner.copied))
            await press()

    async def copy(self, owner: Owner, press: Callable[[], Awaitable[None]]) -> str:
        """Press keys that copy or cut, and store the copied text.

        Returns:
            the copied text; empty if nothing was copied.

        Raises:
            Conflict: another session is using the clipboard.
        """
        async with self._lent(owner):
            await press()
            return await self._take(owner)

    async def keep(self, owner: Owner) -> str:
        """Store what the page copied after a click.

        Returns:
            its text; empty without one, or if another session is using the clipboard.
        """
        try:
            async with self._lent(owner):
                return await self._take(owner)
        except Conflict:
            return ""

    @asynccontextmanager
    async def _lent(self, owner: Owner) -> AsyncIterator[None]:
        try:
            await asyncio.wait_for(self._lock.acquire(), WAIT_SECONDS)
        except asyncio.TimeoutError:
            raise Conflict("the clipboard is in use by another session: try again") from None
        try:
            if not set(self._acted) - {owner}:
                await self._take(owner)
            yield
        finally:
            try:
                await self._safely(lambda: self._write({}))
            finally:
                self._acted = WeakSet(each for each in self._acted if each.lock.locked())
                self._lock.release()

    async def _take(self, owner: Owner) -> str:
        """Store the content of the clipboard with the session."""
        found = await self._safely(self._read)
        owner.copied = found or owner.copied
        return found.get("text/plain", "")

    # --- access by a separate page ---

    async def _safely(self, work: Callable[[], Awaitable[T]]) -> T:
        """Use the clipboard's page; retry once with a new one if its renderer crashed."""
        try:
            await self._open()
            return await work()
        except Error:
            self._page = None
            await self._open()
            return await work()

    async def _open(self) -> None:
        if self._page is None:
            context = await self._browser.new_context(offline=True)
            page = await context.new_page()
            self._cdp = await context.new_cdp_session(page)
            self._page = page

    async def _read(self) -> Copied:
        assert self._page is not None and self._cdp is not None
        await self._page.evaluate(load_script("chromium", "capture_paste"), LONGEST)
        key = {"key": "v", "code": "KeyV"}
        press = {"type": "rawKeyDown", "commands": ["paste"], **key}
        await self._cdp.send("Input.dispatchKeyEvent", press)
        await self._cdp.send("Input.dispatchKeyEvent", {"type": "keyUp", **key})
        pasted: Copied = await self._page.evaluate("pasted")
        return pasted

    async def _write(self, copied: Copied) -> None:
        assert self._page is not None
        await self._page.evaluate(load_script("chromium", "copy"), copied or _EMPTY)
