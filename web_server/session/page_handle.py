"""One Playwright page together with its eyes (`Observer`) and its pulse (`Activity`, `Settler`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from playwright.async_api import Dialog, Error, Page

from web_server.deadline import Deadline
from web_server.observe.observer import Observer
from web_server.quoting import quoted
from web_server.session.page_errors import PageErrors
from web_server.session.pending_events import PendingEvents
from web_server.settle.activity import Activity
from web_server.settle.settle import Settler

T = TypeVar("T")

_ANSWER_SECONDS = 1.0
MAX_DIALOGS = 20
"""So many dialogs may come while one action settles, until the page is loaded anew."""


NOTCH_PIXELS = 100
"""How far one notch of a wheel turns."""
MOST_NOTCHES = 50
"""So many notches are turned in one action; further, each turns more pixels."""
CLOSE_SECONDS = 5.0
"""How long a page may take to close."""


class PageLost(Exception):
    """The page's renderer crashed, or Chromium did; what was asked of it did not happen."""


class PageHung(Exception):
    """The page's renderer does not answer."""


class Renderer(Enum):
    """The state of a renderer that was too slow."""

    RESPONSIVE = "responsive"
    STOPPED = "responsive since its script was stopped"
    HUNG = "not responsive"


class Host(Protocol):
    """What a surface tells of: the session that it belongs to."""

    pending: PendingEvents
    follows_tabs: bool
    deadline: Deadline

    async def alive(self) -> bool:
        """Whether the Chromium behind the page answers."""

    def unreached(self, url: str) -> str:
        """Why no connection to the host of a URL was made; empty if one was."""

    def popup(self, page_handle: PageHandle, page: Page) -> None:
        """A page opened another one."""

    def surface_closed(self, page_handle: PageHandle) -> None:
        """The page closed, by itself or by us."""


_NOT_BY_FIELD = "by a picker without a field, which Chromium lets nobody answer"


@dataclass(frozen=True)
class Chooser:
    """A file chooser that a page opened.

    Attributes:
        node_id: DevTools id (`backendNodeId`) of the file field that it belongs to.
        several: whether the field takes several files.
        commits: how many documents had come into the main frame.
    """

    node_id: int
    several: bool
    commits: int


async def _no_check() -> None:
    pass


def _dialog_line(dialog: Dialog, accepted: bool, text: str | None, *, ordered: bool) -> str:
    """Return the line that reports a dialog, its answer, and how to answer it otherwise."""
    message = quoted(dialog.message, 500)
    leaving = dialog.type == "beforeunload"
    if not accepted and not ordered:
        asked = "whether to leave it" if leaving else f"{message} ({dialog.type})"
        came = "it was not left" if leaving else "it was dismissed"
        answer = "answer_dialog with a text" if dialog.type == "prompt" else "answer_dialog"
        return f"the page asked {asked}: {came}; to accept, {answer} first, then act again"
    if leaving:
        return f"the page asked whether to leave it: {'yes' if accepted else 'no'}"
    answer = "accepted" if accepted else "dismissed"
    if accepted and dialog.type == "prompt":
        answer += f" with {quoted(text or '', 200)}"
    return f"{dialog.type} {message} was {answer}"


class PageHandle:
    """One page of the browser.

    Args:
        page: the Playwright page.
        token: the session's secret, see `timers.js`.
        host: the session, told of what happens.

    Attributes:
        stays: how many times the page asked whether to leave it, and was not left.
        closing: whether its end was asked for, so that it is no news.
        is_new: whether it opened just now, as a tab or a pop-up, and has not been reported yet.
        opened_line: the event that reported its opening, or empty.
    """

    def __init__(self, page: Page, token: str, host: Host) -> None:
        self.page = page
        self.observer = Observer(page)
        self.activity = Activity(page)
        self.settler = Settler(self.activity, token)
        self.errors = PageErrors(page, self.activity)
        self._chooser: Chooser | None = None
        self.given_up = False
        self.mouse_at: tuple[float, float, int] | None = None
        self.before_input: Callable[[], Awaitable[None]] = _no_check
        """Awaited right before a button of the mouse is pressed; raises if that must not be."""
        self.before_key: Callable[[], Awaitable[None]] = _no_check
        """The same before a chord."""
        self._host = host
        self._lost = asyncio.Event()
        self._dialogs = 0
        self.stays = 0
        self.closing = False
        self.is_new = False
        self.opened_line = ""
        self._stayed = asyncio.Event()
        page.on("crash", lambda _page: self.mark_lost())
        page.on("close", lambda _page: host.surface_closed(self))
        page.on("dialog", self._on_dialog)
        page.on("popup", lambda popup: host.popup(self, popup))

    async def attach(self) -> None:
        """Open the DevTools sessions. To be called once, before the page goes anywhere."""
        await asyncio.gather(self.settler.attach(), self.observer.attach())
        # The browser library would tell of a chooser too late, once it has looked at its element.
        cdp = self.activity.cdp
        cdp.on("Page.fileChooserOpened", self._on_chooser)
        await asyncio.gather(
            cdp.send("Page.setInterceptFileChooserDialog", {"enabled": True}),
            self.errors.attach(cdp),
        )

    @property
    def lost(self) -> bool:
        """Whether the renderer behind the page is gone."""
        return self._lost.is_set()

    @property
    def loss(self) -> str:
        """Why the page is lost, in a few words."""
        return "the page showed dialogs without end" if self.given_up else "the page crashed"

    def mark_lost(self) -> None:
        """The renderer, or all of Chromium, is gone."""
        self._lost.set()

    async def guard(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run something that needs the renderer; never longer than the renderer lives.

        Args:
            work: what to run.
            seconds: how long it may take.

        Raises:
            PageLost: the renderer is gone, or went meanwhile.
            PageHung: it took too long.
        """
        working = asyncio.ensure_future(work)
        losing = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait(
                {working, losing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if self.lost:
                raise PageLost
            if not working.done():
                raise PageHung
            return working.result()
        except Error:
            # Calls fail a moment before the crash is reported.
            if self.page.is_closed() or await self._lost_soon() or not await self._host.alive():
                raise PageLost from None
            raise
        finally:
            losing.cancel()
            if not working.done():
                working.cancel()
            await asyncio.gather(losing, return_exceptions=True)
            if working.done() and not working.cancelled():
                working.exception()

    async def _lost_soon(self) -> bool:
        try:
            await asyncio.wait_for(self._lost.wait(), 0.3)
        except asyncio.TimeoutError:
            return False
        return True

    async def answers(self, seconds: float) -> bool:
        """Whether the renderer runs a script within so many seconds."""
        asking = self.activity.cdp.send("Runtime.evaluate", {"expression": "1"})
        try:
            await asyncio.wait_for(asking, seconds)
        except (asyncio.TimeoutError, Error):
            return False
        return True

    async def unhang(self) -> Renderer:
        """Stop the script that keeps the renderer busy, if it does not answer."""
        if await self.answers(_ANSWER_SECONDS):
            return Renderer.RESPONSIVE
        with suppress(asyncio.TimeoutError, Error):
            terminating = self.activity.cdp.send("Runtime.terminateExecution")
            await asyncio.wait_for(terminating, _ANSWER_SECONDS)
        return Renderer.STOPPED if await self.answers(_ANSWER_SECONDS) else Renderer.HUNG

    async def stop_long_script(self) -> None:
        """Stop a script that keeps the renderer from responding, and report it.

        Raises:
            PageHung: it does not respond all the same.
        """
        state = await self.unhang()
        if state is Renderer.STOPPED:
            line = "a script of the page ran too long and was stopped"
            self._host.pending.note(line, loud=True)
        if state is Renderer.HUNG:
            raise PageHung

    async def close(self) -> None:
        """Close the page; a renderer that hangs is killed."""
        try:
            await asyncio.wait_for(self.page.close(), CLOSE_SECONDS)
        except (asyncio.TimeoutError, Error):
            pass  # Chromium itself is gone; the context's end takes the page along
        self.mark_lost()

    async def close_unless_asked(self) -> bool:
        """Close the page as a person does; False if it asked whether to leave it, and stays."""
        self.closing = True
        self._stayed.clear()
        waited = [asyncio.ensure_future(event.wait()) for event in (self._lost, self._stayed)]
        try:
            await asyncio.wait_for(self.page.close(run_before_unload=True), CLOSE_SECONDS)
            await asyncio.wait(waited, timeout=CLOSE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._stayed.is_set():
                self.closing = False
                return False
        except (asyncio.TimeoutError, Error):
            pass  # it hangs, or is gone already
        finally:
            for each in waited:
                each.cancel()
        await self.close()
        return True

    async def move_mouse(self, x: float, y: float, steps: int = 1) -> None:
        """Move the mouse to a point of the viewport, in so many steps."""
        self.mouse_at = (x, y, self.activity.commits)
        await self.page.mouse.move(x, y, steps=steps)

    async def turn_wheel(self, dx: float, dy: float) -> None:
        """Turn the wheel by so many pixels, notch by notch: a canvas may count notches alone."""
        notches = min(MOST_NOTCHES, max(1, round(max(abs(dx), abs(dy)) / NOTCH_PIXELS)))
        for _ in range(notches):
            await self.page.mouse.wheel(dx / notches, dy / notches)

    def begin_action(self) -> None:
        """Forget what was counted during the last action, and what it was checked for."""
        self._dialogs = 0
        self.before_input = self.before_key = _no_check

    async def press_key(self, chord: str) -> None:
        """Press a chord, in the browser library's names."""
        await self.before_key()
        await self.page.keyboard.press(chord)

    async def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs += 1
        pending = self._host.pending
        # An alert asks nothing: an answer ordered ahead is for a question.
        ordered = None if dialog.type == "alert" else pending.take_answer()
        accept, text = ordered or (self._is_accepted(dialog.type), None)
        if dialog.type == "prompt" and text is None:
            text = dialog.default_value
        if dialog.type == "beforeunload" and not accept:
            self.stays += 1
            self._stayed.set()
        if self._dialogs < MAX_DIALOGS:
            pending.tell_dialog(_dialog_line(dialog, accept, text, ordered=ordered is not None))
        try:
            if self._dialogs >= MAX_DIALOGS:
                # Answering would only bring the next one: the page is given up and loaded anew.
                pending.note(f"the page showed {MAX_DIALOGS} dialogs in a row", loud=True)
                self.given_up = True
                self.mark_lost()
            elif accept:
                await (dialog.accept(text) if dialog.type == "prompt" else dialog.accept())
            else:
                await dialog.dismiss()
        except Error:
            pass  # the page went away with its dialog

    def _is_accepted(self, kind: str) -> bool:
        """Whether a dialog without an ordered answer is accepted: a question is not.

        A client that does not follow tabs may not know of answers. Its pages are left as it asks,
        as without a dialog.
        """
        return kind == "alert" or (kind == "beforeunload" and not self._host.follows_tabs)

    @property
    def open_chooser(self) -> Chooser | None:
        """The file chooser that the document opened last and that has no answer yet."""
        chooser = self._chooser
        stays = chooser is not None and chooser.commits == self.activity.commits
        return chooser if stays else None

    async def answer_chooser(self, chooser: Chooser, files: list[Path]) -> bool:
        """Give files to the chooser that the page opened; False if its field is gone."""
        self._chooser = None
        paths = [str(file) for file in files]
        arguments = {"files": paths, "backendNodeId": chooser.node_id}
        try:
            await self.activity.cdp.send("DOM.setFileInputFiles", arguments)
        except Error:
            return False
        return True

    def _on_chooser(self, event: dict[str, Any]) -> None:
        node_id = event.get("backendNodeId", 0)
        if not node_id:
            self._host.pending.note(f"the page asks for a file {_NOT_BY_FIELD}", loud=True)
            return
        several = event["mode"] == "selectMultiple"
        self._chooser = Chooser(node_id, several, self.activity.commits)
        self._host.pending.note("the page asks for a file: use the action upload", loud=True)
