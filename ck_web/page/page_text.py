"""Reading the text of a page: its lines, and what changed between two looks. Pure.

A line is `[id] role 'name' key: value ...`, indented by one tab per level; an id means the same
element as long as its page lives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_LINE = re.compile(r"^(\t*)[ ]*\[(\d+)\] ([A-Za-z]+) '(.*)'(.*)$", re.MULTILINE)
_TAB = re.compile(r"^Tab \S+", re.MULTILINE)
_FOCUS = " focused: true"
_SHOWN = 3
_LENGTH = 100
_SERVER = "0"
_ROOT, _SCROLL = "1", "2"
_EVERY_PAGE = {_SERVER, _ROOT, _SCROLL}

INTERACTIVE = frozenset(
    {
        "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch",
        "listbox", "option", "menuitem", "tab", "slider", "spinbutton",
    }
)  # fmt: skip
"""Roles of elements that are there to be acted on."""

_STRUCTURE = frozenset(
    {
        "article", "banner", "complementary", "contentinfo", "form", "generic", "group", "Iframe",
        "list", "listitem", "main", "navigation", "region", "row", "rowgroup", "section", "table",
    }
)  # fmt: skip
_SAYING = frozenset({"alert", "alertdialog", "dialog", "log", "status"})


@dataclass(frozen=True)
class Line:
    """One element of a page as text.

    Attributes:
        depth: how deep it is nested.
        id: its number; "0" for what the server itself says.
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
    def resting(self) -> str:
        """The line without the mark of the focus, which wanders with every action."""
        return str(self).replace(_FOCUS, "")


def lines_of(tree: str) -> list[Line]:
    """The elements of a page's text, in order."""
    found = (match.groups() for match in _LINE.finditer(tree))
    return [Line(len(indent), *facts) for indent, *facts in found]


def said_by_server(tree: str) -> list[str]:
    """What the server itself says within a page's text, which no element of the page can."""
    return [line.name for line in lines_of(tree) if line.id == _SERVER]


@dataclass(frozen=True)
class Changes:
    """What is different between two looks at one page.

    Attributes:
        changed: lines of elements that say something else than before.
        new: lines that were not there.
        gone: lines that are not there any more.
    """

    changed: tuple[Line, ...] = ()
    new: tuple[Line, ...] = ()
    gone: tuple[Line, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.new or self.gone)


def changes(before: str, after: str) -> Changes:
    """What changed on a page, by the ids of its elements; where the focus is does not count, nor
    what the server itself says.

    Args:
        before: the text of the page as it was.
        after: its text now.
    """
    old, new = _elements(before), _elements(after)
    changed, added = [], []
    for key, line in new.items():
        if key not in old:
            added.append(line)
        elif old[key].resting != line.resting:
            changed.append(line)
    gone = [line for key, line in old.items() if key not in new]
    # a tab that came or went is a change too, though no element of this page
    if not changed and not added and not gone and _tabs(before) != _tabs(after):
        changed = [line for line in new.values() if line.id == _ROOT]
    return Changes(tuple(changed), tuple(added), tuple(gone))


def all_new(before: str, after: str) -> bool:
    """Whether no element of a page is one of those before: it was loaded anew.

    Where the page was scrolled, nothing is concluded: then other elements are to be expected.
    """
    old, new = ({x.id: str(x) for x in lines_of(tree)} for tree in (before, after))
    if old.get(_SCROLL) != new.get(_SCROLL):
        return False
    was, now = old.keys() - _EVERY_PAGE, new.keys() - _EVERY_PAGE
    return bool(was and now) and not was & now


def changes_text(what: Changes) -> str:
    """Changes in one line, the first few of each kind; empty for none."""
    scrolled = any(line.id == _SCROLL for line in what.changed)
    parts = {"now on the page": what.changed, "new on the page": what.new}
    if not scrolled:  # else they are out of view only
        parts["gone"] = what.gone
    return "; ".join(f"{head}: {_few(lines)}" for head, lines in parts.items() if lines)


def one_line(text: str, limit: int = 60) -> str:
    """The text without line breaks, cut to `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def _elements(tree: str) -> dict[str, Line]:
    return {line.id: line for line in lines_of(tree) if line.id != _SERVER}


def _tabs(tree: str) -> int:
    return len(_TAB.findall(tree))


def _few(lines: Iterable[Line]) -> str:
    """The first few, what says most before the rest: a nameless list tells nothing."""
    every = sorted(lines, key=_weigher())
    shown = "; ".join(one_line(line.resting, _LENGTH) for line in every[:_SHOWN])
    more = len(every) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _weigher() -> Callable[[Line], int]:
    """How soon a line is told, the least first; for lines in the order of the page."""
    within: list[int] = []  # depths of the messages that the line stands in

    def weight(line: Line) -> int:
        while within and within[-1] >= line.depth:
            within.pop()
        if line.role in _SAYING:
            within.append(line.depth)
        if line.role in _STRUCTURE and not line.name:
            return 2
        return 0 if within or line.id == _SCROLL else 1

    return weight
