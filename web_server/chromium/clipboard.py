"""A clipboard for each session, where Chromium has a single one for all of them.

Between its uses Chromium's clipboard is empty. What a session copies is read at once and kept with
the session; when it presses the keys that paste, it is put back for that moment. So no session
pastes what another one has copied, a page of another task with another account among them. Pages
cannot read the clipboard by themselves: that permission is denied.

What is left open: a page that copies by a button in the few milliseconds in which another session
presses such keys, and a button in a frame of another site, which is not noticed. That copy is kept
only if no other session has acted before the text is pasted.
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
"""How long a session waits for another one that is just copying or pasting."""

LONGEST = 10_000_000
"""So many characters of each type are kept; what is longer is not."""

_EMPTY = {"text/plain": ""}

Copied = dict[str, str]
"""What was copied, by type: `text/plain`, `text/html` and whatever else a page puts there."""


class Owner(Protocol):
    """A session, which keeps what it has copied.

    Attributes:
        copied: that; empty before the first time.
        lock: held while it acts.
    """

    copied: Copied
    lock: asyncio.Lock


class Clipboard:
    """The clipboard of one Chromium, lent to one session at a time.

    Args:
        browser: that Chromium.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._lock = asyncio.Lock()
        self._page: Page | None = None
        self._cdp: CDPSession | None = None
        self._acted: WeakSet[Owner] = WeakSet()

    def begins(self, owner: Owner) -> None:
        """A session begins to act, and may copy something unnoticed."""
        self._acted.add(owner)

    async def paste(self, owner: Owner, press: Callable[[], Awaitable[None]]) -> None:
        """Press keys that paste, with what the session has copied in the clipboard.

        Raises:
            Conflict: another session does not let go of the clipboard.
        """
        async with self._lent(owner):
            await self._safely(lambda: self._write(owner.copied))
            await press()

    async def copy(self, owner: Owner, press: Callable[[], Awaitable[None]]) -> str:
        """Press keys that copy or cut, and keep what that copies.

        Returns:
            the text that was copied; empty if nothing was.

        Raises:
            Conflict: another session does not let go of the clipboard.
        """
        async with self._lent(owner):
            await press()
            return await self._take(owner)

    async def keep(self, owner: Owner) -> str:
        """Keep what a page has copied by itself, at a click on its button.

        Returns:
            its text; empty if there is none, or another session did not let go of the clipboard.
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
        """What lies in the clipboard becomes the session's."""
        found = await self._safely(self._read)
        owner.copied = found or owner.copied
        return found.get("text/plain", "")

    # --- a page of ours, by which to get at it ---

    async def _safely(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something with our page, made anew if its renderer has died."""
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
