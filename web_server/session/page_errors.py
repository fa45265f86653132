"""Errors of a page's scripts and resources, to explain an empty page or one that does not react."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.async_api import CDPSession, Error, Page

from web_server.quoting import quoted
from web_server.session.page_limits import PageLimits
from web_server.settle.activity import Activity

MAX_ERRORS = 20
"""Errors of one document that are kept."""
SHOWN_ERRORS = 3
FEW_LINES = 4
"""A page whose tree has fewer lines, including title and scroll position, counts as empty."""
_LONGEST = 160
_HTTP_STATUS = re.compile(r"^Failed to load resource: the server responded with a status of (\d+)")


class _Error(NamedTuple):
    """One error. Script errors have rank 0 and come first."""

    rank: int
    number: int
    line: str


class PageErrors:
    """The first errors of the document that a page shows.

    Args:
        page: the page.
        activity: counts its documents.
        limits: counts its log entries.

    Attributes:
        count: number of different errors in all documents.
        failed_requests: background requests to the page's own site that failed, with the reason.
    """

    def __init__(self, page: Page, activity: Activity, limits: PageLimits) -> None:
        self._activity = activity
        self._limits = limits
        self._commits = 0
        self._errors: list[_Error] = []
        self.count = 0
        self.failed_requests: list[str] = []
        self._page = page
        page.on("pageerror", self._on_exception)

    async def attach(self, cdp: CDPSession) -> None:
        """Start listening. Call once, before the first navigation."""
        cdp.on("Log.entryAdded", self._on_entry)
        await cdp.send("Log.enable")

    def explain(self, since: int = 0) -> str:
        """Return the document's errors as one line with advice; empty if there are none.

        Args:
            since: an earlier `count`; only later errors are returned.
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
        self._limits.count_report()
        entry = event["entry"]
        if entry.get("level") != "error" or entry.get("source") not in ("network", "security"):
            return
        url = urlsplit(entry.get("url", ""))
        in_background = entry.get("url") in self._activity.background
        if url.path.endswith("/favicon.ico"):
            return
        reason = _reason(entry.get("text", ""))
        shown = quoted(f"{url.netloc}{url.path}", _LONGEST)[1:-1].replace(" ", "%20")
        line = f"{shown}: {reason}" if url.netloc else reason
        self._add(1, line)
        if in_background and line not in self.failed_requests and self._is_own_site(url.hostname):
            self.failed_requests = [*self.failed_requests, line][-SHOWN_ERRORS:]

    def _is_own_site(self, host: str | None) -> bool:
        """Whether a host is that of the page, or shares its last two labels."""
        hosts = host or "", urlsplit(self._page.url).hostname or ""
        own, other = (name.split(".")[-2:] for name in hosts)
        return hosts[0] == hosts[1] or (own == other and not own[-1].isdigit())

    def take_failed_requests(self) -> str:
        """Return the background requests that failed since the last call, in one line, or empty."""
        failed, self.failed_requests = self.failed_requests, []
        return f"a background request failed: {'; '.join(failed)}" if failed else ""

    def _add(self, rank: int, line: str) -> None:
        self._forget_other_documents()
        if len(self._errors) < MAX_ERRORS and all(line != each.line for each in self._errors):
            self.count += 1
            self._errors.append(_Error(rank, self.count, line))

    def _forget_other_documents(self) -> None:
        if self._commits != self._activity.commits:
            self._commits = self._activity.commits
            self._errors = []


def _reason(text: str) -> str:
    """Return why a resource failed, quoted: server and page choose a part of Chromium's text."""
    if status := _HTTP_STATUS.search(text):
        return f"HTTP status {status[1]}"
    return quoted(text.removeprefix("Failed to load resource: "), _LONGEST)
