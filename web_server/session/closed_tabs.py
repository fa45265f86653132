"""Tabs whose pages closed: by themselves, or because Chromium died, which shows only later."""

from __future__ import annotations

from dataclasses import dataclass

from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle


@dataclass(frozen=True)
class ClosedTab:
    """One of them.

    Attributes:
        tab: without a surface.
        surface: its last one.
        current: id of the tab that was the current one before.
        told: the line that tells of it.
    """

    tab: Tab
    page_handle: PageHandle
    current: str
    told: str


class ClosedTabs:
    """Those of one session that may have to come back."""

    def __init__(self) -> None:
        self._closed: list[ClosedTab] = []

    def __bool__(self) -> bool:
        return bool(self._closed)

    def add(self, closed: ClosedTab) -> None:
        """The last page of a tab closed."""
        self._closed.append(closed)

    def take(self) -> list[ClosedTab]:
        """It is known why they closed: all of them, the last one first."""
        closed, self._closed = self._closed, []
        return closed[::-1]
