"""One action at work: what every function of an action gets."""

from __future__ import annotations

from dataclasses import dataclass

from web_server.contract import PerformAction
from web_server.errors import BadRequest
from web_server.page import Tab
from web_server.session import Session
from web_server.surface import Surface


@dataclass
class Doing:
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
    def surface(self) -> Surface:
        """The Playwright page acted on."""
        return self.tab.surface

    def point(self) -> tuple[float, float]:
        """The request's point.

        Raises:
            BadRequest: x or y is missing, or outside of the viewport.
        """
        x, y = self.request.x, self.request.y
        if x is None or y is None:
            raise BadRequest(f"{self.request.actionName} needs x and y, in pixels of the viewport")
        width, height = self.session.viewport
        if not (0 <= x < width and 0 <= y < height):
            raise BadRequest(f"({x:g}, {y:g}) is outside of the viewport, {width} x {height}")
        return x, y
