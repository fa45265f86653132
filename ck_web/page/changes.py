"""What an action changed: the difference between two states of a browser, in one line. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ck_web.page.page_text import ROOT_ID, SCROLL_ID, SERVER_ID, Line, lines_of, one_line
from ck_web.page.state import WebState, full_url

_TAB = re.compile(r"^Tab \S+", re.MULTILINE)
_MAX_LINES = 3
_MAX_LINE_LENGTH = 100
_EVERY_PAGE = {SERVER_ID, ROOT_ID, SCROLL_ID}
_MESSAGES = frozenset({"alert", "alertdialog", "dialog", "log", "status"})
_STRUCTURE = frozenset(
    {
        "article", "banner", "complementary", "contentinfo", "form", "generic", "group", "Iframe",
        "list", "listitem", "main", "navigation", "region", "row", "rowgroup", "section", "table",
    }
)  # fmt: skip


@dataclass(frozen=True)
class PageChange:
    """What an action changed.

    Attributes:
        text: a few words; empty if nothing changed.
        is_other_page: the browser shows another page or tab, or the same page loaded again.
    """

    text: str
    is_other_page: bool = False


def page_change(before: WebState, after: WebState, url: str, stayed: bool) -> PageChange:
    """Compare the browser before and after an action.

    Args:
        before, after: the states.
        url: the URL that the action named; the text does not repeat it.
        stayed: the server knows that the document is the same.
    """
    if is_other_page(before, after, stayed):
        asked = url and after.step_url.rstrip("/") == full_url(url).rstrip("/")
        where = "there" if asked else f"at {after.step_url}"
        text = f"now {where} ({one_line(after.title)!r}); the next step shows it"
        return PageChange(text, True)
    old, new = before.current_accessibility_tree, after.current_accessibility_tree
    return PageChange(element_changes(old, new) if old != new else "")


def is_other_page(before: WebState, after: WebState, stayed: bool = False) -> bool:
    """Whether the browser shows another page or tab, or the same page loaded again."""
    if _without_fragment(before) != _without_fragment(after) or before.page_id != after.page_id:
        return True
    old, new = before.current_accessibility_tree, after.current_accessibility_tree
    return not stayed and old != new and _all_elements_new(old, new)


def _without_fragment(state: WebState) -> str:
    return state.step_url.partition("#")[0]


def _all_elements_new(before: str, after: str) -> bool:
    """Whether the page shares no element with the previous one: it was loaded again.

    False if the page was scrolled, as other elements are visible then.
    """
    old, new = ({x.id: str(x) for x in lines_of(tree)} for tree in (before, after))
    if old.get(SCROLL_ID) != new.get(SCROLL_ID):
        return False
    old_ids, new_ids = old.keys() - _EVERY_PAGE, new.keys() - _EVERY_PAGE
    return bool(old_ids and new_ids) and not old_ids & new_ids


def element_changes(before: str, after: str) -> str:
    """Return the differences between two texts of one page in one line; empty if there are none.

    Ignores the focus and the server's own lines. Shows the first few elements of each kind.

    Args:
        before, after: the texts.
    """
    old, new = _elements(before), _elements(after)
    changed = [x for k, x in new.items() if k in old and old[k].without_focus != x.without_focus]
    added = [line for key, line in new.items() if key not in old]
    removed = [line for key, line in old.items() if key not in new]
    # a tab that opened or closed is a change too, without any element of this page
    if not (changed or added or removed) and _tab_count(before) != _tab_count(after):
        changed = [line for line in new.values() if line.id == ROOT_ID]
    parts = {"now on the page": changed, "new on the page": added}
    if not any(line.id == SCROLL_ID for line in changed):  # else they are only out of view
        parts["removed"] = removed
    return "; ".join(f"{head}: {_first_few(lines)}" for head, lines in parts.items() if lines)


def _elements(tree: str) -> dict[str, Line]:
    return {line.id: line for line in lines_of(tree) if line.id != SERVER_ID}


def _tab_count(tree: str) -> int:
    return len(_TAB.findall(tree))


def _first_few(lines: Iterable[Line]) -> str:
    """Return the most informative lines, and how many more there are."""
    every = sorted(lines, key=_ranking())
    shown = "; ".join(one_line(line.without_focus, _MAX_LINE_LENGTH) for line in every[:_MAX_LINES])
    more = len(every) - _MAX_LINES
    return f"{shown} and {more} more" if more > 0 else shown


def _ranking() -> Callable[[Line], int]:
    """Return a sort key for lines in page order: messages first, nameless structure last."""
    messages: list[int] = []  # depths of the messages that contain the line

    def rank(line: Line) -> int:
        while messages and messages[-1] >= line.depth:
            messages.pop()
        if line.role in _MESSAGES:
            messages.append(line.depth)
        if line.role in _STRUCTURE and not line.name:
            return 2
        return 0 if messages or line.id == SCROLL_ID else 1

    return rank
