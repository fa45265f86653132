"""The text of a page: its lines, and what differs between two observations of it. Pure.

A line is `[id] role 'name' key: value ...`, indented by one tab per level. An id refers to the same
element until the page is left.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINE = re.compile(r"^(\t*)[ ]*\[(\d+)\] ([A-Za-z]+) '(.*)'(.*)$", re.MULTILINE)
FOCUS = " focused: true"
"""The mark of the focused element in its line."""
SERVER_ID = "0"
"""Id of the lines that the browser server itself adds to a page's text."""
ROOT_ID, SCROLL_ID = "1", "2"
"""Ids of the document and of the line about scrolling."""

INTERACTIVE = frozenset(
    {
        "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch",
        "listbox", "option", "menuitem", "tab", "slider", "spinbutton",
    }
)  # fmt: skip
"""Roles of elements that a user can act on."""


@dataclass(frozen=True)
class Line:
    """One element of a page as text.

    Attributes:
        depth: nesting level.
        id: its number; "0" for lines of the server.
        role, name: as in Chromium's accessibility tree.
        states: the rest, such as ` value: lamp focused: true`.
    """

    depth: int
    id: str
    role: str
    name: str
    states: str = ""

    def __str__(self) -> str:
        return f"[{self.id}] {self.role} '{self.name}'{self.states}"

    @property
    def without_focus(self) -> str:
        """The line without the focus mark, which moves with every action."""
        return str(self).replace(FOCUS, "")


@functools.lru_cache(maxsize=8)  # one action reads the same texts several times
def lines_of(tree: str) -> tuple[Line, ...]:
    """Return the elements of a page's text, in order."""
    found = [match.groups() for match in _LINE.finditer(tree)]
    return tuple([Line(len(indent), *facts) for indent, *facts in found])


def find_line(tree: str, id: str) -> Line | None:
    """Return an element by its id; None if the page's text does not have it."""
    return next((line for line in lines_of(tree) if line.id == id), None)


def describe_element(tree: str, named: Mapping[str, str], target: str) -> str:
    """Return an element as a report shows it: `[3] button 'Search'`.

    Args:
        tree: the text of the page before the action.
        named: the lines of elements that are not in it, by id or by what the action gave.
        target: its id, or the role and name that the action gave.
    """
    if line := find_line(tree, target):
        return f"[{line.id}] {line.role} {one_line(line.name)!r}"
    return named.get(target, f"[{target}]")


def server_messages(tree: str) -> list[str]:
    """Return the server's own messages within a page's text; a page cannot fake them."""
    return [line.name for line in lines_of(tree) if line.id == SERVER_ID]


def one_line(text: str, limit: int = 60) -> str:
    """Return the text without line breaks, at most `limit` characters of it."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."
