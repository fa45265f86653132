"""Reading the action strings that name an element of the page: `click [3]`, `drag [3] to [5]`."""

from __future__ import annotations

import re
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.tokens import (
    Reader,
    free,
    json_list,
    path_of,
    plain_id,
    point_of,
    shown,
    target_of,
    text_of,
    typed,
    unbracketed,
    within_of,
)

_DIRECTIONS = ("down", "up", "left", "right")


def _read_click(rest: str) -> BrowserAction:
    target, link_name = target_of("click", rest)
    return BrowserAction(name="click", target=target, arguments={"link_name": link_name.strip()})


def _read_type(rest: str) -> BrowserAction:
    target, content = target_of("type", rest)
    content, enter = typed(content, default=True)
    return BrowserAction(name="type", target=target, value=content, arguments={"enter": enter})


def _read_type_text(rest: str) -> BrowserAction:
    content, enter = typed(rest, default=False)
    if not content and not enter:
        raise ParseError("type_text needs a text: type_text some words")
    return BrowserAction(name="type_text", value=content, arguments={"enter": enter})


def _read_select(rest: str) -> BrowserAction:
    target, option = target_of("select", rest)
    option = option.strip()
    values = json_list(option)
    if not option or values == []:
        raise ParseError("select needs the label of an option: select [3] label")
    if values is None or len(values) == 1:
        return BrowserAction(name="select", target=target, value=values[0] if values else option)
    arguments = {"values": values}
    return BrowserAction(name="select", target=target, value=", ".join(values), arguments=arguments)


def _only_target(name: str) -> Reader:
    """A reader of an action that takes an element alone; what follows it is a hint."""
    return lambda rest: BrowserAction(name=name, target=target_of(name, rest)[0])


def _read_press(rest: str) -> BrowserAction:
    target, keys = within_of(rest)  # a bare number is a key
    if not keys.split():
        raise ParseError("press needs a key: press Enter, press Control+a, press [3] Escape")
    return BrowserAction(name="press", target=target, value=" ".join(keys.split()))


def _read_drag(rest: str) -> BrowserAction:
    target, where = target_of("drag", rest)
    where = re.sub(r"\A\s*to\b", "", where, flags=re.IGNORECASE).strip()
    if distance := re.fullmatch(r"by\b(.*)", where, re.IGNORECASE | re.DOTALL):
        right, down, _ = point_of("drag [3] by", distance[1])
        return BrowserAction(name="drag", target=target, arguments={"by": [right, down]})
    if onto := re.fullmatch(r"\[\s*([0-9]+)\s*\]|([0-9]+)", where):
        arguments: dict[str, Any] = {"to": plain_id(onto[1] or onto[2])}
    else:
        x, y, _ = point_of("drag [3] to", where)
        arguments = {"x": x, "y": y}
    return BrowserAction(name="drag", target=target, arguments=arguments)


def _read_upload(rest: str) -> BrowserAction:
    asked = rest.lstrip().startswith('"')  # the page asked, so no element is named
    target, rest = ("", rest.lstrip()) if asked else target_of("upload", rest)
    paths = []
    while rest.strip():
        path, rest = path_of(rest)
        paths.append(path)
    if not all(paths) or not paths:
        raise ParseError("upload needs a file of the working directory: upload [3] report.csv")
    return BrowserAction(name="upload", target=target, arguments={"paths": paths})


def _read_scroll_in(rest: str) -> BrowserAction:
    target, direction = target_of("scroll_in", rest)
    direction = unbracketed(direction).lower() or "down"
    if direction not in _DIRECTIONS:
        raise ParseError(f"scroll_in goes {', '.join(_DIRECTIONS)}, not {shown(direction)}")
    return BrowserAction(name="scroll_in", target=target, value=direction)


def _read_select_text(rest: str) -> BrowserAction:
    target, text = within_of(rest)
    if not target:
        return BrowserAction(name="select_text", value=text_of("select_text", text))
    return BrowserAction(name="select_text", target=target, value=free(text.strip()))


def _read_scroll_to(rest: str) -> BrowserAction:
    if bracketed := re.fullmatch(r"\s*\[\s*([0-9]+)\s*\]\s*", rest):
        return BrowserAction(name="scroll_to", target=plain_id(bracketed[1]))
    return BrowserAction(name="scroll_to", value=text_of("scroll_to", rest))


ELEMENT_READERS: dict[str, Reader] = {
    "click": _read_click,
    "type": _read_type,
    "select": _read_select,
    "check": _only_target("check"),
    "uncheck": _only_target("uncheck"),
    "clear": _only_target("clear"),
    "press": _read_press,
    "typetext": _read_type_text,
    "hover": _only_target("hover"),
    "drag": _read_drag,
    "upload": _read_upload,
    "selecttext": _read_select_text,
    "scrollin": _read_scroll_in,
    "scrollto": _read_scroll_to,
}
"""Name without underscores -> what reads the rest of the string."""
