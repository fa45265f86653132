"""Render observations in the form of the wire."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from web_server.contract import Observation, TabInfo
from web_server.quoting import notice, title, unquoted

_LONGEST = 300
NOTICE_ID = 0
"""Element id of the server's own lines in the tree."""


def one_line(text: str) -> str:
    """Return a text for use between single quotes; see `quoting.unquoted`."""
    return unquoted(text)


def shortened(text: str) -> str:
    """Return a URL or title as one line of limited length."""
    line = one_line(text)
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "\u2026"


def tab_lines(tabs: Sequence[TabInfo]) -> list[str]:
    """Return the lines of the tabs."""
    return [
        f"Tab {tab.pageId}{' (current)' if tab.current else ''}: {title(shortened(tab.title))}"
        for tab in tabs
    ]


def tree_text(tabs: Sequence[TabInfo], notices: Sequence[str], body: str) -> str:
    """Return the text of a tree.

    Args:
        tabs: all tabs of the browser.
        notices: messages of the server: failures, blocked pages, dialogs.
        body: the lines of the elements, starting with `[1]` and `[2]`.
    """
    lines = body.rstrip("\n").split("\n") if body.strip() else []
    alerts = [f"\t[{NOTICE_ID}] alert '{notice(line)}'" for line in notices]
    at = next((i + 1 for i, line in enumerate(lines) if re.match(r"\s*\[2\] ", line)), len(lines))
    return "\n".join([*tab_lines(tabs), *lines[:at], *alerts, *lines[at:]])


def blank_observation(tabs: Sequence[TabInfo], notices: Sequence[str]) -> dict[str, Any]:
    """Return the observation of a page that cannot be observed."""
    body = "[1] RootWebArea ''\n\t[2] StaticText 'The page cannot be observed.'"
    text = tree_text(tabs, notices, body)
    snapshot = {"role": "RootWebArea", "name": "", "children": []}
    current = next((tab for tab in tabs if tab.current), None)
    return Observation(
        yaml=text,
        fulltree=text,
        snapshot=snapshot,
        pageId=current.pageId if current else "",
        title=current.title if current else "",
        url=current.url if current else "",
        tabs=list(tabs),
        events=list(notices),
    ).model_dump()
