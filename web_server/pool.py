"""The pool: one Chromium, leased out as sessions, with a fair queue in front.

All methods run on the event-loop thread. Chromium is started with the first lease, and anew when
it dies; sessions move over to the new one at their next request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Error, Playwright, async_playwright

from web_server.chromium import DROPPED_DEFAULTS, launch_flags
from web_server.contract import GetBrowser
from web_server.errors import NotFound, TooManyWaiting, Unavailable
from web_server.policy import Policy
from web_server.session import Session

log = logging.getLogger("web_server")

QUEUE_SECONDS = 300.0
_SWEEP_SECONDS = 5.0
_SPARE_SECONDS = 1.0
_FOLDER_PREFIX = "ck-web-server-"


@dataclass(frozen=True)
class PoolOptions:
    """How a pool is set up.

    Attributes:
        chromium: path of the executable.
        policy: what pages may reach.
        max_browsers: how many sessions may be leased at once.
        max_waiting: how many callers may queue for a free one.
        queue_seconds: how long a caller waits in the queue.
        idle_seconds: a lease ends when it is not used for so long.
        lease_seconds: hard end of a lease that did not ask for another.
        max_download: largest download in bytes.
    """

    chromium: str
    policy: Policy = field(default_factory=Policy)
    max_browsers: int = 16
    max_waiting: int = 64
    queue_seconds: float = QUEUE_SECONDS
    idle_seconds: float = 1800.0
    lease_seconds: float = 6 * 3600.0
    max_download: int = 200_000_000


@dataclass
class Lease:
    """A session and the hard end of its lease, in seconds since the epoch."""

    session: Session
    expires_at: float
    closing: bool = False


class Pool:
    """All leased browsers.

    Args:
        options: limits and policy.
    """

    def __init__(self, options: PoolOptions) -> None:
        self.options = options
        self.leases: dict[str, Lease] = {}
        self.started = 0
        self.crashes = 0
        self.expired = 0
        self._taken = 0
        self._waiting: deque[tuple[asyncio.Future[None], Callable[[], bool]]] = deque()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._probe: CDPSession | None = None
        self._broken = False
        self._spare: Session | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._launching = asyncio.Lock()
        self._sweeper: asyncio.Task[None] | None = None
        self._stopped = False
        self._folder: Path | None = None

    async def start(self) -> None:
        """Start Chromium and the watch over leases.

        Raises:
            Unavailable: Chromium does not start.
        """
        await asyncio.to_thread(_sweep_folders)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
        self._sweeper = asyncio.ensure_future(self._sweep())
        await self.browser()
        await self._make_spare()

    async def browser(self) -> Browser:
        """The running Chromium; started anew if it died.

        Raises:
            Unavailable: it does not start, or the server is stopping.
        """
        async with self._launching:
            if self._stopped:
                raise Unavailable("the browser server is stopping")
            if self._browser is not None and self._browser.is_connected() and not self._broken:
                return self._browser
            if self._browser is not None:
                self.crashes += 1
                log.warning("chromium is gone: starting it anew")
            if self._broken:
                await self._stop_playwright()
                self._broken = False
            try:
                self._browser = await self._launch()
            except (Error, OSError):
                # The library's own helper process may have died with it: begin from scratch.
                await self._stop_playwright()
                try:
                    self._browser = await self._launch()
                except (Error, OSError) as error:
                    reason = str(error).splitlines()[0]
                    raise Unavailable(f"Chromium does not start: {reason}") from None
            self._browser.on("disconnected", self._lose)
            self._probe = await self._browser.new_browser_cdp_session()
            return self._browser

    async def _launch(self) -> Browser:
        assert self._folder is not None
        if self._playwright is None:
            # The library's helper makes profiles and caches in its temporary folder: ours, where
            # a later start finds and removes what a kill left behind.
            before = os.environ.get("TMPDIR")
            os.environ["TMPDIR"] = str(self._folder)
            try:
                self._playwright = await async_playwright().start()
            finally:
                if before is None:
                    del os.environ["TMPDIR"]
                else:
                    os.environ["TMPDIR"] = before
        return await self._playwright.chromium.launch(
            executable_path=self.options.chromium,
            headless=True,
            args=launch_flags(),
            ignore_default_args=DROPPED_DEFAULTS,
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
            env={**os.environ, "TMPDIR": str(self._folder)},
            downloads_path=self._folder / "unclaimed",
            timeout=60_000,
        )

    async def alive(self) -> bool:
        """Whether Chromium answers. If not, it is given up, and `browser` starts another."""
        browser = self._browser
        if browser is None or self._probe is None:
            return False
        try:
            await asyncio.wait_for(self._probe.send("Browser.getVersion"), 10)
        except (Error, asyncio.TimeoutError):
            if self._browser is browser:
                self._broken = True
            self._lose(browser)
            return False
        return True

    def _lose(self, browser: Browser) -> None:
        """Tell the sessions that their Chromium is gone."""
        for lease in self.leases.values():
            if lease.session.browser is browser:
                lease.session.lose()

    # --- leases ---

    async def lease(self, request: GetBrowser, gone: Callable[[], bool]) -> Lease:
        """Lease a session, waiting in line while all are taken.

        Args:
            request: what the client asks for.
            gone: tells whether the caller has hung up meanwhile.

        Raises:
            TooManyWaiting: the queue is full.
            Unavailable: none became free in time.
        """
        await self._take_slot(gone)
        session = self._take_spare(request)
        try:
            browser = await self.browser()
            if session is not None and session.browser is not browser:
                self._in_background(session.close())
                session = None
            if session is None:
                session = await self._make_session(request, browser)
        except BaseException:
            self._free_slot()
            if session is not None:
                await session.close()
            raise
        seconds = request.leaseSeconds or self.options.lease_seconds
        lease = Lease(session, time.time() + seconds)
        self.leases[session.id] = lease
        self.started += 1
        log.info("leased %s", session.id[:8])
        return lease

    async def _make_session(self, request: GetBrowser, browser: Browser) -> Session:
        assert self._folder is not None
        options = self.options
        session = Session(request, options.policy, self._folder, options.max_download, self.alive)
        try:
            try:
                await session.open(browser)
            except Error:
                if await self.alive():
                    raise
                await session.open(await self.browser())
        except BaseException:
            await session.close()
            raise
        return session

    def _take_spare(self, request: GetBrowser) -> Session | None:
        """The session that was made ahead, if it is what is asked for; another is made for it."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.browser is not self._browser:
            self._in_background(spare.close())
            spare = None
        if spare is not None and not spare.fits(request):
            spare, self._spare = None, spare
        if self._spare is None:
            self._in_background(self._make_spare())
        return spare

    async def _make_spare(self) -> None:
        """Make a session ahead of its lease, so that the next caller need not wait for it."""
        # The caller's own first page comes first.
        await asyncio.sleep(_SPARE_SECONDS if self.leases else 0)
        if self._spare is not None or self._stopped:
            return
        try:
            self._spare = await self._make_session(GetBrowser(), await self.browser())
        except (Error, Unavailable) as error:
            log.warning("no session could be made ahead: %s", error)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _take_slot(self, gone: Callable[[], bool]) -> None:
        if self._stopped:
            raise Unavailable("the browser server is stopping")
        if self._taken < self.options.max_browsers and not self._waiting:
            self._taken += 1
            return
        if len(self._waiting) >= self.options.max_waiting:
            raise TooManyWaiting(
                f"all {self.options.max_browsers} browsers are taken and "
                f"{len(self._waiting)} callers wait: try again later",
                retry_after=30,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (turn, gone)
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(turn, self.options.queue_seconds)
        except asyncio.TimeoutError:
            raise Unavailable(
                f"no browser became free within {self.options.queue_seconds:g} s "
                f"({self.options.max_browsers} are leased): try again later",
                retry_after=30,
            ) from None
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    def _free_slot(self) -> None:
        """Hand the slot to the first in line who is still there, or keep it free."""
        while self._waiting:
            turn, gone = self._waiting.popleft()
            if turn.done():
                continue
            if gone():
                turn.set_exception(Unavailable("the caller hung up"))
                continue
            turn.set_result(None)
            return
        self._taken -= 1

    def find(self, browser_id: str) -> Lease:
        """The lease of that id.

        Raises:
            NotFound: there is none (any more).
        """
        lease = self.leases.get(browser_id.strip())
        if lease is None or lease.closing:
            raise NotFound("no such browser: it was closed or its lease ended; call /getBrowser")
        return lease

    async def release(self, browser_id: str) -> None:
        """End a lease; whoever waits for a slot gets it.

        Raises:
            NotFound: there is no such lease.
        """
        await self._end(self.find(browser_id))

    async def _end(self, lease: Lease) -> None:
        lease.closing = True
        lease.session.lose()
        try:
            await lease.session.close()
        finally:
            del self.leases[lease.session.id]
            self._free_slot()
            log.info("released %s", lease.session.id[:8])

    def renew(self, browser_id: str, seconds: float | None) -> Lease:
        """Move the hard end of a lease to so many seconds from now.

        Raises:
            NotFound: there is no such lease.
        """
        lease = self.find(browser_id)
        lease.expires_at = time.time() + (seconds or self.options.lease_seconds)
        lease.session.used = time.time()
        return lease

    @property
    def free(self) -> int:
        """How many sessions could be leased at once now."""
        return max(0, self.options.max_browsers - self._taken)

    @property
    def waiting(self) -> int:
        """How many callers wait for a free browser."""
        return len(self._waiting)

    async def _sweep(self) -> None:
        """End leases that are over, for as long as the pool lives."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await self.end_expired(time.time())

    async def end_expired(self, now: float) -> None:
        """End the leases that are over at `now`, in seconds since the epoch."""
        for lease in list(self.leases.values()):
            idle = now - lease.session.used > self.options.idle_seconds
            busy = lease.session.lock.locked()
            if lease.closing or not (now > lease.expires_at or (idle and not busy)):
                continue
            log.info("lease of %s is over", lease.session.id[:8])
            self.expired += 1
            try:
                await self._end(lease)
            except (Error, OSError) as error:
                log.warning("closing %s: %s", lease.session.id[:8], error)

    # --- the end ---

    async def stop(self) -> None:
        """End all leases and Chromium, and remove every file."""
        self._stopped = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        while self._waiting:
            turn, _ = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(Unavailable("the browser server is stopping"))
        open_leases = [lease for lease in self.leases.values() if not lease.closing]
        await asyncio.gather(*map(self._end, open_leases), return_exceptions=True)
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._spare is not None:
            await self._spare.close()
        async with self._launching:
            if self._browser is not None:
                try:
                    await asyncio.wait_for(self._browser.close(), 10)
                except (Error, asyncio.TimeoutError):
                    pass  # it is gone already; its helper process sees to the rest
            await self._stop_playwright()
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, True)

    async def _stop_playwright(self) -> None:
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            try:
                await asyncio.wait_for(playwright.stop(), 5)
            except (Error, asyncio.TimeoutError):
                pass  # the helper process is gone already


def _sweep_folders() -> None:
    """Remove folders of servers that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        owner = folder.name.removeprefix(_FOLDER_PREFIX).split("-")[0]
        if owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
