"""Errors of a page's scripts and resources, to explain a page that is empty or does not react."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.async_api import CDPSession, Error, Page

from web_server.quoting import quoted
from web_server.settle.activity import Activity

MOST_ERRORS = 20
"""So many errors of one document are kept."""
SHOWN_ERRORS = 3
FEW_LINES = 4
"""A page with so few lines, that of the title and of the scroll position included, is empty."""
_LONGEST = 160
_HTTP_STATUS = re.compile(r"^Failed to load resource: the server responded with a status of (\d+)")


class _Error(NamedTuple):
    """One error; those of scripts have the rank 0 and come first."""

    rank: int
    number: int
    line: str


class PageErrors:
    """The first errors of the document that a page shows.

    Args:
        page: the page to listen to.
        activity: counts its documents.
    """

    def __init__(self, page: Page, activity: Activity) -> None:
        self._activity = activity
        self._commits = 0
        self._errors: list[_Error] = []
        self.count = 0
        """How many different errors there were in all documents."""
        page.on("pageerror", self._on_exception)

    async def attach(self, cdp: CDPSession) -> None:
        """Begin to listen. To be called once, before the page goes anywhere."""
        cdp.on("Log.entryAdded", self._on_entry)
        await cdp.send("Log.enable")

    def explain(self, since: int = 0) -> str:
        """Return errors of the document as one line, with what to do; empty without any.

        Args:
            since: an earlier `count`: only later errors.
        """
        self._forget_other_documents()
        later = sorted(each for each in self._errors if each.number > since)
        if not later:
            return ""
        more = f" and {len(later) - SHOWN_ERRORS} more" if len(later) > SHOWN_ERRORS else ""
        shown = "; ".join(each.line for each in later[:SHOWN_ERRORS])
        return f"scripts or resources of the page failed: {shown}{more}; goto its URL to reload it"

    def _on_exception(self, error: Error) -> None:
        text = (error.message or str(error)).split("\n", 1)[0]
        self._add(0, f"uncaught {quoted(text, _LONGEST)}")

    def _on_entry(self, event: dict[str, Any]) -> None:
        entry = event["entry"]
        if entry.get("level") != "error" or entry.get("source") not in ("network", "security"):
            return
        url = urlsplit(entry.get("url", ""))
        if url.path.endswith("/favicon.ico"):
            return
        reason = _reason(entry.get("text", ""))
        shown = quoted(f"{url.netloc}{url.path}", _LONGEST)[1:-1].replace(" ", "%20")
        self._add(1, f"{shown}: {reason}" if url.netloc else reason)

    def _add(self, rank: int, line: str) -> None:
        self._forget_other_documents()
        if len(self._errors) < MOST_ERRORS and all(line != each.line for each in self._errors):
            self.count += 1
            self._errors.append(_Error(rank, self.count, line))

    def _forget_other_documents(self) -> None:
        if self._commits != self._activity.commits:
            self._commits = self._activity.commits
            self._errors = []


def _reason(text: str) -> str:
    """Why a resource failed. Its server and its page choose a part of Chromium's text."""
    if status := _HTTP_STATUS.search(text):
        return f"HTTP status {status[1]}"
    return quoted(text.removeprefix("Failed to load resource: "), _LONGEST)
