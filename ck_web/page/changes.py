"""What an action changed: the difference between two states of a browser, in one line. Pure.

Also the field values that are lost on the way back to a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ck_web.page.notices import asks_for_login
from ck_web.page.page_text import FOCUS, ROOT_ID, SCROLL_ID, SERVER_ID, Line, lines_of, one_line
from ck_web.page.state import WebState, full_url

_TAB = re.compile(r"^Tab \S+", re.MULTILINE)
_MAX_LINES = 3
_MAX_LINE_LENGTH = 100
_EVERY_PAGE = {SERVER_ID, ROOT_ID, SCROLL_ID}
_MESSAGES = frozenset({"alert", "alertdialog", "log", "status"})
_MESSAGE, _IN_DIALOG, _ELEMENT, _STRUCTURAL = range(4)  # ranks of lines
_OPTIONS = re.compile(r" options: \d+ \(.*?\)(?= [a-zA-Z ]+: |$)")
_INVALID = " invalid: true"
_LOGIN = "the page asks for a login"
_STRUCTURE = frozenset(
    {
        "alert", "article", "banner", "complementary", "contentinfo", "form", "generic", "group",
        "Iframe", "list", "listitem", "log", "main", "navigation", "region", "row", "rowgroup",
        "section", "status", "table",
    }
)  # fmt: skip
FieldValues = Mapping[tuple[str, str], str]
"""Values of fields by role and name."""
_FIELDS = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "listbox"})
_TOGGLES = frozenset({"checkbox", "radio", "switch"})
_VALUE = re.compile(r' value: ("[^"]*"|.*?)(?= [a-zA-Z]+: |$)')
_CHECKED = re.compile(r" checked: (\w+)")
_MAX_SHOWN = 3
_MAX_REMEMBERED = 20  # pages whose field values are known


@dataclass(frozen=True)
class PageChange:
    """What an action changed.

    Attributes:
        text: a few words; empty if nothing changed.
        is_other_page: the browser shows another page or tab, or the same page loaded again.
        details: the part of the text after the address of another page.
    """

    text: str
    is_other_page: bool = False
    details: str = ""


class PageChanges:
    """What the actions of one browser change; keeps the field values of the pages that it left."""

    def __init__(self) -> None:
        self._values: dict[str, FieldValues] = {}  # by URL

    def of_action(
        self,
        before: WebState,
        after: WebState,
        url: str,
        stayed: bool | None,
        target: str,
        unseen: str,
        returns: bool,
    ) -> PageChange:
        """Return what an action changed, and the values that forms lost after going back.

        Args:
            before, after, url, stayed, target, unseen: see `page_change`.
            returns: the action goes back or forward.
        """
        change = page_change(before, after, url, stayed, target, unseen)
        if not change.is_other_page:
            return change
        known = self._values.pop(after.step_url, {})
        if values := field_values(before.current_accessibility_tree):
            self._values[before.step_url] = values
            for left in list(self._values)[:-_MAX_REMEMBERED]:
                del self._values[left]
        lost = lost_values(known, after.current_accessibility_tree) if returns else ""
        if not lost:
            return change
        details = f"{change.details}; {lost}" if change.details else lost
        return PageChange(f"{change.text}; {lost}", True, details)


def page_change(
    before: WebState,
    after: WebState,
    url: str = "",
    stayed: bool | None = None,
    target: str = "",
    unseen: str = "",
) -> PageChange:
    """Compare the browser before and after an action.

    The text begins with the element acted on. Messages follow, then other changes.

    Args:
        before, after: the states.
        url: the URL that the action named; the text does not repeat it.
        stayed: whether the document is the same; None if the server did not report that.
        target: id of the element acted on.
        unseen: its line, if it is out of view.
    """
    old, new = before.current_accessibility_tree, after.current_accessibility_tree
    asks = asks_for_login(lines_of(new)) and not asks_for_login(lines_of(old))
    login = _LOGIN if asks else ""
    if is_other_page(before, after, stayed):
        asked = url and after.step_url.rstrip("/") == full_url(url).rstrip("/")
        where = "there" if asked else f"at {after.step_url}"
        text = f"now {where} ({one_line(after.title)!r})"
        details = "; ".join(filter(None, [login, _new_texts(before, after)]))
        return PageChange(f"{text}; {details}" if details else text, True, details)
    changes = element_changes(old, new, target, unseen, after.messages)
    return PageChange("; ".join(filter(None, [changes, login])))


def is_other_page(before: WebState, after: WebState, stayed: bool | None = None) -> bool:
    """Whether the browser shows another page or tab, or the same page loaded again."""
    if (
        stayed is False
        or _without_fragment(before) != _without_fragment(after)
        or before.page_id != after.page_id
    ):
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


def _new_texts(before: WebState, after: WebState) -> str:
    """Return the messages of a new document that the page before did not show.

    If the address is the same, also other new lines. The ids of all elements are new, so lines are
    compared by their content.
    """
    new = lines_of(after.current_accessibility_tree)
    known = Counter(map(_content, lines_of(before.current_accessibility_tree)))
    known.subtract(map(_content, new))
    ranks = _ranks(new, after.messages)
    added = [x for x in new if known[_content(x)] < 0 and x.id not in _EVERY_PAGE]
    parts = {"message": [line for line in added if ranks[line.id] == _MESSAGE]}
    if _without_fragment(before) == _without_fragment(after) and len(added) <= len(new) // 2:
        others = [line for line in added if _MESSAGE < ranks[line.id] < _STRUCTURAL]
        parts["new on the page"] = others
    return _joined(parts, ranks)


def _content(line: Line) -> str:
    """Return a line without its id and the focus."""
    return f"{line.role} '{line.name}'{line.states}".replace(FOCUS, "")


def element_changes(
    before: str, after: str, target: str = "", unseen: str = "", messages: Iterable[str] = ()
) -> str:
    """Return the differences between two texts of one page in one line; empty if there are none.

    Ignores the focus and the server's own lines. Shows the first few elements of each kind.

    Args:
        before, after: the texts.
        target, unseen: see `page_change`.
        messages: ids of texts that report something to the user.
    """
    old, new = _elements(before), _elements(after)
    known = {_content(line) for line in old.values()}
    changed = [x for k, x in new.items() if k in old and old[k].without_focus != x.without_focus]
    added = [line for key, line in new.items() if key not in old]
    removed = [line for key, line in old.items() if key not in new]
    # a tab that opened or closed is a change too, without any element of this page
    if not (changed or added or removed) and _tab_count(before) != _tab_count(after):
        changed = [line for line in new.values() if line.id == ROOT_ID]
    scrolled = [line for line in changed if line.id == SCROLL_ID]
    acted, state = _new_state(old.get(target), new.get(target), unseen)
    ranks = _ranks(new.values(), messages)
    said = [
        line
        for line in [*changed, *added]
        if ranks[line.id] == _MESSAGE and _content(line) not in known and line.id != acted
    ]
    reported = {acted, SCROLL_ID, *(line.id for line in said)}
    parts = {
        "message": said,
        "now on the page": [line for line in changed if line.id not in reported],
        "new on the page": [line for line in added if line.id not in reported],
        # after scrolling they are only out of view
        "removed": [line for line in removed if not scrolled and line.id not in reported],
        "scrolled": scrolled,
    }
    return "; ".join(filter(None, [state, _joined(parts, ranks)]))


def _new_state(before: Line | None, after: Line | None, unseen: str) -> tuple[str, str]:
    """Return the id of the element acted on and its new state; empty if that did not change."""
    out_of_view = lines_of(unseen) if after is None else []
    line = after or next(iter(out_of_view), None)
    if line is None or (before is not None and before.without_focus == line.without_focus):
        return "", ""
    if not (after and before) and not line.states:
        return line.id, ""
    shown = line.without_focus
    if before is not None and (before.role, before.name) == (line.role, line.name):
        shown = shown.removeprefix(str(replace(line, states=""))).strip() or shown
    return line.id, f"now {one_line(_without_options(shown), _MAX_LINE_LENGTH)}"


def _without_options(line: str) -> str:
    """Return a line without the options of a list, which do not change with its value."""
    return _OPTIONS.sub("", line)


def _joined(parts: Mapping[str, Sequence[Line]], ranks: Mapping[str, int]) -> str:
    return "; ".join(
        f"{head}: {_first_few(lines, ranks)}" for head, lines in parts.items() if lines
    )


def _elements(tree: str) -> dict[str, Line]:
    return {line.id: line for line in lines_of(tree) if line.id != SERVER_ID}


def _tab_count(tree: str) -> int:
    return len(_TAB.findall(tree))


def _first_few(lines: Sequence[Line], ranks: Mapping[str, int]) -> str:
    """Return the most informative lines, and how many more there are."""
    every = sorted(lines, key=lambda line: ranks.get(line.id, _rank(line)))
    few = (_without_options(line.without_focus) for line in every[:_MAX_LINES])
    shown = "; ".join(one_line(line, _MAX_LINE_LENGTH) for line in few)
    more = len(every) - _MAX_LINES
    return f"{shown} and {more} more" if more > 0 else shown


def _ranks(lines: Iterable[Line], messages: Iterable[str]) -> dict[str, int]:
    """Return a rank for each line in page order: messages first, options and structure last."""
    reported = set(messages)
    ranks: dict[str, int] = {}
    around: list[tuple[int, int]] = []  # depth and rank of the messages and dialogs around a line
    for line in lines:
        while around and around[-1][0] >= line.depth:
            around.pop()
        if line.role in _MESSAGES or line.role == "dialog":
            around.append((line.depth, _MESSAGE if line.role in _MESSAGES else _IN_DIALOG))
        rank = _rank(line)
        if rank == _ELEMENT:
            if line.id in reported or _INVALID in line.states:
                rank = _MESSAGE
            elif around:
                rank = around[-1][1]
        ranks[line.id] = rank
    return ranks


def _rank(line: Line) -> int:
    is_structure = line.role in _STRUCTURE and not line.name
    return _STRUCTURAL if is_structure or line.role == "option" else _ELEMENT


def field_values(tree: str) -> FieldValues:
    """Return the values of the fields with a name.

    Args:
        tree: the text of the page.
    """
    values = {(line.role, line.name): _value(line) for line in lines_of(tree) if line.name}
    return {key: value for key, value in values.items() if value is not None}


def _value(line: Line) -> str | None:
    """Return the value of a field; None for other elements."""
    if line.role in _FIELDS:
        found = _VALUE.search(line.states)
        return found[1].strip('"') if found else ""
    if line.role in _TOGGLES:
        found = _CHECKED.search(line.states)
        return found[1] if found else None
    return None


def lost_values(before: FieldValues, tree: str) -> str:
    """Return the fields that have lost their values, in one line; empty if there are none.

    Args:
        before: values when the page was left.
        tree: the text of the page now.
    """
    now = field_values(tree)
    lost = [
        f"{role} {name!r} had {one_line(value)!r}"
        for (role, name), value in before.items()
        if value and value != "false" and now.get((role, name), value) != value
    ]
    more = f" and {len(lost) - _MAX_SHOWN} more" if len(lost) > _MAX_SHOWN else ""
    return f"form values were lost: {', '.join(lost[:_MAX_SHOWN])}{more}" if lost else ""
