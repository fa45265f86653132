"""What one request does to one leased browser, with recovery from crashed and hung pages.

Everything here holds the session's lock, so requests for one browser follow one another, while
those for others go on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from playwright.async_api import Error

from web_server.actions.action_context import ActionContext, Before
from web_server.actions.action_targets import check_reach, reach_of
from web_server.actions.page import MAX_WAIT
from web_server.actions.pointer import element_number
from web_server.actions.saving import SAVE_SECONDS
from web_server.actions.table import UNSETTLED, WAITING, WATCHING, action_of
from web_server.contract import ObserveOptions, PerformAction
from web_server.errors import BadRequest, Conflict, NotFound, ServerError
from web_server.observe.observer import ElementGone
from web_server.operations.observation import capture_all, observe, round_name
from web_server.operations.session_recovery import SessionRecovery
from web_server.pool.pool import Lease, Pool
from web_server.session.downloads import wire_parts
from web_server.session.page import STAYED, Tab, protocol_reason
from web_server.session.page_handle import PageHandle, PageHung, PageLost
from web_server.session.session import Session
from web_server.view import blank_observation

_READ_SECONDS = 1.0
_RELOADING = "the page kept navigating by itself: scripts are off here until the next goto"
_IN_PARTS = frozenset(
    {"type", "type_text", "clear", "drag", "drag_path", "upload", "select", "select_option"}
)
"""Actions that may stay half done: they fail as well when the page hangs in the middle of them."""
_LEAVING = frozenset({"goto", "restart", "goback", "goforward"})
"""Actions that a page which asks whether to leave it may keep from being done."""
_TRAVELLING = frozenset({"goto", "restart"})


class Driver:
    """Carries out requests.

    Args:
        pool: where the browsers are.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._keeper = SessionRecovery(pool)

    # --- requests ---

    async def open_page(self, browser_id: str, url: str, options: ObserveOptions | None) -> Any:
        """A new page at `url`: its id, and what it looks like if `options` are given."""
        if not url.strip():
            raise BadRequest("url is missing: openPage needs the address to open")
        async with self._keeper.session(browser_id) as session:
            shown = session.tabs.get(session.current)
            if shown is not None and shown.refuse(url):
                return shown.id, await self._view(session, shown, options)
            tab = await self._keeper.open_tab(session, url)
            await self._travel(session, tab, url)
            if tab.id not in session.tabs and shown is not None:
                shown.failure, shown.refused = tab.failure, tab.refused
                tab = shown
            return tab.id, await self._view(session, tab, options)

    async def goto(
        self, browser_id: str, page_id: str, url: str, options: ObserveOptions | None
    ) -> Any:
        """Navigate a page: what happened, and what it looks like if `options` are given."""
        if not url.strip():
            raise BadRequest("targetUrl is missing: gotoUrl needs the address to go to")
        async with self._keeper.session(browser_id) as session:
            tab = session.tab(page_id)
            await self._keeper.ensure(session, tab)
            message = await self._travel(session, tab, url)
            return message, await self._view(session, tab, options)

    async def _travel(self, session: Session, tab: Tab, url: str) -> str:
        if tab.refuse(url):
            return tab.failure
        session.downloads.restoring = False
        asked = session.pending.asked
        try:
            await self._keeper.clear_way(session, tab)
            page_handle, limit = tab.page_handle, session.deadline.to_act()
            await page_handle.guard(page_handle.settler.arm(), limit)
            message = await page_handle.guard(tab.goto(url), limit)
            await self._keeper.settle(session, tab)
        except (PageLost, PageHung) as problem:
            message = await self._keeper.recover(session, tab, problem)
        if session.pending.asked > asked:
            session.pending.forget_answers()
        return tab.failure or message

    async def observe(self, browser_id: str, page_id: str, options: ObserveOptions) -> Any:
        """What a page looks like."""
        async with self._keeper.session(browser_id) as session:
            tab = session.tab(page_id)
            return await self._view(session, tab, options)

    async def describe(self, request: PerformAction) -> dict[str, Any]:
        """What an action would reach, without doing it.

        Raises:
            ServerError: it names no element of the page, or the page does not answer.
        """
        action_of(request)
        async with self._keeper.session(request.browserId) as session:
            tab = session.tab(request.pageId)
            await self._keeper.ensure(session, tab)
            context = ActionContext(session, tab, request)
            try:
                found = await tab.page_handle.guard(reach_of(context), session.deadline.to_act())
            except (PageLost, PageHung) as problem:
                lost = await self._keeper.recover(session, tab, problem)
                raise Conflict(f"nothing can be told of {request.actionName}: {lost}") from None
            except ElementGone as gone:
                raise NotFound(str(gone)) from None
            except Error as error:
                raise Conflict(f"nothing can be told of it: {protocol_reason(error)}") from None
        return {"target": found.target, "url": found.url, "secret": found.secret}

    async def act(self, request: PerformAction) -> tuple[str, dict[str, Any] | None]:
        """Act on a page: what happened, and what it looks like if the request asks for it.

        Raises:
            ServerError: the action could not be done; its `observation` is what the page looks
                like, if the request asks for it.
        """
        name, action = action_of(request)
        waiting = min(request.timeout or 0, MAX_WAIT) / 1000 if name in WAITING else 0.0
        if name == "save":
            waiting = SAVE_SECONDS
        async with self._keeper.session(request.browserId, waiting) as session:
            tab = session.tab(request.pageId)
            await self._keeper.ensure(session, tab)
            context = ActionContext(session, tab, request)
            options = request if request.observe else None
            before = Before(session, tab, name)
            page_handle = tab.page_handle
            page_handle.begin_action()
            stays, asked = page_handle.stays, session.pending.asked
            session.clipboard.begins(session)
            if name not in WATCHING:
                session.downloads.restoring = False
            settled: dict[str, Any] = {}
            said: str | None = None
            try:
                if name in _TRAVELLING and not (name == "goto" and tab.refuse(_url_of(request))):
                    await self._keeper.clear_way(session, tab)
                    page_handle = tab.page_handle
                if name not in UNSETTLED:
                    await page_handle.guard(
                        _prepare(page_handle, request), session.deadline.to_act()
                    )
                limit = session.deadline.to_act()
                try:
                    await page_handle.guard(check_reach(context), session.deadline.to_act())
                    page_handle.before_input = partial(check_reach, context)
                    page_handle.before_key = partial(check_reach, context, True)
                    acting = action(context)
                    # to close a page is to lose it
                    said = await (
                        acting if name == "close_tab" else page_handle.guard(acting, limit)
                    )
                finally:
                    page_handle.observer.forget_ahead()
                if name not in UNSETTLED:
                    settled = await self._keeper.settle(session, context.tab, options)
            except (PageLost, PageHung) as problem:
                if page_handle in tab.page_handles or not await session.alive():
                    lost = await self._keeper.recover(session, tab, problem)
                    crashed = isinstance(problem, PageLost) and not page_handle.given_up
                    # Half done, or not done at all: the caller looks before it goes on.
                    if said is None and name != "wait" and (crashed or name in _IN_PARTS):
                        cut_off = Conflict(f"{request.actionName} was cut off: {lost}")
                        raise await self._with_view(cut_off, session, tab, options) from None
                    said = f"{said}; then {lost}" if said else lost
                    settled = {"unseen": True}
                else:
                    said = "the pop-up closed"
                    if tab.page_handles:
                        with suppress(PageLost, PageHung):  # whoever looks at it recovers it
                            settled = await self._keeper.settle(session, tab)
            except ElementGone as gone:
                raise await self._with_view(
                    NotFound(str(gone)), session, context.tab, options
                ) from None
            except Error as error:
                reason = protocol_reason(error)
                failure = Conflict(f"{request.actionName} did not work: {reason}")
                raise await self._with_view(failure, session, context.tab, options) from None
            except ServerError as error:
                raise await self._with_view(error, session, context.tab, options) from None
            finally:
                if not settled.get("seen"):
                    page_handle.observer.forget_look()
            if session.pending.asked > asked:
                session.pending.forget_answers()
            if page_handle.stays > stays and name in _LEAVING:
                said = STAYED
            tab = context.tab
            if session.follows_tabs and session.current in session.tabs:
                tab = session.tabs[session.current]
            message = before.message(said, session, tab, settled)
            seen = bool(settled.get("seen")) and tab is context.tab
            return message, await self._view(session, tab, options, seen)

    async def _with_view(
        self, error: ServerError, session: Session, tab: Tab, options: ObserveOptions | None
    ) -> ServerError:
        """The error, with what the page looks like now if that was asked for."""
        error.observation = await self._view(session, tab, options)
        return error

    # --- looking ---

    async def _view(
        self, session: Session, tab: Tab, options: ObserveOptions | None, seen: bool = False
    ) -> dict[str, Any] | None:
        """The wire's observation of a tab, after recovery if its page is gone; None if not asked.

        `seen` is what `Keeper.settle` said of it.

        The page is remembered afterwards, in the background.
        """
        if options is None:
            self._keeper.remember(session, tab)
            return None
        deadline = session.deadline
        problem: Exception | None = None
        for attempt in (1, 2, 3):
            if session.closed:
                raise PageLost
            try:
                if isinstance(problem, Error):
                    # The document was exchanged while we looked: settle, and look again.
                    await self._keeper.settle(session, tab)
                elif problem is not None:
                    await self._keeper.recover(session, tab, problem)
                await self._keeper.ensure(session, tab)
                # Half of what is left at the end stays for a look at a page that was stopped.
                limit = max(deadline.to_act(), deadline.to_look() / 2)
                looking = self._look(session, tab, options, seen and attempt == 1)
                view = await tab.page_handle.guard(looking, limit)
                self._keeper.remember(session, tab)
                return view
            except (PageLost, PageHung, Error) as failure:
                problem = failure
            if deadline.over:
                break
        if isinstance(problem, Error) and not await session.alive():
            raise problem
        return self._blank(session, tab, problem)

    async def _look(
        self, session: Session, tab: Tab, options: ObserveOptions, seen: bool
    ) -> dict[str, Any]:
        if not tab.page_handle.settler.reloading:
            return await observe(session, tab, options, seen)
        session.pending.note(_RELOADING, loud=True)
        activity = tab.page_handle.activity
        await activity.until(lambda: activity.dom_ready, time.monotonic() + _READ_SECONDS)
        return await observe(session, tab, options)

    def _blank(self, session: Session, tab: Tab, problem: Exception | None) -> dict[str, Any]:
        """The observation of a page that cannot be looked at, which says why."""
        why = "the page does not respond"
        if isinstance(problem, Error):
            why = f"the page cannot be observed: {protocol_reason(problem)}"
        infos = [each.info(current=each is tab) for each in session.tabs.values()]
        notices = [*session.pending.notices, *session.pending.dialogs, f"{why}: go elsewhere"]
        session.pending.forget()
        return blank_observation(infos, notices)

    async def full_page(self, browser_id: str, page_id: str) -> bytes:
        """A PNG image of the whole page, as far as it is not endless."""
        async with self._keeper.session(browser_id) as session:
            tab = session.tab(page_id)
            await self._keeper.ensure(session, tab)
            try:
                return await tab.page_handle.guard(capture_all(tab), session.deadline.to_act())
            except (PageLost, PageHung) as problem:
                raise Conflict(await self._keeper.recover(session, tab, problem)) from None

    # --- rounds ---

    async def stored_image(self, browser_id: str, page_id: str, number: str) -> bytes:
        """The screenshot as it was stored at that round.

        Raises:
            NotFound: none was stored.
        """
        session = self._pool.find(browser_id).session
        tab = session.tab(page_id)
        name = round_name(number)
        path = session.rounds / f"{tab.id}-{name}.image"
        if not name or not path.is_file():
            raise NotFound(f"no screenshot was stored at round '{number[:40]}' of page {tab.id}")
        return path.read_bytes()

    async def html(self, browser_id: str, page_id: str, number: str) -> tuple[str, str]:
        """HTML and URL as stored at that round; of now where none was stored."""
        session = self._pool.find(browser_id).session
        tab = session.tab(page_id)
        name = round_name(number)
        path = session.rounds / f"{tab.id}-{name}.html"
        if name and path.is_file():
            url, _, text = path.read_text(encoding="utf-8").partition("\n")
            return text, url
        async with self._keeper.session(browser_id):
            await self._keeper.ensure(session, tab)
            try:
                content = tab.page_handle.page.content()
                text = await tab.page_handle.guard(content, session.deadline.to_act())
            except (PageLost, PageHung) as problem:
                raise Conflict(await self._keeper.recover(session, tab, problem)) from None
            return text, tab.url()

    def file(self, filename: str) -> Path:
        """Where a download lies, by its wire path.

        Raises:
            NotFound: no browser has it.
        """
        parts = wire_parts(filename)
        if len(parts) == 3:
            lease: Lease = self._pool.find(parts[1])
            lease.session.used = time.time()
            path = lease.session.downloads.find(filename)
            if path is not None:
                return path
        raise NotFound("no such file: filename must be one of downloaded_file_path")


def _url_of(request: PerformAction) -> str:
    return request.actionValue or request.text


async def _prepare(page_handle: PageHandle, request: PerformAction) -> None:
    """Begin to watch the page, and look up the action's element at the same time."""
    number = element_number(request.targetId)
    if number.isdecimal() and len(number) <= 15:
        ahead = page_handle.observer.resolve_ahead(int(number))
        await asyncio.gather(page_handle.settler.arm(), ahead)
    else:
        await page_handle.settler.arm()
