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

from web_server.actions import UNSETTLED, WAITING, WATCHING, action_of
from web_server.actions_page import MAX_WAIT
from web_server.contract import ObserveOptions, PerformAction
from web_server.doing import Before, Doing
from web_server.downloads import wire_parts
from web_server.errors import BadRequest, Conflict, NotFound, ServerError
from web_server.hands import element_number
from web_server.keeper import Keeper
from web_server.looking import capture_all, observe, round_name
from web_server.observe import ElementGone
from web_server.page import STAYED, Tab, protocol_reason
from web_server.pool import Lease, Pool
from web_server.reach import check_reach, reach_of
from web_server.saving import SAVE_SECONDS
from web_server.session import Session
from web_server.surface import PageHung, PageLost, Surface
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
        self._keeper = Keeper(pool)

    # --- requests ---

    async def open_page(self, browser_id: str, url: str, options: ObserveOptions | None) -> Any:
        """A new page at `url`: its id, and what it looks like if `options` are given."""
        if not url.strip():
            raise BadRequest("url is missing: openPage needs the address to open")
        async with self._keeper.session(browser_id) as session:
            tab = await self._keeper.open_tab(session, url)
            await self._travel(session, tab, url)
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
        session.downloads.restoring = False
        asked = session.news.asked
        try:
            await self._keeper.clear_way(session, tab)
            surface, limit = tab.surface, session.deadline.to_act()
            await surface.guard(surface.settler.arm(), limit)
            message = await surface.guard(tab.goto(url), limit)
            await self._keeper.settle(session, tab)
        except (PageLost, PageHung) as problem:
            message = await self._keeper.recover(session, tab, problem)
        if session.news.asked > asked:
            session.news.forget_answers()
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
            doing = Doing(session, tab, request)
            try:
                found = await tab.surface.guard(reach_of(doing), session.deadline.to_act())
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
            doing = Doing(session, tab, request)
            options = request if request.observe else None
            before = Before(session, tab, name)
            surface = tab.surface
            surface.begin_action()
            stays, asked = surface.stays, session.news.asked
            session.clipboard.begins(session)
            if name not in WATCHING:
                session.downloads.restoring = False
            settled: dict[str, Any] = {}
            said: str | None = None
            try:
                if name in _TRAVELLING:
                    await self._keeper.clear_way(session, tab)
                    surface = tab.surface
                if name not in UNSETTLED:
                    await surface.guard(_prepare(surface, request), session.deadline.to_act())
                limit = session.deadline.to_act()
                try:
                    await surface.guard(check_reach(doing), session.deadline.to_act())
                    surface.before_input = partial(check_reach, doing)
                    surface.before_key = partial(check_reach, doing, True)
                    acting = action(doing)
                    # to close a page is to lose it
                    said = await (acting if name == "close_tab" else surface.guard(acting, limit))
                finally:
                    surface.observer.forget_ahead()
                if name not in UNSETTLED:
                    settled = await self._keeper.settle(session, doing.tab, options)
            except (PageLost, PageHung) as problem:
                if surface in tab.surfaces or not await session.alive():
                    lost = await self._keeper.recover(session, tab, problem)
                    crashed = isinstance(problem, PageLost) and not surface.given_up
                    # Half done, or not done at all: the caller looks before it goes on.
                    if said is None and name != "wait" and (crashed or name in _IN_PARTS):
                        cut_off = Conflict(f"{request.actionName} was cut off: {lost}")
                        raise await self._with_view(cut_off, session, tab, options) from None
                    said = f"{said}; then {lost}" if said else lost
                else:
                    said = "the pop-up closed"
                    if tab.surfaces:
                        with suppress(PageLost, PageHung):  # whoever looks at it recovers it
                            settled = await self._keeper.settle(session, tab)
            except ElementGone as gone:
                raise await self._with_view(
                    NotFound(str(gone)), session, doing.tab, options
                ) from None
            except Error as error:
                reason = protocol_reason(error)
                failure = Conflict(f"{request.actionName} did not work: {reason}")
                raise await self._with_view(failure, session, doing.tab, options) from None
            except ServerError as error:
                raise await self._with_view(error, session, doing.tab, options) from None
            finally:
                if not settled.get("seen"):
                    surface.observer.forget_look()
            if session.news.asked > asked:
                session.news.forget_answers()
            if surface.stays > stays and name in _LEAVING:
                said = STAYED
            tab = doing.tab
            if session.follows_tabs and session.current in session.tabs:
                tab = session.tabs[session.current]
            message = before.message(said, session, tab, settled)
            seen = bool(settled.get("seen")) and tab is doing.tab
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
                view = await tab.surface.guard(looking, limit)
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
        if not tab.surface.settler.reloading:
            return await observe(session, tab, options, seen)
        session.news.note(_RELOADING, loud=True)
        activity = tab.surface.activity
        await activity.until(lambda: activity.dom_ready, time.monotonic() + _READ_SECONDS)
        return await observe(session, tab, options)

    def _blank(self, session: Session, tab: Tab, problem: Exception | None) -> dict[str, Any]:
        """The observation of a page that cannot be looked at, which says why."""
        why = "the page does not respond"
        if isinstance(problem, Error):
            why = f"the page cannot be observed: {protocol_reason(problem)}"
        infos = [each.info(current=each is tab) for each in session.tabs.values()]
        notices = [*session.news.notices, *session.news.dialogs, f"{why}: go elsewhere"]
        session.news.forget()
        return blank_observation(infos, notices)

    async def full_page(self, browser_id: str, page_id: str) -> bytes:
        """A PNG image of the whole page, as far as it is not endless."""
        async with self._keeper.session(browser_id) as session:
            tab = session.tab(page_id)
            await self._keeper.ensure(session, tab)
            try:
                return await tab.surface.guard(capture_all(tab), session.deadline.to_act())
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
                content = tab.surface.page.content()
                text = await tab.surface.guard(content, session.deadline.to_act())
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


async def _prepare(surface: Surface, request: PerformAction) -> None:
    """Begin to watch the page, and look up the action's element at the same time."""
    number = element_number(request.targetId)
    if number.isdecimal() and len(number) <= 15:
        ahead = surface.observer.resolve_ahead(int(number))
        await asyncio.gather(surface.settler.arm(), ahead)
    else:
        await surface.settler.arm()
