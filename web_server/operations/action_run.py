"""Carry out one action: prepare, act, wait for the page to settle, report the effects."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from playwright.async_api import Error

from web_server.actions.action_context import ActionContext
from web_server.actions.action_targets import check_reach
from web_server.actions.named_elements import with_ids
from web_server.actions.pointer import element_number
from web_server.actions.registry import find_action
from web_server.contract import PerformAction
from web_server.errors import Conflict, NotFound, ServerError
from web_server.observe.target import ElementGone
from web_server.operations.observation import Views
from web_server.operations.session_recovery import SessionRecovery
from web_server.operations.settling import settle
from web_server.session.page import STAYED, Tab, protocol_reason
from web_server.session.page_handle import PageHandle, PageHung, PageLost
from web_server.session.session import Session
from web_server.settle.settle import Settled
from web_server.view import shortened

MAX_ID_DIGITS = 15


class ActionRun:
    """One action on one leased browser.

    Args:
        recovery: restores crashed and hung pages.
        views: observes pages.
        session: the leased browser, locked for this request.
        tab: the page to act on, which must be alive.
        request: the action's arguments.

    Attributes:
        named: the line of each element that the request names, by the text that names it.
        acted: the line of the element acted on, if the observation does not list it; else empty.
    """

    def __init__(
        self,
        recovery: SessionRecovery,
        views: Views,
        session: Session,
        tab: Tab,
        request: PerformAction,
    ) -> None:
        self._recovery = recovery
        self._views = views
        self._session = session
        self._tab = tab
        self._request = request
        self._options = request if request.observe else None
        self._action = find_action(request)
        self._context = ActionContext(session, tab, request)
        self._page_handle = tab.page_handle
        self._effects = Effects(session, tab)
        self._done: str | None = None
        self._settled = Settled()
        self.named: dict[str, str] = {}
        self.acted = ""

    @property
    def data(self) -> Any:
        """JSON data that the action returned; None for none."""
        return self._context.data

    async def run(self) -> tuple[str, dict[str, Any] | None]:
        """Return a message of what happened, and the observation if the request asks for it.

        Raises:
            ServerError: the action could not be done. Its `observation` shows the page, if the
                request asks for it.
        """
        session, action = self._session, self._action
        self._page_handle.begin_action()
        session.clipboard.begins(session)
        if action.acts:
            session.downloads.restoring = False
        stays, dialogs = self._page_handle.dialogs.stays, session.pending.dialog_count
        try:
            await self._perform()
            if action.settles:
                self._settled = await settle(session, self._context.tab, self._options)
        except (PageLost, PageHung) as problem:
            await self._handle_loss(problem)
        except ElementGone as gone:
            raise await self._failure(NotFound(str(gone))) from None
        except Error as error:
            reason = f"{self._request.actionName} did not work: {protocol_reason(error)}"
            raise await self._failure(Conflict(reason)) from None
        except ServerError as error:
            raise await self._failure(error) from None
        finally:
            if not self._settled.observed:
                self._page_handle.observer.cancel_observe_when()
        if session.pending.dialog_count > dialogs:
            session.pending.forget_answers()
        if self._page_handle.dialogs.stays > stays and action.leaves_page:
            self._done = STAYED
        return await self._report()

    async def _perform(self) -> None:
        """Run the handler, on a page that is watched if the action may change it."""
        context, action, deadline = self._context, self._action, self._session.deadline
        if action.destination and not self._tab.refuse(action.destination(context)):
            await self._recovery.clear_way(self._session, self._tab)
            self._page_handle = self._tab.page_handle
        page_handle = self._page_handle
        naming = with_ids(page_handle, self._request)
        self._request, self.named = await page_handle.guard(naming, deadline.to_act())
        context.request = self._request
        if action.settles:
            pressing = action.name == "press"
            await page_handle.guard(
                _prepare(page_handle, self._request, pressing), deadline.to_act()
            )
        limit = deadline.to_act()
        try:
            await page_handle.guard(check_reach(context), deadline.to_act())
            page_handle.before_input = partial(check_reach, context)
            page_handle.before_key = partial(check_reach, context, True)
            acting = action.run(context)
            # The guard would report a page that closes as lost.
            self._done = await (acting if action.closes_page else page_handle.guard(acting, limit))
        finally:
            page_handle.observer.drop_prefetched()

    async def _handle_loss(self, problem: PageLost | PageHung) -> None:
        """Restore the page after a crash or a hang, and report how far the action came.

        Raises:
            Conflict: the action was interrupted.
        """
        session, tab, action = self._session, self._tab, self._action
        if self._page_handle not in tab.page_handles and await session.alive():
            self._done = "the pop-up closed"
            if tab.page_handles:
                with suppress(PageLost, PageHung):  # the next observation restores it
                    self._settled = await settle(session, tab)
            return
        lost = await self._recovery.recover(session, tab, problem)
        crashed = isinstance(problem, PageLost) and not self._page_handle.given_up
        unfinished = self._done is None and not action.survives_crash
        if unfinished and (crashed or action.has_steps):
            interrupted = Conflict(f"{self._request.actionName} was interrupted: {lost}")
            raise await self._views.attach(interrupted, session, tab, self._options) from None
        self._done = f"{self._done}; then {lost}" if self._done else lost
        self._settled = Settled(unseen=True)

    async def _failure(self, error: ServerError) -> ServerError:
        """Attach the observation to an error, if the request asks for it."""
        return await self._views.attach(error, self._session, self._context.tab, self._options)

    async def _report(self) -> tuple[str, dict[str, Any] | None]:
        session, tab = self._session, self._context.tab
        if session.follows_tabs and session.current in session.tabs:
            tab = session.tabs[session.current]
        expects_change = self._action.expects_change
        message = self._effects.message(self._done or "", tab, self._settled, expects_change)
        seen = self._settled.observed and tab is self._context.tab
        view = await self._views.observe(session, tab, self._options, seen)
        if view is not None and tab is self._context.tab and not self._settled.navigated:
            await self._look_at_target(tab)
        return message, view

    async def _look_at_target(self, tab: Tab) -> None:
        """Read the element acted on, if the observation does not list it."""
        number = element_number(self._request.targetId)
        if not number.isdecimal() or len(number) > MAX_ID_DIGITS:
            return
        handle, limit = tab.page_handle, self._session.deadline.to_observe()
        with suppress(PageLost, PageHung, Error):  # the next request restores the page
            self.acted = await handle.guard(handle.observer.unseen_line(int(number)), limit)


class Effects:
    """Counters from before an action, to report what the action changed.

    Args:
        session: the leased browser.
        tab: the page acted on.
    """

    def __init__(self, session: Session, tab: Tab) -> None:
        self._pending = session.pending
        self._url = tab.url()
        self._events = len(session.pending.events)
        self._dialogs = len(session.pending.dialogs)
        self._errors = tab.page_handle.errors.count

    def message(self, done: str, tab: Tab, settled: Settled, expects_change: bool = False) -> str:
        """Return one line: what was done, and the page's reaction.

        Args:
            done: what the handler returned.
            tab: the page that is shown now.
            settled: result of `SessionRecovery.settle`.
            expects_change: report when nothing changed.
        """
        results = [*self._pending.dialogs[self._dialogs :], *self._pending.events[self._events :]]
        if settled.navigated:
            results.append(f"the page is now {shortened(tab.url())}")
        elif settled.changed:
            results.append("the page changed")
        elif expects_change and not results and tab.url() != self._url:
            results.append(f"the address is now {shortened(tab.url())}")
        elif expects_change and not results and not settled.unseen:
            results.append("nothing changed")
            if tab.page_handle.errors.count > self._errors:
                results.insert(-1, tab.page_handle.errors.explain(self._errors))
        results = [line for line in results if done not in line]
        return "; ".join(part for part in [done, *results] if part)


async def _prepare(page_handle: PageHandle, request: PerformAction, pressing: bool) -> None:
    """Start watching the page, and look up the action's element at the same time."""
    number = element_number(request.targetId)
    if number.isdecimal() and len(number) <= MAX_ID_DIGITS:
        ahead = page_handle.observer.prefetch(int(number))
        await asyncio.gather(page_handle.settler.arm(pressing), ahead)
    else:
        await page_handle.settler.arm(pressing)
