"""Reading the action strings that concern a page, its tabs, its text, or the run's files."""

from __future__ import annotations

import re
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.tokens import (
    NUMBER,
    Reader,
    address,
    free,
    json_of,
    path_of,
    plain_id,
    shown,
    text_of,
    unbracketed,
)

_SECONDS = re.compile(rf"({NUMBER})\s*(?:s|secs?|seconds?)?")
_SECONDS_FIRST = re.compile(rf"({NUMBER})\s*s(?:ec|ecs|econd|econds)?(?:\s+(.*))?", re.DOTALL)
_MAX_WAIT = 60.0


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


def _plain(name: str, **fields: Any) -> Reader:
    """A reader of an action that takes nothing; what follows the name is ignored."""
    return lambda rest: BrowserAction(name=name, **fields)


PAGE_READERS: dict[str, Reader] = {
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
    "goforward": _plain("goforward"),
    "newtab": _read_new_tab,
    "switchtab": _read_switch_tab,
    "closetab": _read_close_tab,
    "waitfor": _read_wait_for,
    "answerdialog": _read_answer_dialog,
}
"""Name without underscores -> what reads the rest of the string."""
