"""Lease sessions of one or several Chromiums, with a fair queue.

All methods run on the event-loop thread. A Chromium starts with its first lease, and restarts when
it crashes. Its sessions move to the new one at their next request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from playwright.async_api import Browser, Error

from web_server.chromium.chromium import can_have_sandbox
from web_server.chromium.engine import Engine
from web_server.chromium.engines import Engines
from web_server.chromium.folder import ServerFolder
from web_server.contract import GetBrowser
from web_server.errors import BadRequest, BrowserGone, Unavailable, stopping
from web_server.network.policy import Policy, RuleError
from web_server.pool.options import PoolOptions
from web_server.pool.slots import Slots
from web_server.pool.spare import Spare
from web_server.session.session import Session
from web_server.view import one_line

log = logging.getLogger("web_server")

_SWEEP_SECONDS = 1.0


@dataclass
class Lease:
    """A leased session.

    Attributes:
        expires_at: the hard end of the lease, in seconds since the epoch.
        parked: the client waits for human input; the lease ends early if its slot is needed.
    """

    session: Session
    expires_at: float
    closing: bool = False
    parked: bool = False


class Pool:
    """The leased browsers.

    Args:
        options: limits and policy.
    """

    def __init__(self, options: PoolOptions) -> None:
        self.options = options
        self.leases: dict[str, Lease] = {}
        self.started = 0
        self.expired = 0
        self._slots = Slots(options.max_browsers, options.max_waiting, options.queue_seconds)
        self._being_leased = 0
        self._ending = False
        self.spare = Spare(self._make_spare, self._at_work)
        self._sweeper: asyncio.Task[None] | None = None
        self._folder: ServerFolder | None = None
        self._engines: Engines | None = None

    async def start(self) -> None:
        """Start Chromium, and start ending leases that expire.

        Raises:
            Unavailable: Chromium does not start.
        """
        self._folder = await asyncio.to_thread(ServerFolder)
        options = self.options
        self._engines = Engines(options.chromiums, options.chromium, self._folder.path, self._lose)
        self._sweeper = asyncio.ensure_future(self._sweep())
        await self._next_engine().browser()
        if not can_have_sandbox():
            log.warning("Chromium runs without its sandbox: it has none for root")
        await self.spare.make()

    @property
    def engines(self) -> Engines:
        """The Chromiums of the sessions; only after `start`."""
        assert self._engines is not None
        return self._engines

    def _next_engine(self) -> Engine:
        """Return the Chromium for the next session."""
        return self.engines.least_used(lease.session.engine for lease in self.leases.values())

    def _lose(self, browser: Browser) -> None:
        """Mark the pages of all sessions of a Chromium as lost."""
        for lease in self.leases.values():
            if lease.session.browser is browser:
                lease.session.lose()

    # --- leases ---

    async def lease(self, request: GetBrowser, hung_up: Callable[[], bool]) -> Lease:
        """Lease a session; wait in the queue while none is free.

        Args:
            request: what the client asks for.
            hung_up: returns whether the client closed its connection.

        Raises:
            BadRequest: the client's rules are invalid.
            TooManyWaiting: the queue is full.
            Unavailable: no session became free in time, or the client hung up.
        """
        self._policy_for(request)  # refuse invalid rules before the wait
        await self._make_room()
        await self._slots.take(hung_up)
        self._being_leased += 1
        try:
            ready = self.spare.session
            session = None
            if ready is not None:
                session = self.spare.take(request, await ready.engine.browser())
            if session is None:
                session = await self._make_session(request)
            if hung_up():
                # No client would return it.
                await session.close()
                raise Unavailable("the caller hung up")
        except BaseException:
            self._slots.give_back()
            raise
        finally:
            self._being_leased -= 1
        seconds = request.leaseSeconds or self.options.lease_seconds
        lease = Lease(session, time.time() + seconds)
        self.leases[session.id] = lease
        self.started += 1
        self.spare.replenish()
        log.info("leased %s", session.id[:8])
        return lease

    async def _make_room(self) -> None:
        """End the parked lease that is idle for longest, if no slot is free."""
        parked = [one for one in self.leases.values() if one.parked and not one.closing]
        if parked and not self._slots.free:
            oldest = min(parked, key=lambda lease: lease.session.used)
            log.info("ended the parked lease of %s for a new one", oldest.session.id[:8])
            await self._end(oldest)

    async def _make_session(self, request: GetBrowser) -> Session:
        assert self._folder is not None
        options, engine = self.options, self._next_engine()
        policy = self._policy_for(request)
        session = Session(request, policy, self._folder.path, options.max_download, engine)
        try:
            await session.in_chromium(session.open)
        except BaseException:
            await session.close()
            raise
        return session

    def _policy_for(self, request: GetBrowser) -> Policy:
        """Return the policy for a session.

        Raises:
            BadRequest: the client's rules are malformed, or exceed the server's.
        """
        try:
            return self.options.policy.narrowed(request.allow, request.block)
        except RuleError as error:
            raise BadRequest(str(error)) from None

    async def _make_spare(self) -> Session:
        return await self._make_session(GetBrowser())

    def _at_work(self) -> bool:
        """Return whether a request is in progress on a browser, or about to lease one."""
        locked = any(lease.session.lock.locked() for lease in self.leases.values())
        return locked or self._being_leased > 0

    def find(self, browser_id: str) -> Lease:
        """Return the lease with an id.

        Raises:
            NotFound: no browser has that id, or its lease ended.
        """
        lease = self.leases.get(browser_id.strip())
        if lease is None or lease.closing or self._expired(lease, time.time()):
            if self._ending:
                raise stopping()
            asked = one_line(browser_id)[:8]
            raise BrowserGone(
                f"browserId: no such browser as '{asked}...': it was closed or its lease ended; "
                "call /getBrowser"
            )
        lease.parked = False
        return lease

    def closed_meanwhile(self) -> BrowserGone | Unavailable:
        """Return the error for a request whose browser was closed while it was in progress."""
        return stopping() if self._ending else BrowserGone("the browser was closed meanwhile")

    async def release(self, browser_id: str) -> None:
        """End a lease, and give its slot to the next request.

        Raises:
            NotFound: no browser has that id.
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
            NotFound: no browser has that id.
        """
        lease = self.find(browser_id)
        lease.expires_at = time.time() + (seconds or self.options.lease_seconds)
        lease.session.used = time.time()
        return lease

    @property
    def free(self) -> int:
        """Number of free slots."""
        return self._slots.free

    @property
    def waiting(self) -> int:
        """Number of requests in the queue."""
        return self._slots.waiting

    async def _sweep(self) -> None:
        """End expired leases, once a second."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                await self.end_expired(time.time())
            except Exception:  # the next lease must still end in time
                log.exception("ending leases failed")

    def _expired(self, lease: Lease, now: float) -> bool:
        """Return whether a lease has expired at `now`."""
        idle = now - lease.session.used > self.options.idle_seconds
        return now > lease.expires_at or (idle and not lease.session.lock.locked())

    async def end_expired(self, now: float) -> None:
        """End the leases that have expired at `now`, in seconds since the epoch."""
        for lease in list(self.leases.values()):
            if lease.closing or not self._expired(lease, now):
                continue
            log.info("lease of %s expired", lease.session.id[:8])
            self.expired += 1
            try:
                await self._end(lease)
            except (Error, OSError) as error:
                log.warning("closing %s: %s", lease.session.id[:8], error)

    # --- the end ---

    async def turn_away(self) -> None:
        """Refuse new leases, also to requests in the queue."""
        self._ending = True
        self.spare.make_no_more()
        self._slots.close()

    async def end_all(self) -> None:
        """Stop Chromium and end all leases; requests in progress fail."""
        open_leases = [lease for lease in self.leases.values() if not lease.closing]
        for lease in open_leases:
            lease.closing = True
            lease.session.lose()
        if self._engines is not None:
            await self._engines.stop()  # first: it ends pages that hang at once
        await asyncio.gather(*map(self._end, open_leases), return_exceptions=True)

    async def stop(self) -> None:
        """End all leases, stop Chromium, and remove all files."""
        await self.turn_away()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.end_all()
        await self.spare.stop()
        if self._folder is not None:
            await asyncio.to_thread(self._folder.remove)
