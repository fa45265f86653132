"""Each request on a leased browser, under the session's lock.

Requests for one browser run one after another; those for different browsers run concurrently.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import Error

from web_server.actions.action_context import ActionContext
from web_server.actions.action_targets import reach_of
from web_server.actions.named_elements import with_ids
from web_server.actions.registry import find_action
from web_server.contract import ObserveOptions, PerformAction
from web_server.errors import BadRequest, Conflict, NotFound
from web_server.observe.target import ElementGone
from web_server.operations.action_run import ActionRun
from web_server.operations.capture import capture, capture_all
from web_server.operations.observation import Views, round_name
from web_server.operations.session_recovery import SessionRecovery
from web_server.operations.settling import settle
from web_server.operations.step_picture import step_picture
from web_server.pool.pool import Lease, Pool
from web_server.session.downloads import wire_parts
from web_server.session.page import Tab, protocol_reason
from web_server.session.page_handle import PageHung, PageLost
from web_server.session.session import Session

log = logging.getLogger("web_server")

T = TypeVar("T")

GRACE_SECONDS = 2.0
"""How long after its deadline a request is cancelled. Only a machine without time reaches it."""
PICTURE_SECONDS = 5.0
"""Time limit for a picture that only viewers of a run need."""
_TOO_BUSY = "the browser was too busy to finish in time"


class OutOfTime(Exception):
    """The request was cancelled after its deadline."""


class Driver:
    """Carry out requests.

    Args:
        pool: the leased browsers.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._recovery = SessionRecovery(pool)
        self._views = Views(self._recovery)

    # --- requests ---

    async def open_page(self, browser_id: str, url: str, options: ObserveOptions | None) -> Any:
        """Open a page at `url`: return its id, and its observation if `options` are given."""
        if not url.strip():
            raise BadRequest("url is missing: openPage needs the address to open")
        async with self._recovery.session(browser_id) as session:
            shown = session.tabs.get(session.current)
            if shown is not None and shown.refuse(url):
                return shown.id, await self._views.observe(session, shown, options)
            tab = await self._recovery.open_tab(session, url)

            async def navigated() -> Any:
                await self._navigate(session, tab, url)
                if tab.id in session.tabs or shown is None:
                    return tab.id, await self._views.observe(session, tab, options)
                shown.failure, shown.refused = tab.failure, tab.refused
                return shown.id, await self._views.observe(session, shown, options)

            try:
                return await _in_time(session, navigated())
            except OutOfTime:
                return tab.id, options and self._views.blank(session, tab)

    async def goto(
        self, browser_id: str, page_id: str, url: str, options: ObserveOptions | None
    ) -> Any:
        """Navigate a page: return a message, and the observation if `options` are given."""
        if not url.strip():
            raise BadRequest("targetUrl is missing: gotoUrl needs the address to go to")
        async with self._recovery.session(browser_id) as session:
            tab = session.tab(page_id)

            async def navigated() -> Any:
                await self._recovery.ensure(session, tab)
                message = await self._navigate(session, tab, url)
                return message, await self._views.observe(session, tab, options)

            try:
                return await _in_time(session, navigated())
            except OutOfTime:
                return _TOO_BUSY, options and self._views.blank(session, tab)

    async def _navigate(self, session: Session, tab: Tab, url: str) -> str:
        if tab.refuse(url):
            return tab.failure
        session.downloads.restoring = False
        dialogs = session.pending.dialog_count
        try:
            await self._recovery.clear_way(session, tab)
            page_handle, limit = tab.page_handle, session.deadline.to_act()
            await page_handle.guard(page_handle.settler.arm(), limit)
            message = await page_handle.guard(tab.goto(url), limit)
            await settle(session, tab)
        except (PageLost, PageHung) as problem:
            message = await self._recovery.recover(session, tab, problem)
        if session.pending.dialog_count > dialogs:
            session.pending.forget_answers()
        return tab.failure or message

    async def observe(self, browser_id: str, page_id: str, options: ObserveOptions) -> Any:
        """Observe a page."""
        async with self._recovery.session(browser_id) as session:
            tab = session.tab(page_id)
            try:
                return await _in_time(session, self._views.observe(session, tab, options))
            except OutOfTime:
                return self._views.blank(session, tab)

    async def describe(self, request: PerformAction) -> dict[str, Any]:
        """Return what an action would reach, without doing it.

        Raises:
            ServerError: the action names no element of the page, or the page does not respond.
        """
        find_action(request)
        async with self._recovery.session(request.browserId) as session:
            tab = session.tab(request.pageId)
            await self._recovery.ensure(session, tab)
            failed = f"cannot describe {request.actionName}"
            handle, limit = tab.page_handle, session.deadline.to_act()
            try:
                request, named = await handle.guard(with_ids(handle, request), limit)
                context = ActionContext(session, tab, request)
                found = await handle.guard(reach_of(context), session.deadline.to_act())
            except (PageLost, PageHung) as problem:
                lost = await self._recovery.recover(session, tab, problem)
                raise Conflict(f"{failed}: {lost}") from None
            except ElementGone as gone:
                raise NotFound(str(gone)) from None
            except Error as error:
                raise Conflict(f"{failed}: {protocol_reason(error)}") from None
        facts = {"target": found.target, "url": found.url, "secret": found.secret}
        return {**facts, "named": named} if named else facts

    async def act(self, request: PerformAction) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Act on a page: return the reply, and the observation if the request asks for it.

        The reply has `message` (see `ActionRun.run`), `named` if the request names elements,
        `acted` if the observation does not list the element acted on, and `data` if the action
        returns data.
        """
        extra = find_action(request).extra_seconds(request)
        async with self._recovery.session(request.browserId, extra) as session:
            tab = session.tab(request.pageId)

            async def acted() -> tuple[dict[str, Any], dict[str, Any] | None]:
                await self._recovery.ensure(session, tab)
                run = ActionRun(self._recovery, self._views, session, tab, request)
                message, view = await run.run()
                more = {"named": run.named or None, "acted": run.acted or None, "data": run.data}
                given = {key: value for key, value in more.items() if value is not None}
                return {"message": message, **given}, view

            try:
                return await _in_time(session, acted())
            except OutOfTime:
                error = Conflict(f"{request.actionName} was interrupted: {_TOO_BUSY}")
                error.observation = self._views.blank(session, tab) if request.observe else None
                raise error from None

    async def step_picture(self, request: PerformAction) -> dict[str, Any]:
        """Return a small picture of a page, before the action of the request; see `StepPicture`.

        It reports no events and restores nothing.

        Raises:
            Conflict: the page does not respond, or it crashed.
        """
        async with self._recovery.session(request.browserId) as session:
            tab = session.tab(request.pageId)
            limit = min(PICTURE_SECONDS, session.deadline.to_act())
            try:
                taken = await tab.page_handle.guard(step_picture(tab, request), limit)
            except (PageLost, PageHung):
                raise Conflict("no picture: the page does not respond, or it crashed") from None
            except Error as error:
                raise Conflict(f"no picture: {protocol_reason(error)}") from None
            return taken.model_dump()

    async def full_page(self, browser_id: str, page_id: str) -> bytes:
        """Return a PNG image of the whole page, cropped to a maximum size."""
        async with self._recovery.session(browser_id) as session:
            tab = session.tab(page_id)
            await self._recovery.ensure(session, tab)
            try:
                return await tab.page_handle.guard(capture_all(tab), session.deadline.to_act())
            except (PageLost, PageHung) as problem:
                raise Conflict(await self._recovery.recover(session, tab, problem)) from None

    async def visible_part(self, browser_id: str) -> bytes:
        """Return a JPEG image of the visible part of the current page; report no events."""
        async with self._recovery.session(browser_id) as session:
            tab = session.tab("")
            await self._recovery.ensure(session, tab)
            try:
                shot = capture(tab, ObserveOptions(screenshot="plain", imageFormat="jpeg"))
                return (await tab.page_handle.guard(shot, session.deadline.to_act())).data
            except (PageLost, PageHung) as problem:
                raise Conflict(await self._recovery.recover(session, tab, problem)) from None

    # --- rounds ---

    async def stored_image(self, browser_id: str, page_id: str, number: str) -> bytes:
        """Return the screenshot that was stored at a round.

        Raises:
            NotFound: no screenshot was stored.
        """
        session = self._pool.find(browser_id).session
        tab = session.tab(page_id)
        name = round_name(number)
        path = session.rounds / f"{tab.id}-{name}.image"
        if not name or not path.is_file():
            raise NotFound(f"no screenshot was stored at round '{number[:40]}' of page {tab.id}")
        return path.read_bytes()

    async def html(self, browser_id: str, page_id: str, number: str) -> tuple[str, str]:
        """Return HTML and URL as stored at a round, or the present ones."""
        session = self._pool.find(browser_id).session
        tab = session.tab(page_id)
        name = round_name(number)
        path = session.rounds / f"{tab.id}-{name}.html"
        if name and path.is_file():
            url, _, text = path.read_text(encoding="utf-8").partition("\n")
            return text, url
        async with self._recovery.session(browser_id):
            await self._recovery.ensure(session, tab)
            try:
                content = tab.page_handle.page.content()
                text = await tab.page_handle.guard(content, session.deadline.to_act())
            except (PageLost, PageHung) as problem:
                raise Conflict(await self._recovery.recover(session, tab, problem)) from None
            return text, tab.url()

    def file(self, filename: str) -> Path:
        """Return the file of a download by its wire path.

        Raises:
            NotFound: no leased browser has it.
        """
        parts = wire_parts(filename)
        if len(parts) == 3:
            lease: Lease = self._pool.find(parts[1])
            lease.session.used = time.time()
            path = lease.session.downloads.find(filename)
            if path is not None:
                return path
        raise NotFound("no such file: filename must be one of downloaded_file_path")


async def _in_time(session: Session, work: Coroutine[Any, Any, T]) -> T:
    """Run the work of a request, and cancel it soon after the request's deadline.

    Each step has its own limit; this one holds when all of them together take too long.

    Raises:
        OutOfTime: the work was cancelled.
    """
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait({working}, timeout=max(0, session.deadline.left) + GRACE_SECONDS)
        if working.done():
            return working.result()
    finally:
        working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    log.warning("a request on %s was cancelled after its deadline", session.id[:8])
    raise OutOfTime
