"""Wait until a tab, its pop-ups and its downloads have settled after an action."""

from __future__ import annotations

import time

from web_server.contract import ObserveOptions
from web_server.javascript import load_script
from web_server.quoting import quoted
from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle
from web_server.session.session import Session
from web_server.settle.settle import Settled
from web_server.view import one_line

DOWNLOAD_SECONDS = 10.0
"""How long a download may delay the observation."""
DOWNLOAD_BEGIN_SECONDS = 2.0
"""How long a navigation that seems to be a download may take to begin one."""
DOWNLOAD_LINK_SECONDS = 4.0
"""How long the server of a link with `download` may take to answer."""
_RESERVE_SECONDS = 1.0
"""Settling ends so long before its limit: a page that keeps changing is not one that hangs."""

_DOWNLOAD_DOCUMENT = load_script("operations", "download_document")


async def settle(session: Session, tab: Tab, options: ObserveOptions | None = None) -> Settled:
    """Wait until a tab, its pop-ups and its downloads have settled.

    Args:
        session: the leased browser.
        tab: the tab that was acted on.
        options: of the observation that follows, if any: the page is then observed in the very
            moment when it has settled, which saves a round trip.

    Returns:
        as `Settler.settle`; `observed` says that the early observation is still valid.

    Raises:
        PageLost, PageHung: of the page.
    """
    await tab.close_discarded()
    page_handle = tab.page_handle
    if page_handle.page.is_closed():
        return Settled()  # a pop-up closed itself: its opener needs no waiting
    if options is not None:
        event = page_handle.settler.quiet_event
        page_handle.observer.observe_when(event, options.scope, options.fulltree)
    settled = await _settle_page(session, page_handle)
    if settled.invalid:
        name, message = map(quoted, settled.invalid)
        session.pending.note(f"the form was not sent: the field {name} is invalid: {message}")
    if settled.copied:
        keeping = session.clipboard.keep(session)
        if copied := await page_handle.guard(keeping, session.deadline.to_act()):
            session.pending.note(f"the page copied {quoted(copied)}")
    if session.arriving:
        settled.observed = False
        await session.settle_arrivals()
    if tab.id in session.tabs and tab.page_handle is not page_handle:
        settled = await _settle_page(session, tab.page_handle)
        settled.navigated, settled.observed = True, False
    elif session.current in session.tabs and session.current != tab.id:
        await _settle_page(session, session.tabs[session.current].page_handle)
        settled.observed = False
    if page_handle.settler.download_due is not None:
        settled.observed = False
        await _wait_for_download(session, page_handle)
    if session.downloads.active:
        settled.observed = False
        await session.downloads.wait(session.deadline.to_act(DOWNLOAD_SECONDS))
    await _report_document(session, tab)
    if failed := page_handle.errors.take_failed_requests():
        session.pending.note(failed)
    opened = session.tabs.get(session.current)
    if opened is not None and opened is not tab:
        await _report_document(session, opened)
    if session.tabs.get(session.current) is not opened:
        settled.observed = False
    return settled


async def _settle_page(session: Session, page_handle: PageHandle) -> Settled:
    """Wait until one page has settled; see `Settler.settle`."""
    deadline = session.deadline
    settling = page_handle.settler.settle(deadline.acting - _RESERVE_SECONDS)
    return await page_handle.guard(settling, deadline.to_act())


async def _wait_for_download(session: Session, page_handle: PageHandle) -> None:
    """Wait for the beginning of a download that an action seems to have started."""
    due, link = page_handle.settler.download_due, page_handle.settler.linked_download
    empty = "" if link else await page_handle.activity.no_content_reason()
    if empty:
        session.pending.note(empty)
        return
    seconds = session.deadline.to_act(DOWNLOAD_LINK_SECONDS if link else DOWNLOAD_BEGIN_SECONDS)
    if not await session.downloads.wait_for_begin(due or 0.0, seconds) and link:
        session.pending.note(f"the download of {one_line(link)[:300]} has not started yet")


async def _report_document(session: Session, tab: Tab) -> None:
    """Report the result of a navigation, and download a document that Chromium cannot show."""
    await tab.report_document()
    if await session.close_if_refused(tab) or not tab.pdf_due:
        return
    tab.pdf_due = False
    session.pending.note("this page is a PDF document: read the downloaded file", in_tree=True)
    if session.downloads.has(tab.url()):
        return
    asked = time.monotonic()
    deadline = session.deadline
    downloading = tab.page_handle.page.evaluate(_DOWNLOAD_DOCUMENT)
    await tab.page_handle.guard(downloading, deadline.to_act())
    if await session.downloads.wait_for_begin(asked, deadline.to_act(DOWNLOAD_LINK_SECONDS)):
        await session.downloads.wait(deadline.to_act(DOWNLOAD_SECONDS))
