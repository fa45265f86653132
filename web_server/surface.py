"""One Playwright page together with its eyes (`Observer`) and its pulse (`Activity`, `Settler`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from playwright.async_api import Dialog, Error, Page

from web_server.activity import Activity
from web_server.news import News
from web_server.observe import Observer
from web_server.settle import Settler

T = TypeVar("T")

MAX_DIALOGS = 20
"""So many dialogs may come while one action settles, until the page is loaded anew."""


class PageLost(Exception):
    """The page's renderer crashed, or Chromium did; what was asked of it did not happen."""


class PageHung(Exception):
    """The page's renderer does not answer."""


class Host(Protocol):
    """What a surface tells of: the session that it belongs to."""

    news: News

    async def alive(self) -> bool:
        """Whether the Chromium behind the page answers."""

    def unreached(self, url: str) -> str:
        """Why no connection to the host of a URL was made; empty if one was."""

    def popup(self, surface: Surface, page: Page) -> None:
        """A page opened another one."""

    def surface_closed(self, surface: Surface) -> None:
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


class Surface:
    """One page of the browser.

    Args:
        page: the Playwright page.
        token: the session's secret, see `timers.js`.
        host: the session, told of what happens.
    """

    def __init__(self, page: Page, token: str, host: Host) -> None:
        self.page = page
        self.observer = Observer(page)
        self.activity = Activity(page)
        self.settler = Settler(self.activity, token)
        self._chooser: Chooser | None = None
        self.given_up = False
        self.mouse_at: tuple[float, float, int] | None = None
        self.before_input: Callable[[], Awaitable[None]] = _no_check
        """Awaited right before a button or a key is pressed; raises if that must not be."""
        self._host = host
        self._lost = asyncio.Event()
        self._dialogs = 0
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
        await cdp.send("Page.setInterceptFileChooserDialog", {"enabled": True})

    @property
    def lost(self) -> bool:
        """Whether the renderer behind the page is gone."""
        return self._lost.is_set()

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

    async def unhang(self) -> bool:
        """Stop the script that keeps the renderer busy; whether it answers again."""
        cdp = self.activity.cdp
        try:
            await asyncio.wait_for(cdp.send("Runtime.terminateExecution"), 3)
            await asyncio.wait_for(cdp.send("Runtime.evaluate", {"expression": "1"}), 5)
        except (asyncio.TimeoutError, Error):
            return False
        return True

    async def close(self) -> None:
        """Close the page; a renderer that hangs is killed."""
        try:
            await asyncio.wait_for(self.page.close(), 5)
        except (asyncio.TimeoutError, Error):
            pass  # Chromium itself is gone; the context's end takes the page along
        self.mark_lost()

    async def move_mouse(self, x: float, y: float, steps: int = 1) -> None:
        """Move the mouse to a point of the viewport, in so many steps."""
        self.mouse_at = (x, y, self.activity.commits)
        await self.page.mouse.move(x, y, steps=steps)

    def begin_action(self) -> None:
        """Forget what was counted during the last action, and what it was checked for."""
        self._dialogs = 0
        self.before_input = _no_check

    async def press_key(self, chord: str) -> None:
        """Press a chord, in the browser library's names."""
        await self.before_input()
        await self.page.keyboard.press(chord)

    async def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs += 1
        accept, text = self._host.news.dialog_answer()
        if dialog.type == "prompt" and text is None:
            text = dialog.default_value
        try:
            if self._dialogs >= MAX_DIALOGS:
                # Answering would only bring the next one: the page is given up and loaded anew.
                self._host.news.note(f"the page showed {MAX_DIALOGS} dialogs in a row", loud=True)
                self.given_up = True
                self.mark_lost()
                return
            if accept:
                await (dialog.accept(text) if dialog.type == "prompt" else dialog.accept())
            else:
                await dialog.dismiss()
        except Error:
            pass  # the page went away with its dialog
        answer = "accepted" if accept else "dismissed"
        if accept and dialog.type == "prompt":
            answer += f" with '{text or ''}'"
        if dialog.type == "beforeunload":
            said = "yes" if accept else "no"
            self._host.news.tell_dialog(f"the page asked whether to leave it: {said}")
            return
        message = " ".join(dialog.message.split())[:500]
        self._host.news.tell_dialog(f"{dialog.type} '{message}' was {answer}")

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
            self._host.news.note(f"the page asks for a file {_NOT_BY_FIELD}", loud=True)
            return
        several = event["mode"] == "selectMultiple"
        self._chooser = Chooser(node_id, several, self.activity.commits)
        self._host.news.note("the page asks for a file: use the action upload", loud=True)
