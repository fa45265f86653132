"""Tabs whose pages closed. Whether they closed themselves or Chromium crashed shows only later."""

from __future__ import annotations

from dataclasses import dataclass

from web_server.session.page import Tab
from web_server.session.page_handle import PageHandle


@dataclass(frozen=True)
class ClosedTab:
    """A tab whose last page closed.

    Attributes:
        tab: the tab, without pages.
        page_handle: its last page.
        current: id of the tab that was the current one before.
        line: the event that reported it.
    """

    tab: Tab
    page_handle: PageHandle
    current: str
    line: str


class ClosedTabs:
    """The closed tabs of one session that may have to be restored."""

    def __init__(self) -> None:
        self._closed: list[ClosedTab] = []

    def __bool__(self) -> bool:
        return bool(self._closed)

    def add(self, closed: ClosedTab) -> None:
        """Add a tab whose last page closed."""
        self._closed.append(closed)

    def take(self) -> list[ClosedTab]:
        """Remove and return all closed tabs, the last one first."""
        closed, self._closed = self._closed, []
        return closed[::-1]
