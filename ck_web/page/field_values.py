"""The values of a page's fields, to report those that are lost on the way back to it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ck_web.page.page_text import Line, lines_of, one_line

FieldValues = Mapping[tuple[str, str], str]
"""Values of fields by role and name."""
_FIELDS = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "listbox"})
_TOGGLES = frozenset({"checkbox", "radio", "switch"})
_VALUE = re.compile(r' value: ("[^"]*"|.*?)(?= [a-zA-Z]+: |$)')
_CHECKED = re.compile(r" checked: (\w+)")
_MAX_SHOWN = 3


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
