"""The context of one action: session, tab and request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from web_server.contract import PerformAction
from web_server.errors import BadRequest
from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle
from web_server.session.session import Session


@dataclass
class ActionContext:
    """The argument of every action handler.

    Attributes:
        session: the leased browser.
        tab: the page acted on; a handler may replace it.
        request: the action's arguments.
        data: JSON data that the action returns besides its message; None for none.
    """

    session: Session
    tab: Tab
    request: PerformAction
    data: Any = None

    @property
    def page_handle(self) -> PageHandle:
        """The Playwright page acted on."""
        return self.tab.page_handle

    def point(self) -> tuple[float, float]:
        """Return the request's point.

        Raises:
            BadRequest: x or y is missing, or lies outside the viewport.
        """
        x, y = self.request.x, self.request.y
        if x is None or y is None:
            raise BadRequest(f"{self.request.actionName} needs x and y, in pixels of the viewport")
        return self.within_view(x, y)

    def within_view(self, x: float, y: float) -> tuple[float, float]:
        """Return the point.

        Raises:
            BadRequest: it lies outside the viewport.
        """
        width, height = self.session.viewport
        if not (0 <= x < width and 0 <= y < height):
            raise BadRequest(f"({x:g}, {y:g}) is outside the viewport, {width} x {height}")
        return x, y
