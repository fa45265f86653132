"""Putting an observation into the form of the wire."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from web_server.contract import Observation, TabInfo
from web_server.quoting import notice, title, unquoted

_LONGEST = 300
NOTICE_ID = 0
"""Element id of the lines by which the server itself speaks in the tree."""


def one_line(text: str) -> str:
    """A text for between single quotes, which it cannot end: see `quoting.unquoted`."""
    return unquoted(text)


def shortened(text: str) -> str:
    """A URL or title as messages and trees show it: one line of bearable length."""
    line = one_line(text)
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "\u2026"


def tab_lines(tabs: Sequence[TabInfo]) -> list[str]:
    """The head of the tree: one line per tab."""
    return [
        f"Tab {tab.pageId}{' (current)' if tab.current else ''}: {title(shortened(tab.title))}"
        for tab in tabs
    ]


def tree_text(tabs: Sequence[TabInfo], notices: Sequence[str], body: str) -> str:
    """The whole text of a tree.

    Args:
        tabs: all tabs of the browser.
        notices: what the server has to say of the page: failures, blocked pages, dialogs.
        body: the element lines, `[1]` and `[2]` first.
    """
    lines = body.rstrip("\n").split("\n") if body.strip() else []
    said = [f"\t[{NOTICE_ID}] alert '{notice(line)}'" for line in notices]
    at = next((i + 1 for i, line in enumerate(lines) if re.match(r"\s*\[2\] ", line)), len(lines))
    return "\n".join([*tab_lines(tabs), *lines[:at], *said, *lines[at:]])


def blank_observation(tabs: Sequence[TabInfo], notices: Sequence[str]) -> dict[str, Any]:
    """What is said of a page that cannot be looked at."""
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
