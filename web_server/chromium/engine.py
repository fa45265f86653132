"""A Chromium process, started when needed and restarted after a crash."""

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
    launch_failure,
    launch_flags,
)
from web_server.chromium.clipboard import Clipboard
from web_server.chromium.environment import passed_on, reduced
from web_server.chromium.external_links import path_without_desktop
from web_server.errors import Unavailable, stopping
from web_server.view import one_line

log = logging.getLogger("web_server")

T = TypeVar("T")

ATTEMPTS = 5
"""Attempts for work that a crash of Chromium or of a renderer interrupts."""
_CLOSE_SECONDS = 2.0
"""Limit for Chromium, and then for Playwright's process, to exit before they are killed."""
LAUNCHES = 3
"""Attempts to start Chromium."""


class Engine:
    """Start, watch and stop a Chromium, on the event loop.

    Args:
        executable: path of Chromium.
        folder: for profiles and caches; the caller removes it.
        on_lost: called with a Chromium that ended.
        starting: held while Playwright's process starts, because the environment of this process
            changes meanwhile.

    Attributes:
        crashes: number of restarts.
        clipboard: of the current Chromium; None before the first start.
        sandbox: whether Chromium's sandbox is on.
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
        """Return the running Chromium; start it if necessary.

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
                log.warning("Chromium ended: restarting it")
            # Errors that concern the previous Chromium must not affect the new one.
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
        """Run work in the current Chromium; retry it after a crash.

        Args:
            work: the work; an earlier attempt may have left something.
            given_up: returns whether the caller no longer needs the result.

        Raises:
            Unavailable: Chromium does not start, or the server is stopping.
            Error: the last attempt failed.
        """
        for attempt in range(1, ATTEMPTS + 1):
            browser: Browser | None = None
            try:
                browser = await self.browser()
                return await work(browser)
            except Error:
                # Detect a crash, so that the next attempt gets a new Chromium.
                await self.alive(browser)
                if given_up() or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _launched(self) -> Browser:
        for attempt in range(1, LAUNCHES + 1):
            try:
                return await self._launch()
            except (Error, OSError) as error:
                # Playwright's process may have ended as well: restart both.
                await self._stop_playwright()
                reason = launch_failure(str(error))
                if self.sandbox and lacks_sandbox(reason):
                    # This launch does not count as an attempt.
                    self.sandbox = False
                    log.warning("Chromium runs without its sandbox: this system refuses it")
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
        """Start Playwright's process with this server's folder as its temporary folder, so that
        the next server can remove the files after a kill."""
        try:
            with reduced(TMPDIR=str(self._folder)):
                return await async_playwright().start()
        except Exception as error:  # noqa: BLE001 - Playwright raises it if its process ends
            raise Error(one_line(str(error))) from None

    async def alive(self, expected: Browser | None = None) -> bool:
        """Whether Chromium answers. If it does not, the next call of `browser` restarts it.

        Args:
            expected: the Chromium; by default the current one. A replaced one is not alive.
        """
        browser = self._browser
        if (
            browser is None
            or self._probe is None
            or self._broken
            or expected not in (None, browser)
        ):
            return False
        try:
            await asyncio.wait_for(self._probe.send("Browser.getVersion"), 10)
        except (Error, asyncio.TimeoutError):
            self.give_up(browser)
            return False
        return True

    def give_up(self, browser: Browser) -> None:
        """Abandon a Chromium: the next call of `browser` starts another."""
        if self._browser is browser:
            self._broken = True
        self._on_lost(browser)

    async def stop(self) -> None:
        """Stop Chromium and Playwright's process for good."""
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
                    pass  # it ended; Playwright's process cleans up
                self._browser = None
            await self._stop_playwright()

    async def _stop_playwright(self) -> None:
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            try:
                await asyncio.wait_for(playwright.stop(), _CLOSE_SECONDS)
            except (Error, asyncio.TimeoutError):
                pass  # it ended already


async def _process_id(probe: CDPSession) -> int:
    """Return the id of Chromium's main process; 0 if it is unknown."""
    try:
        listed = await probe.send("SystemInfo.getProcessInfo")
    except Error:
        return 0
    ids = [int(each["id"]) for each in listed["processInfo"] if each["type"] == "browser"]
    return ids[0] if ids else 0
