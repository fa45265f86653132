"""A Chromium: started when it is needed, and anew when it or its helper process died."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from playwright.async_api import Browser, CDPSession, Error, Playwright, async_playwright

from web_server.chromium.chromium import (
    DROPPED_DEFAULTS,
    can_have_sandbox,
    lacks_sandbox,
    launch_flags,
    why_not_started,
)
from web_server.chromium.clipboard import Clipboard
from web_server.chromium.environment import passed_on, reduced
from web_server.chromium.external_links import path_without_desktop
from web_server.errors import Unavailable, stopping
from web_server.view import one_line

log = logging.getLogger("web_server")

T = TypeVar("T")

ATTEMPTS = 5
"""So often is tried what a Chromium, or a renderer, that dies can spoil."""
_CLOSE_SECONDS = 2.0
"""How long Chromium, and then the helper process, may take to end before they are killed."""
LAUNCHES = 3
"""So often Chromium is started, until it is told that it does not start."""


class Engine:
    """Starts, watches and stops Chromium, on the event loop.

    Args:
        executable: path of Chromium.
        folder: where it keeps profiles and caches; removed by whoever made it.
        on_lost: called with a Chromium that is gone.
        starting: held while the library's helper process is started, for which the environment of
            this process is changed.

    Attributes:
        crashes: how often Chromium had to be started anew.
        clipboard: of the Chromium that runs now; None before the first one.
        sandbox: whether Chromium's own sandbox is on.
    """

    def __init__(
        self,
        executable: str,
        folder: Path,
        on_lost: Callable[[Browser], None],
        starting: asyncio.Lock,
    ) -> None:
        self.crashes = 0
        self.clipboard: Clipboard | None = None
        self.sandbox = can_have_sandbox()
        self._executable = executable
        self._folder = folder
        self._on_lost = on_lost
        self._starting = starting
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._probe: CDPSession | None = None
        self._pid = 0
        self._broken = False
        self._launching = asyncio.Lock()
        self._stopped = False

    async def browser(self) -> Browser:
        """The running Chromium; started anew if it died.

        Raises:
            Unavailable: it does not start, or the server is stopping.
        """
        async with self._launching:
            if self._stopped:
                raise stopping()
            if self._browser is not None and self._browser.is_connected() and not self._broken:
                return self._browser
            if self._browser is not None:
                self.crashes += 1
                log.warning("chromium is gone: starting it anew")
            # Whoever finds out now that the old one is of no use says nothing of the new one.
            self._browser = self._probe = None
            if self._broken:
                await self._stop_playwright()
                self._broken = False
            browser = await self._launched()
            browser.on("disconnected", self._on_lost)
            self._probe = await browser.new_browser_cdp_session()
            self._pid = await _process_id(self._probe)
            self.clipboard = Clipboard(browser)
            self._browser = browser
            return browser

    async def do(self, work: Callable[[Browser], Awaitable[T]], given_up: Callable[[], bool]) -> T:
        """Do something in the Chromium that runs now; again if that, or a renderer, dies.

        Args:
            work: what is done; it may find what an attempt before it left.
            given_up: whether nobody wants it any more.

        Raises:
            Unavailable: no Chromium starts, or the server is stopping.
            Error: of the last attempt.
        """
        for attempt in range(1, ATTEMPTS + 1):
            browser: Browser | None = None
            try:
                browser = await self.browser()
                return await work(browser)
            except Error:
                # Whether it has died shows only when it is asked; then there will be another.
                await self.alive(browser)
                if given_up() or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _launched(self) -> Browser:
        for attempt in range(1, LAUNCHES + 1):
            try:
                return await self._launch()
            except (Error, OSError) as error:
                # The library's own helper process may have died with it: begin from scratch.
                await self._stop_playwright()
                reason = why_not_started(str(error))
                if self.sandbox and lacks_sandbox(reason):
                    # Another launch, and not one of those that a dying process may spoil.
                    self.sandbox = False
                    log.warning("Chromium runs without its sandbox, which this system refuses")
                    return await self._launched()
                if attempt == LAUNCHES or self._stopped:
                    message = f"Chromium ({self._executable}) does not start: {reason}"
                    raise Unavailable(message) from None
        raise AssertionError("the last attempt returns or raises")

    async def _launch(self) -> Browser:
        if self._playwright is None:
            async with self._starting:
                self._playwright = await self._started()
        path = path_without_desktop(self._folder / "desktop")
        return await self._playwright.chromium.launch(
            executable_path=self._executable,
            headless=True,
            args=launch_flags(),
            ignore_default_args=DROPPED_DEFAULTS,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            chromium_sandbox=self.sandbox,
            env={**passed_on(os.environ), "TMPDIR": str(self._folder), "PATH": path},
            downloads_path=self._folder / "unclaimed",
            timeout=60_000,
        )

    async def _started(self) -> Playwright:
        """The library's helper process, which makes profiles and caches in its temporary folder:
        ours, where a later start finds and removes what a kill left behind."""
        try:
            with reduced(TMPDIR=str(self._folder)):
                return await async_playwright().start()
        except Exception as error:  # noqa: BLE001 - so it tells that its helper process died
            raise Error(one_line(str(error))) from None

    async def alive(self, asked: Browser | None = None) -> bool:
        """Whether Chromium answers. If not, it is given up, and `browser` starts another.

        Args:
            asked: which Chromium; the present one by default. One that was replaced is not alive.
        """
        browser = self._browser
        if browser is None or self._probe is None or self._broken or asked not in (None, browser):
            return False
        try:
            await asyncio.wait_for(self._probe.send("Browser.getVersion"), 10)
        except (Error, asyncio.TimeoutError):
            self.give_up(browser)
            return False
        return True

    def give_up(self, browser: Browser) -> None:
        """A Chromium is of no more use, whatever it answers: `browser` starts another."""
        if self._browser is browser:
            self._broken = True
        self._on_lost(browser)

    async def stop(self) -> None:
        """End Chromium and the library's helper process for good."""
        self._stopped = True
        async with self._launching:
            if self._browser is not None:
                try:
                    await asyncio.wait_for(self._browser.close(), _CLOSE_SECONDS)
                except asyncio.TimeoutError:
                    if self._pid:
                        with suppress(OSError):
                            os.kill(self._pid, signal.SIGKILL)
                except Error:
                    pass  # it is gone already; its helper process sees to the rest
                self._browser = None
            await self._stop_playwright()

    async def _stop_playwright(self) -> None:
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            try:
                await asyncio.wait_for(playwright.stop(), _CLOSE_SECONDS)
            except (Error, asyncio.TimeoutError):
                pass  # the helper process is gone already


async def _process_id(probe: CDPSession) -> int:
    """The id of Chromium's first process; 0 if it does not say."""
    try:
        listed = await probe.send("SystemInfo.getProcessInfo")
    except Error:
        return 0
    ids = [int(each["id"]) for each in listed["processInfo"] if each["type"] == "browser"]
    return ids[0] if ids else 0
