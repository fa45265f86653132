"""Reading action strings: text in, a `BrowserAction` or a `ParseError` out; pure."""

from __future__ import annotations

import re

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.parse_elements import ELEMENT_READERS
from ck_web.actions.parse_pages import PAGE_READERS
from ck_web.actions.parse_points import POINT_READERS
from ck_web.actions.tokens import shown

_HEAD = re.compile(r"\s*([A-Za-z]+(?:_[A-Za-z]+)?)(?:[ \t]?(.*))?", re.DOTALL)
_READERS = {**ELEMENT_READERS, **POINT_READERS, **PAGE_READERS}


def parse_action(text: str) -> BrowserAction:
    """The action that a string means.

    Args:
        text: one action string, such as `click [3] Search`.

    Returns:
        `name` (that of the function, but `scroll` for both directions), `target` (the element's
        id), `value` (the one text: content, option, direction, seconds, address, tab, part, keys)
        and `arguments` (click: link_name; type, type_text: enter; select: values, if several;
        save: remote, local; screenshot: flag, path; upload: paths; drag: to, by or x, y; click_at:
        x, y, button, double, keys; move: x, y; drag_path: path, keys; wheel: dx, dy, x, y;
        wait_for: seconds; answer_dialog: accept; stop: answer, summary).

    Raises:
        ParseError: the string is none of the grammar; says what is, in one line.
    """
    head = _HEAD.fullmatch(text)
    if head is None:
        raise ParseError(f"{shown(text)} is not an action; {_known()}")
    name, rest = head[1].lower(), head[2] or ""
    reader = _READERS.get(name.replace("_", ""))
    if reader is None:
        raise ParseError(f"unknown action {shown(head[1])}; {_known()}")
    return reader(rest)


def _known() -> str:
    return (
        "known are: click [3], type [3] text, scroll down, scroll up, wait, goback, goforward, "
        "restart, goto, save, screenshot, stop, nop, read, find, select, check, uncheck, clear, "
        "press, type_text, hover, drag, upload, scroll_in, scroll_to, select_text, click_at, move, "
        "drag_path, wheel, new_tab, switch_tab, close_tab, wait_for, answer_dialog"
    )
