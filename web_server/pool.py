"""The pool: one Chromium, leased out as sessions, with a fair queue in front.

All methods run on the event-loop thread. Chromium is started with the first lease, and anew when
it dies; sessions move over to the new one at their next request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Error

from web_server.contract import GetBrowser
from web_server.engine import Engine
from web_server.errors import NotFound, Unavailable
from web_server.folder import ServerFolder
from web_server.policy import Policy
from web_server.session import Session
from web_server.slots import Slots

log = logging.getLogger("web_server")

QUEUE_SECONDS = 300.0
_SWEEP_SECONDS = 5.0
_SPARE_SECONDS = 1.0
_SPARE_AT_LATEST = 15.0
"""How long requests at work may put off the making of a session ahead of its lease."""


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
        self.expired = 0
        self._slots = Slots(options.max_browsers, options.max_waiting, options.queue_seconds)
        self._spare: Session | None = None
        self._making_spare = False
        self._background: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._stopped = False
        self._folder: ServerFolder | None = None
        self._engine: Engine | None = None

    async def start(self) -> None:
        """Start Chromium and the watch over leases.

        Raises:
            Unavailable: Chromium does not start.
        """
        self._folder = await asyncio.to_thread(ServerFolder)
        self._engine = Engine(self.options.chromium, self._folder.path, self._lose)
        self._sweeper = asyncio.ensure_future(self._sweep())
        await self._engine.browser()
        await self._make_spare()

    @property
    def engine(self) -> Engine:
        """The Chromium behind all sessions; only after `start`."""
        assert self._engine is not None
        return self._engine

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
        await self._slots.take(gone)
        session = self._take_spare(request)
        try:
            browser = await self.engine.browser()
            if session is not None and (session.browser is not browser or session.crashed):
                self._in_background(session.close())
                session = None
            if session is None:
                session = await self._make_session(request, browser)
        except BaseException:
            self._slots.give_back()
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
        session = Session(
            request, options.policy, self._folder.path, options.max_download, self.engine.alive
        )
        try:
            try:
                await session.open(browser)
            except Error:
                if await self.engine.alive(browser):
                    raise
                await session.open(await self.engine.browser())
        except BaseException:
            await session.close()
            raise
        return session

    def _take_spare(self, request: GetBrowser) -> Session | None:
        """The session that was made ahead, if it is what is asked for; another is made for it."""
        spare, self._spare = self._spare, None
        if spare is not None and not spare.fits(request):
            spare, self._spare = None, spare
        if self._spare is None and not self._making_spare:
            self._making_spare = True
            self._in_background(self._make_spare())
        return spare

    async def _make_spare(self) -> None:
        """Make a session ahead of its lease, so that the next caller need not wait for it."""
        try:
            if self.leases:
                await self._until_idle()
            if not self._stopped:
                self._spare = await self._make_session(GetBrowser(), await self.engine.browser())
        except (Error, Unavailable) as error:
            log.warning("no session could be made ahead: %s", error)
        finally:
            self._making_spare = False

    async def _until_idle(self) -> None:
        """Let the requests go first, above all the caller's own first page."""
        end = time.monotonic() + _SPARE_AT_LATEST
        await asyncio.sleep(_SPARE_SECONDS)
        while not self._stopped and time.monotonic() < end:
            if not any(lease.session.lock.locked() for lease in self.leases.values()):
                return
            await asyncio.sleep(_SPARE_SECONDS / 10)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

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
            self._slots.give_back()
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
        return self._slots.free

    @property
    def waiting(self) -> int:
        """How many callers wait for a free browser."""
        return self._slots.waiting

    async def _sweep(self) -> None:
        """End leases that are over, for as long as the pool lives."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                await self.end_expired(time.time())
            except Exception:  # whatever it was, the next lease must end in time too
                log.exception("ending leases failed")

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

    async def turn_away(self) -> None:
        """Hand out no more leases; who waits for one is told so."""
        self._slots.close()

    async def stop(self) -> None:
        """End all leases and Chromium, and remove every file."""
        self._stopped = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._slots.close()
        open_leases = [lease for lease in self.leases.values() if not lease.closing]
        await asyncio.gather(*map(self._end, open_leases), return_exceptions=True)
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._spare is not None:
            await self._spare.close()
        if self._engine is not None:
            await self._engine.stop()
        if self._folder is not None:
            await asyncio.to_thread(self._folder.remove)
