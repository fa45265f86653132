"""Observe a page: the wire's observation, screenshots, and the files stored for each round."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any

from playwright.async_api import Error

from web_server.contract import Observation, ObserveOptions
from web_server.errors import ServerError
from web_server.observe.marks import draw_marks
from web_server.observe.observer import Observed
from web_server.operations.capture import Picture, capture
from web_server.operations.session_recovery import SessionRecovery
from web_server.operations.settling import settle
from web_server.session.page import Tab, protocol_reason
from web_server.session.page_errors import FEW_LINES
from web_server.session.page_handle import PageHung, PageLost
from web_server.session.session import Session
from web_server.view import blank_observation, tree_text

MAX_ROUNDS = 300
"""Number of rounds whose screenshots and HTML are stored."""
_READ_SECONDS = 1.0
_ATTEMPTS = 3
_RELOADING = "the page kept navigating: scripts are off here until the next goto"


class Views:
    """Observe pages, and restore those that crash or hang meanwhile.

    Args:
        recovery: restores pages.
    """

    def __init__(self, recovery: SessionRecovery) -> None:
        self._recovery = recovery

    async def attach(
        self, error: ServerError, session: Session, tab: Tab, options: ObserveOptions | None
    ) -> ServerError:
        """Return the error, with an observation attached if `options` are given."""
        error.observation = await self.observe(session, tab, options)
        return error

    async def observe(
        self, session: Session, tab: Tab, options: ObserveOptions | None, seen: bool = False
    ) -> dict[str, Any] | None:
        """Return the wire's observation of a tab, and store its state in the background.

        Args:
            session: the leased browser.
            tab: the page.
            options: what to observe; None for nothing.
            seen: result `seen` of `SessionRecovery.settle`.
        """
        if options is None:
            self._recovery.remember(session, tab)
            return None
        deadline = session.deadline
        problem: Exception | None = None
        for attempt in range(_ATTEMPTS):
            if session.closed:
                raise PageLost
            try:
                if isinstance(problem, Error):
                    # The document was replaced during the walk.
                    await settle(session, tab)
                elif problem is not None:
                    await self._recovery.recover(session, tab, problem)
                await self._recovery.ensure(session, tab)
                # Half of the remaining time is for a second attempt, on a page that was stopped.
                limit = max(deadline.to_act(), deadline.to_observe() / 2)
                observing = self._observe_once(session, tab, options, seen and not attempt)
                view = await tab.page_handle.guard(observing, limit)
                self._recovery.remember(session, tab)
                return view
            except (PageLost, PageHung, Error) as failure:
                problem = failure
            if deadline.left <= 0:
                break
        if isinstance(problem, Error) and not await session.alive():
            raise problem
        return self.blank(session, tab, problem)

    async def _observe_once(
        self, session: Session, tab: Tab, options: ObserveOptions, seen: bool
    ) -> dict[str, Any]:
        if not tab.page_handle.settler.reloading:
            return await observe(session, tab, options, seen)
        session.pending.note(_RELOADING, in_tree=True)
        activity = tab.page_handle.activity
        await activity.until(lambda: activity.dom_ready, time.monotonic() + _READ_SECONDS)
        return await observe(session, tab, options)

    def blank(self, session: Session, tab: Tab, problem: Exception | None = None) -> dict[str, Any]:
        """Return the observation of a page that cannot be observed, with the reason."""
        busy = tab.page_handle.busy_reason() if tab.page_handles else ""
        reason = f"the page does not respond{busy}"
        if isinstance(problem, Error):
            reason = f"the page cannot be observed: {protocol_reason(problem)}"
        infos = [each.info(current=each is tab) for each in session.tabs.values()]
        notices = [*session.pending.notices, *session.pending.dialogs, f"{reason}: go elsewhere"]
        session.pending.clear()
        return blank_observation(infos, notices)


async def observe(
    session: Session, tab: Tab, options: ObserveOptions, quiet: bool = False
) -> dict[str, Any]:
    """Return the observation of a tab as the wire carries it, with the session's pending events.

    Args:
        session: the leased browser.
        tab: the page.
        options: what to observe.
        quiet: see `Observer.observe`.
    """
    page_handle = tab.page_handle
    observed, picture, html = await asyncio.gather(
        page_handle.observer.observe(
            scope=options.scope,
            fulltree=options.fulltree,
            snapshot=options.snapshot,
            elements=options.elements,
            quiet=quiet,
        ),
        capture(tab, options),
        _html(tab, options),
    )
    plain, boxed = await _marked(tab, options, picture)
    tab.last_title = observed.title
    tab.last_url = tab.url()
    view = _wire(session, tab, observed)
    view.html = html
    view.nonboxed_screenshot = _base64(plain)
    view.boxed_screenshot = _base64(boxed)
    view.imageScale = picture.scale
    view.pointer = page_handle.pointer
    if not options.fulltree:
        view.fulltree = ""
    view.number, view.delta = tab.history.add(view.yaml, options.since)
    if notice := page_handle.settler.take_notice():
        view.events.append(notice)
    await _store_round(session, tab, options, plain or boxed, html)
    session.pending.clear()
    return view.model_dump()


async def _marked(tab: Tab, options: ObserveOptions, picture: Picture) -> tuple[bytes, bytes]:
    """Return the screenshot without and with marks; empty unless requested."""
    boxed = b""
    if options.screenshot in ("boxed", "both"):
        boxes = [box.scaled(picture.scale) for box in await tab.page_handle.observer.boxes()]
        boxes = [] if options.region else boxes
        boxed = await asyncio.to_thread(draw_marks, picture.data, boxes, options.imageFormat)
    return (b"" if options.screenshot == "boxed" else picture.data), boxed


async def _html(tab: Tab, options: ObserveOptions) -> str:
    return await tab.page_handle.page.content() if options.html else ""


async def _store_round(
    session: Session, tab: Tab, options: ObserveOptions, image: bytes, html: str
) -> None:
    """Store screenshot and HTML under the client's round number."""
    name = round_name(options.currentRound)
    if not name or not (image or html):
        return
    url = tab.url()

    def store() -> None:
        stem = session.rounds / f"{tab.id}-{name}"
        if image:
            stem.with_suffix(".image").write_bytes(image)
        if html:
            stem.with_suffix(".html").write_text(f"{url}\n{html}", encoding="utf-8")
        kept = sorted(session.rounds.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in kept[: -2 * MAX_ROUNDS]:
            old.unlink()

    await asyncio.to_thread(store)


def _wire(session: Session, tab: Tab, observed: Observed) -> Observation:
    """Return the wire's observation from the observer's result and the session's events."""
    infos = [each.info(current=each is tab) for each in session.tabs.values()]
    notices = list(session.pending.notices)
    if tab.failure:
        notices.insert(0, tab.failure)
    if not tab.failure and observed.yaml_body.count("\n") < FEW_LINES:
        notices += filter(None, [tab.page_handle.errors.explain()])
    if observed.incomplete:
        notices.append("a part of this page could not be read: it is missing here")
    notices += [line for line in session.pending.dialogs if line not in notices]
    downloads = session.downloads.done
    return Observation(
        yaml=tree_text(infos, notices, observed.yaml_body),
        fulltree=tree_text(infos, notices, observed.fulltree_body),
        url=tab.url(),
        title=observed.title,
        pageId=tab.id,
        snapshot=observed.snapshot or {},
        downloaded_file_path=[download.path for download in downloads],
        downloads=list(downloads),
        tabs=infos,
        viewport=observed.viewport,
        scroll=observed.scroll,
        focused=observed.focused,
        messages=observed.messages,
        dialogs=list(session.pending.dialogs),
        events=list(session.pending.events),
        refused=tab.refused if tab.failure else {},
        failure=tab.failure,
        elements={str(key): value for key, value in (observed.elements or {}).items()},
    )


def round_name(number: str) -> str:
    """Return a round's number as part of a file name; empty if it is not valid there."""
    text = number.strip()
    return text if text.replace("-", "").replace("_", "").isalnum() and len(text) <= 40 else ""


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
