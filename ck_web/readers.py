"""Reading action strings: text in, a `BrowserAction` or a `ParseError` out; pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.pieces import (
    NUMBER,
    address,
    free,
    json_list,
    json_of,
    path_of,
    plain_id,
    point_of,
    shown,
    target_of,
    text_of,
    typed,
    unbracketed,
)

_HEAD = re.compile(r"\s*([A-Za-z]+(?:_[A-Za-z]+)?)(?:[ \t]?(.*))?", re.DOTALL)
_BRACKETED = re.compile(r"\s*\[\s*([0-9]+)\s*\]\s*(.*)", re.DOTALL)
_SECONDS = re.compile(rf"({NUMBER})\s*(?:s|secs?|seconds?)?")
_SECONDS_FIRST = re.compile(rf"({NUMBER})\s*s(?:ec|ecs|econd|econds)?(?:\s+(.*))?", re.DOTALL)
_MAX_WAIT = 60.0
_DIRECTIONS = ("down", "up", "left", "right")
_Reader = Callable[[str], BrowserAction]


def parse_action(text: str) -> BrowserAction:
    """The action that a string means.

    Args:
        text: one action string, such as `click [3] Search`.

    Returns:
        `name` (that of the function, but `scroll` for both directions), `target` (the element's
        id), `value` (the one text: content, option, direction, seconds, address, tab, part, keys)
        and `arguments` (click: link_name; type, type_text: enter; select: values, if several;
        save: remote, local; screenshot: flag, path; upload: paths; drag: to or x, y; click_at: x,
        y, button, double, keys; move: x, y; drag_path: path, keys; wheel: dx, dy, x, y;
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


# --- elements ------------------------------------------------------------------------------------


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


def _only_target(name: str) -> _Reader:
    """A reader of an action that takes an element alone; what follows it is a hint."""
    return lambda rest: BrowserAction(name=name, target=target_of(name, rest)[0])


def _read_press(rest: str) -> BrowserAction:
    bracketed = _BRACKETED.fullmatch(rest)  # a bare number is a key
    target, keys = (plain_id(bracketed[1]), bracketed[2]) if bracketed else ("", rest)
    if not keys.split():
        raise ParseError("press needs a key: press Enter, press Control+a, press [3] Escape")
    return BrowserAction(name="press", target=target, value=" ".join(keys.split()))


def _read_drag(rest: str) -> BrowserAction:
    target, where = target_of("drag", rest)
    where = re.sub(r"\A\s*to\b", "", where, flags=re.IGNORECASE).strip()
    if onto := re.fullmatch(r"\[\s*([0-9]+)\s*\]|([0-9]+)", where):
        arguments: dict[str, Any] = {"to": plain_id(onto[1] or onto[2])}
    else:
        x, y, _ = point_of("drag [3] to", where)
        arguments = {"x": x, "y": y}
    return BrowserAction(name="drag", target=target, arguments=arguments)


def _read_upload(rest: str) -> BrowserAction:
    target, rest = target_of("upload", rest)
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


def _read_scroll_to(rest: str) -> BrowserAction:
    if bracketed := re.fullmatch(r"\s*\[\s*([0-9]+)\s*\]\s*", rest):
        return BrowserAction(name="scroll_to", target=plain_id(bracketed[1]))
    return BrowserAction(name="scroll_to", value=text_of("scroll_to", rest))


# --- points --------------------------------------------------------------------------------------


def _read_click_at(rest: str) -> BrowserAction:
    x, y, rest = point_of("click_at", rest)
    button, double, keys = "left", False, ""
    for word in rest.split():
        if word.lower() in ("left", "right", "middle"):
            button = word.lower()
        elif word.lower() == "double":
            double = True
        else:
            keys = f"{keys}+{word}".strip("+")
    arguments = {"x": x, "y": y, "button": button, "double": double, "keys": keys}
    return BrowserAction(name="click_at", arguments=arguments)


def _read_move(rest: str) -> BrowserAction:
    x, y, _ = point_of("move", rest)
    return BrowserAction(name="move", arguments={"x": x, "y": y})


def _read_drag_path(rest: str) -> BrowserAction:
    words = re.sub(r"[\[\](),;]", " ", rest).split()
    numbers = list(itertools.takewhile(re.compile(NUMBER).fullmatch, words))
    if len(numbers) < 4 or len(numbers) % 2:
        raise ParseError("drag_path needs two points or more: drag_path 10,20 30,40")
    path = [[float(x), float(y)] for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
    keys = "+".join(words[len(numbers) :])
    return BrowserAction(name="drag_path", arguments={"path": path, "keys": keys})


def _read_wheel(rest: str) -> BrowserAction:
    turned, _, where = re.sub(r"[\[\](),;]", " ", rest.lower()).partition("at")
    numbers, point = turned.split(), where.split()
    usable = all(re.fullmatch(NUMBER, number) for number in (*numbers, *point))
    if not usable or len(numbers) not in (1, 2) or len(point) not in (0, 2):
        raise ParseError(f"wheel needs pixels: wheel 300, wheel 300 0 at 10,20; got {shown(rest)}")
    dy, dx = (*(float(number) for number in numbers), 0.0)[:2]
    arguments = {"dx": dx, "dy": dy}
    arguments |= dict(zip("xy", map(float, point), strict=False))
    return BrowserAction(name="wheel", arguments=arguments)


# --- the page as a whole -------------------------------------------------------------------------


def _read_scroll(rest: str) -> BrowserAction:
    direction = unbracketed(rest).lower()
    if direction not in ("up", "down"):
        raise ParseError(f"scroll goes up or down, not {shown(direction)}")
    return BrowserAction(name="scroll", value=direction)


def _read_wait(rest: str) -> BrowserAction:
    given = unbracketed(rest).lower()
    if not given:
        return BrowserAction(name="wait")
    number = _SECONDS.fullmatch(given)
    if number is None or float(number[1]) < 0:
        raise ParseError(f"wait takes a number of seconds, not {shown(given)}")
    return BrowserAction(name="wait", value=f"{min(float(number[1]), _MAX_WAIT):g}")


def _read_wait_for(rest: str) -> BrowserAction:
    given, seconds = rest.strip(), 10.0
    if timed := _SECONDS_FIRST.fullmatch(given):
        seconds, given = float(timed[1]), (timed[2] or "").strip()
    elif not given:
        raise ParseError("wait_for needs a text or a time: wait_for Done, wait_for 2s")
    if seconds < 0:
        raise ParseError(f"wait_for takes a time of 0 s or more, not {seconds:g} s")
    arguments = {"seconds": min(seconds, _MAX_WAIT)}
    return BrowserAction(name="wait_for", value=free(given), arguments=arguments)


def _read_goto(rest: str) -> BrowserAction:
    url = address(rest)
    if not url:
        raise ParseError("goto needs an address: goto https://example.org/")
    return BrowserAction(name="goto", value=url)


def _read_new_tab(rest: str) -> BrowserAction:
    return BrowserAction(name="new_tab", value=address(rest) or None)


def _read_switch_tab(rest: str) -> BrowserAction:
    return BrowserAction(name="switch_tab", value=_tab("switch_tab", rest))


def _read_close_tab(rest: str) -> BrowserAction:
    return BrowserAction(name="close_tab", value=_tab("close_tab", rest) if rest.strip() else None)


def _tab(name: str, rest: str) -> str:
    found = re.fullmatch(r"(?:tab\s*)?([0-9]+)", unbracketed(rest), re.IGNORECASE)
    if found is None:
        raise ParseError(f"{name} takes the number of a tab: {name} 1; got {shown(rest)}")
    return plain_id(found[1])


def _read_read(rest: str) -> BrowserAction:
    part = unbracketed(rest).lower()
    if part in ("", "all", "page"):
        return BrowserAction(name="read")
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", part):
        raise ParseError(f"read takes the number of a part, from 1, not {shown(part)}")
    return BrowserAction(name="read", value=plain_id(part))


def _read_find(rest: str) -> BrowserAction:
    return BrowserAction(name="find", value=text_of("find", rest))


def _read_answer_dialog(rest: str) -> BrowserAction:
    answer, _, text = rest.strip().partition(" ")
    if answer.lower() not in ("accept", "dismiss"):
        raise ParseError(f"answer_dialog takes accept or dismiss, not {shown(answer)}")
    arguments = {"accept": answer.lower() == "accept"}
    return BrowserAction(name="answer_dialog", value=free(text.strip()), arguments=arguments)


# --- what the browser does not see ---------------------------------------------------------------


def _read_save(rest: str) -> BrowserAction:
    remote, rest = path_of(rest)
    local, rest = path_of(rest)
    if not remote or not local or rest.strip():
        raise ParseError(
            "save takes two paths, the downloaded file's and the new one's; "
            'write a path with spaces in double quotes: save "a b.csv" b.csv'
        )
    return BrowserAction(name="save", arguments={"remote": remote, "local": local})


def _read_screenshot(rest: str) -> BrowserAction:
    flag, _, path = unbracketed(rest).partition(" ")
    if flag.lower() not in ("0", "1", "true", "false", "on", "off"):
        raise ParseError(f"screenshot takes 1 or 0 first, not {shown(flag)}")
    path = path.strip()
    arguments = {
        "flag": flag.lower() in ("1", "true", "on"),
        "path": path_of(path)[0] if path.startswith('"') else path,
    }
    return BrowserAction(name="screenshot", arguments=arguments)


def _read_stop(rest: str) -> BrowserAction:
    given = json_of(rest)
    if isinstance(given, list) and len(given) == 2:
        answer, summary = (str(part) for part in given)
    else:
        answer, summary = unbracketed(rest), ""
    return BrowserAction(name="stop", arguments={"answer": answer, "summary": summary})


def _plain(name: str, **fields: Any) -> _Reader:
    """A reader of an action that takes nothing; what follows the name is ignored."""
    return lambda rest: BrowserAction(name=name, **fields)


_READERS: dict[str, _Reader] = {
    "click": _read_click,
    "type": _read_type,
    "scroll": _read_scroll,
    "scrollup": _plain("scroll", value="up"),
    "scrolldown": _plain("scroll", value="down"),
    "wait": _read_wait,
    "goback": _plain("goback"),
    "restart": _plain("restart"),
    "goto": _read_goto,
    "save": _read_save,
    "screenshot": _read_screenshot,
    "stop": _read_stop,
    "nop": _plain("nop"),
    "read": _read_read,
    "find": _read_find,
    "select": _read_select,
    "check": _only_target("check"),
    "uncheck": _only_target("uncheck"),
    "clear": _only_target("clear"),
    "press": _read_press,
    "typetext": _read_type_text,
    "hover": _only_target("hover"),
    "drag": _read_drag,
    "upload": _read_upload,
    "scrollin": _read_scroll_in,
    "scrollto": _read_scroll_to,
    "clickat": _read_click_at,
    "move": _read_move,
    "dragpath": _read_drag_path,
    "wheel": _read_wheel,
    "goforward": _plain("goforward"),
    "newtab": _read_new_tab,
    "switchtab": _read_switch_tab,
    "closetab": _read_close_tab,
    "waitfor": _read_wait_for,
    "answerdialog": _read_answer_dialog,
}


def _known() -> str:
    return (
        "known are: click [3], type [3] text, scroll down, scroll up, wait, goback, goforward, "
        "restart, goto, save, screenshot, stop, nop, read, find, select, check, uncheck, clear, "
        "press, type_text, hover, drag, upload, scroll_in, scroll_to, click_at, move, drag_path, "
        "wheel, new_tab, switch_tab, close_tab, wait_for, answer_dialog"
    )
