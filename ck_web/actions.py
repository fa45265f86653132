"""Action strings: the small language between the web agent's functions and `WebEnv`.

`PREDEFINED_WEB_ACTIONS` writes them, `parse_action` reads them; both are pure. The grammar is the
one that web agents of this family have used before, with `select` and quoted paths added:

```
click [3] name            type [3] text             type [3] text[NOENTER]
select [3] option         scroll down | scroll up   wait [seconds]
goback                    restart                   goto URL
save remote local         screenshot 1 [path]       nop
stop ["answer", "summary"]
```

Reading is tolerant: brackets may be missing, case does not matter, texts may hold newlines. What
follows `click [3]` is a hint for people. A text to type is taken exactly: one space after the
target, then every character. A text that itself ends in `[NOENTER]` is written with `[ENTER]`
after it. Paths with spaces are written in double quotes, as JSON strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError

_HEAD = re.compile(r"\s*([A-Za-z]+(?:_[A-Za-z]+)?)(?:[ \t]?(.*))?", re.DOTALL)
_TARGET = re.compile(r"\s*(?:\[\s*([0-9]+)\s*\]|([0-9]+)(?![0-9A-Za-z]))(?:\s?)(.*)", re.DOTALL)
_ENTER_MARK = re.compile(r"\[(no)?enter\]\Z", re.IGNORECASE)
_MAX_WAIT = 60.0


# --- writing ---------------------------------------------------------------------------------


def click(id: int, link_name: str = "") -> str:
    """Click the element [id]. link_name may repeat its name, for the log."""
    return f"click [{id}] {link_name}".rstrip()


def type_text(id: int, content: str, enter: bool = True) -> str:
    """Put content into the field [id], in place of what it holds.

    Enter follows, which submits most forms; give enter=False to fill in several fields.
    """
    content = str(content)
    if not enter:
        return f"type [{id}] {content}[NOENTER]"
    ambiguous = _ENTER_MARK.search(content.rstrip())
    return f"type [{id}] {content}{'[ENTER]' if ambiguous else ''}"


def select(id: int, option: str) -> str:
    """Choose the option with this label in the drop-down or list [id]."""
    return f"select [{id}] {option}"


def scroll_up() -> str:
    """Show the part of the page above."""
    return "scroll up"


def scroll_down() -> str:
    """Show the part of the page below."""
    return "scroll down"


def wait(seconds: float | None = None) -> str:
    """Wait until the page changes, at most 5 s, or for so many seconds."""
    return "wait" if seconds is None else f"wait {seconds:g}"


def goback() -> str:
    """Go back to the page before, in this tab."""
    return "goback"


def restart() -> str:
    """Go to the page that the task began with."""
    return "restart"


def goto(url: str) -> str:
    """Open an address."""
    return f"goto {url}"


def save(remote_path: str, local_path: str) -> str:
    """Copy a downloaded file (named as listed) to local_path in the working directory."""
    return f"save {_quoted(str(remote_path))} {_quoted(str(local_path))}"


def screenshot(flag: bool, save_path: str = "") -> str:
    """Show screenshots with the page from now on (True), or no longer (False).

    With a save_path, also save a picture of the whole page there.
    """
    path = str(save_path or "")
    return f"screenshot {int(flag)} {_quoted(path) if path else ''}".rstrip()


def stop(answer: str = "", summary: str = "") -> str:
    """End the task."""
    return f"stop {json.dumps([str(answer), str(summary)], ensure_ascii=False)}"


def nop() -> str:
    """Do nothing."""
    return "nop"


PREDEFINED_WEB_ACTIONS: dict[str, Callable[..., str]] = {
    "click": click,
    "type": type_text,
    "select": select,
    "scroll_up": scroll_up,
    "scroll_down": scroll_down,
    "wait": wait,
    "goback": goback,
    "restart": restart,
    "goto": goto,
    "save": save,
    "screenshot": screenshot,
    "stop": stop,
    "nop": nop,
}
"""Name of each web function -> what writes its action string from the function's arguments."""


# --- reading ---------------------------------------------------------------------------------


def parse_action(text: str) -> BrowserAction:
    """The action that a string means.

    Args:
        text: one action string, such as `click [3] Search`.

    Returns:
        `name` (click, type, select, scroll, wait, goback, restart, goto, save, screenshot, stop or
        nop), `target` (the element's id), `value` (text, option, direction, seconds, address) and
        `arguments` (click: link_name; type: enter; save: remote, local; screenshot: flag, path;
        stop: answer, summary).

    Raises:
        ParseError: the string is none of the grammar; says what is, in one line.
    """
    head = _HEAD.fullmatch(text)
    if head is None:
        raise ParseError(f"{_shown(text)} is not an action; {_known()}")
    name, rest = head[1].lower(), head[2] or ""
    reader = _READERS.get(name.replace("_", ""))
    if reader is None:
        raise ParseError(f"unknown action {_shown(head[1])}; {_known()}")
    return reader(rest)


def _read_click(rest: str) -> BrowserAction:
    target, link_name = _target("click", rest)
    return BrowserAction(name="click", target=target, arguments={"link_name": link_name.strip()})


def _read_type(rest: str) -> BrowserAction:
    target, content = _target("type", rest)
    # a mark that a person wrote may have spaces or a newline after it
    mark = _ENTER_MARK.search(content.rstrip())
    if mark:
        content = content[: mark.start()]
    enter = mark is None or mark[1] is None
    return BrowserAction(name="type", target=target, value=content, arguments={"enter": enter})


def _read_select(rest: str) -> BrowserAction:
    target, option = _target("select", rest)
    if not option.strip():
        raise ParseError("select needs the label of an option: select [3] label")
    return BrowserAction(name="select", target=target, value=option.strip())


def _read_scroll(rest: str) -> BrowserAction:
    direction = _unbracketed(rest).lower()
    if direction not in ("up", "down"):
        raise ParseError(f"scroll goes up or down, not {_shown(direction)}")
    return BrowserAction(name="scroll", value=direction)


def _read_wait(rest: str) -> BrowserAction:
    given = _unbracketed(rest).lower()
    if not given:
        return BrowserAction(name="wait")
    number = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?:s|secs?|seconds?)?", given)
    if number is None:
        raise ParseError(f"wait takes a number of seconds, not {_shown(given)}")
    return BrowserAction(name="wait", value=f"{min(float(number[1]), _MAX_WAIT):g}")


def _read_goto(rest: str) -> BrowserAction:
    url = re.sub(r"[\r\n\t]", "", _unbracketed(rest))
    if not url:
        raise ParseError("goto needs an address: goto https://example.org/")
    return BrowserAction(name="goto", value=url)


def _read_save(rest: str) -> BrowserAction:
    remote, rest = _path(rest)
    local, rest = _path(rest)
    if not remote or not local or rest.strip():
        raise ParseError(
            "save takes two paths, the downloaded file's and the new one's; "
            'write a path with spaces in double quotes: save "a b.csv" b.csv'
        )
    return BrowserAction(name="save", arguments={"remote": remote, "local": local})


def _read_screenshot(rest: str) -> BrowserAction:
    flag, _, path = _unbracketed(rest).partition(" ")
    if flag.lower() not in ("0", "1", "true", "false", "on", "off"):
        raise ParseError(f"screenshot takes 1 or 0 first, not {_shown(flag)}")
    path = path.strip()
    arguments = {
        "flag": flag.lower() in ("1", "true", "on"),
        "path": _path(path)[0] if path.startswith('"') else path,
    }
    return BrowserAction(name="screenshot", arguments=arguments)


def _read_stop(rest: str) -> BrowserAction:
    try:
        given = json.loads(rest)
    except ValueError:
        given = None
    if isinstance(given, list) and len(given) == 2:
        answer, summary = (str(part) for part in given)
    else:
        answer, summary = _unbracketed(rest), ""
    return BrowserAction(name="stop", arguments={"answer": answer, "summary": summary})


def _plain(name: str, **fields: Any) -> Callable[[str], BrowserAction]:
    """A reader of an action that takes nothing; what follows the name is ignored."""
    return lambda rest: BrowserAction(name=name, **fields)


_READERS: dict[str, Callable[[str], BrowserAction]] = {
    "click": _read_click,
    "type": _read_type,
    "select": _read_select,
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
}


def _target(name: str, rest: str) -> tuple[str, str]:
    """The element's id, and what follows it after one separating space."""
    found = _TARGET.fullmatch(rest)
    if found is None:
        raise ParseError(f"{name} needs the number of an element: {name} [3]; got {_shown(rest)}")
    digits = found[1] or found[2]
    return digits.lstrip("0") or "0", found[3]


def _path(rest: str) -> tuple[str, str]:
    """One path, quoted as a JSON string or up to the next space, and the rest."""
    rest = rest.lstrip()
    if rest.startswith('"'):
        try:
            path, end = json.JSONDecoder().raw_decode(rest)
            return str(path), rest[end:]
        except ValueError:
            raise ParseError(f"a quote is not closed in {_shown(rest)}") from None
    path, _, rest = rest.partition(" ")
    return _unbracketed(path), rest


def _quoted(path: str) -> str:
    plain = path and not re.search(r'[\s"\[\]]', path)
    return path if plain else json.dumps(path, ensure_ascii=False)


def _unbracketed(text: str) -> str:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return text[1:-1].strip()
    return text


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _known() -> str:
    return "known are: click [3], type [3] text, " + ", ".join(
        name for name in _READERS if name not in ("click", "type", "scrollup", "scrolldown")
    )
