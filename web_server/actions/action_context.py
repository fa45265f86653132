"""One action at work: what every function of an action gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from web_server.contract import PerformAction
from web_server.errors import BadRequest
from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle
from web_server.session.session import Session
from web_server.view import shortened

_MEANT_TO_CHANGE = frozenset(
    {"click", "click_at", "double_click_at", "press", "drag", "drag_path", "type_text"}
)
"""Actions that tell when nothing came of them."""


@dataclass
class ActionContext:
    """One action at work.

    Attributes:
        session: the leased browser.
        tab: the page acted on; an action may exchange it for another.
        request: the action's arguments.
    """

    session: Session
    tab: Tab
    request: PerformAction

    @property
    def page_handle(self) -> PageHandle:
        """The Playwright page acted on."""
        return self.tab.page_handle

    def point(self) -> tuple[float, float]:
        """The request's point.

        Raises:
            BadRequest: x or y is missing, or outside of the viewport.
        """
        x, y = self.request.x, self.request.y
        if x is None or y is None:
            raise BadRequest(f"{self.request.actionName} needs x and y, in pixels of the viewport")
        return self.within_view(x, y)

    def within_view(self, x: float, y: float) -> tuple[float, float]:
        """The point itself.

        Raises:
            BadRequest: it is outside of the viewport.
        """
        width, height = self.session.viewport
        if not (0 <= x < width and 0 <= y < height):
            raise BadRequest(f"({x:g}, {y:g}) is outside of the viewport, {width} x {height}")
        return x, y


class Before:
    """What was counted before an action, to tell what it changed."""

    def __init__(self, session: Session, tab: Tab, action: str) -> None:
        self._url = tab.url()
        self._events = len(session.pending.events)
        self._dialogs = len(session.pending.dialogs)
        self._errors = tab.page_handle.errors.count
        self._telling = action in _MEANT_TO_CHANGE

    def message(self, said: str, session: Session, tab: Tab, settled: dict[str, Any]) -> str:
        """One line: what was done, and what came of it."""
        results = [
            *session.pending.dialogs[self._dialogs :],
            *session.pending.events[self._events :],
        ]
        if settled.get("navigated"):
            results.append(f"the page is now {shortened(tab.url())}")
        elif settled.get("changed"):
            results.append("the page changed")
        elif self._telling and not results and tab.url() != self._url:
            results.append(f"the address is now {shortened(tab.url())}")
        elif self._telling and not results and not settled.get("unseen"):
            results.append("nothing changed")
            if tab.page_handle.errors.count > self._errors:
                results.insert(-1, tab.page_handle.errors.explain(self._errors))
        results = [line for line in results if said not in line]
        return "; ".join(part for part in [said, *results] if part)
