"""Writing action strings: one function for each web function. See `ck_web.actions.grammar`.

A function's docstring is what prompts tell of it; its first sentence stands alone in short form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from ck_pro.exceptions import ParseError

ENTER_MARK = re.compile(r"\[(no)?enter\]\Z", re.IGNORECASE)
"""The mark at the end of a text to type that says whether Enter follows."""


# --- the functions that web agents of this family have always had ------------------------------


def click(id: int, link_name: str = "") -> str:
    """Click the element [id]. link_name may repeat its name, for the log."""
    return f"click [{id}] {link_name}".rstrip()


def type_into(id: int, content: str, enter: bool = True) -> str:
    """Put content into the field [id], in place of what it holds.

    Enter follows, which submits most forms; give enter=False to fill in several fields.
    """
    return f"type [{id}] {_typed(content, enter, default=True)}"


def scroll_up() -> str:
    """Show the part of the page above."""
    return "scroll up"


def scroll_down() -> str:
    """Show the part of the page below."""
    return "scroll down"


def wait(seconds: float | None = None) -> str:
    """Wait until the page changes, at most so many seconds (5)."""
    return "wait" if seconds is None else f"wait {_number(seconds)}"


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
    """Copy a downloaded file (named as listed) to local_path in the working directory.

    remote_path may also be a URL, such as that of an image.
    """
    return f"save {quoted(str(remote_path))} {quoted(str(local_path))}"


def screenshot(flag: bool, save_path: str = "") -> str:
    """Show screenshots with the page from now on (True), or no longer (False).

    With a save_path, also save a picture of the whole page there.
    """
    path = str(save_path or "")
    return f"screenshot {int(flag)} {quoted(path) if path else ''}".rstrip()


def stop(answer: str = "", summary: str = "") -> str:
    """End the task."""
    return f"stop {json.dumps([str(answer), str(summary)], ensure_ascii=False)}"


def nop() -> str:
    """Do nothing."""
    return "nop"


# --- further ones ------------------------------------------------------------------------------


def read(part: int | None = None) -> str:
    """Return the page as Markdown, whole or one part of 8000 characters."""
    return "read" if part is None else f"read {part}"


def find(text: str) -> str:
    """Return the lines of the whole page that hold text, with ids."""
    return f"find {free_text(text)}"


def select(id: int, option: str | list[str]) -> str:
    """Choose an option by its label, or several (a list)."""
    if not isinstance(option, str) and isinstance(option, Iterable):
        return f"select [{id}] {json.dumps([str(o) for o in option], ensure_ascii=False)}"
    label = str(option)
    plain = label == label.strip() and not label.startswith("[")
    return f"select [{id}] {label if plain else json.dumps([label], ensure_ascii=False)}"


def check(id: int) -> str:
    """Switch a box or radio button on."""
    return f"check [{id}]"


def uncheck(id: int) -> str:
    """Switch a box off."""
    return f"uncheck [{id}]"


def clear(id: int) -> str:
    """Empty a field."""
    return f"clear [{id}]"


def press(keys: str, id: int | None = None) -> str:
    """Press keys, such as "Escape" or "Control+a", at the focus or in [id]."""
    return f"press {keys}" if id is None else f"press [{id}] {keys}"


def type_text(text: str, enter: bool = False) -> str:
    """Type at the focus."""
    return f"type_text {_typed(text, enter, default=False)}"


def hover(id: int) -> str:
    """Move the mouse over [id]."""
    return f"hover [{id}]"


def drag(
    id: int,
    to_id: int | None = None,
    x: float | None = None,
    y: float | None = None,
    by: Sequence[float] | None = None,
) -> str:
    """Drag [id] onto [to_id], to x, y, or by [right, down] pixels."""
    if to_id is not None:
        return f"drag [{id}] to [{to_id}]"
    if by is not None:
        return f"drag [{id}] by {_xy(by)}"
    if x is None or y is None:
        raise ParseError("drag needs to_id, or both x and y, or by=[right, down]")
    return f"drag [{id}] to {_xy((x, y))}"


def upload(id: int, path: str | list[str]) -> str:
    """Give a file of the working directory (or a list) to [id]."""
    paths = [path] if isinstance(path, str) or not isinstance(path, Iterable) else path
    return f"upload [{id}] {' '.join(quoted(str(p)) for p in paths)}"


def upload_chosen(path: str | list[str]) -> str:
    """Give a file of the working directory (or a list) to the page, once a click made it ask."""
    paths = [path] if isinstance(path, str) or not isinstance(path, Iterable) else path
    return f"upload {' '.join(json.dumps(str(p), ensure_ascii=False) for p in paths)}"


def scroll_in(id: int, direction: str = "down") -> str:
    """Scroll inside [id]."""
    return f"scroll_in [{id}] {direction}"


def scroll_to(target: int | str) -> str:
    """Scroll to an id or a text."""
    if isinstance(target, int):
        return f"scroll_to [{target}]"
    return f"scroll_to {free_text(target)}"


def select_text(text: str = "", id: int | None = None) -> str:
    """Mark text of the page, or of [id] (all of it if no text is given)."""
    if id is None:
        return f"select_text {free_text(text)}"
    return f"select_text [{id}] {free_text(text) if text else ''}".rstrip()


def click_at(
    x: float,
    y: float,
    button: str = "left",
    double: bool = False,
    keys: str = "",
    id: int | None = None,
) -> str:
    """Click at pixels of the screenshot, or in [id]."""
    words = [
        f"click_at {_within(id)}{_number(x)} {_number(y)}",
        button if button != "left" else "",
        "double" if double else "",
    ]
    return " ".join(word for word in (*words, keys) if word)


def move(x: float, y: float, id: int | None = None) -> str:
    """Move the mouse to such pixels."""
    return f"move {_within(id)}{_number(x)} {_number(y)}"


def drag_path(points: list[list[float]], keys: str = "", id: int | None = None) -> str:
    """Drag along such pixels [[x, y], ...]."""
    path = " ".join(_xy(point) for point in points)
    return f"drag_path {_within(id)}{path} {keys}".rstrip()


def wheel(down: float, right: float = 0, x: float | None = None, y: float | None = None) -> str:
    """Turn the mouse wheel so many pixels, over a point (map, canvas)."""
    where = "" if x is None and y is None else f" at {_xy((x, y))}"
    return f"wheel {_number(down)} {_number(right)}{where}"


def goforward() -> str:
    """Undo goback."""
    return "goforward"


def new_tab(url: str = "") -> str:
    """Open a tab."""
    return f"new_tab {url}".rstrip()


def switch_tab(tab: int) -> str:
    """Show a tab, by its number."""
    return f"switch_tab {tab}"


def close_tab(tab: int | None = None) -> str:
    """Close a tab, or the current one."""
    return "close_tab" if tab is None else f"close_tab {tab}"


def wait_for(text: str = "", seconds: float = 10) -> str:
    """Wait until the page shows text; without text, just so long."""
    return f"wait_for {_number(seconds)}s {free_text(text) if text else ''}".rstrip()


def answer_dialog(accept: bool = True, text: str = "") -> str:
    """Order the answer to the next question of a page (else: dismissed), then act."""
    return f"answer_dialog {'accept' if accept else 'dismiss'} {free_text(text)}".rstrip()


# --- texts -------------------------------------------------------------------------------------


def quoted(path: str) -> str:
    """A path as one word: as it is, or as a JSON string."""
    plain = path and not re.search(r'[\s"\[\]]', path)
    return path if plain else json.dumps(path, ensure_ascii=False)


def free_text(text: str) -> str:
    """A text that goes to the end of the action: as it is, or as a JSON string."""
    text = str(text)
    plain = text == text.strip() and not text.startswith(('"', "["))
    return text if plain else json.dumps(text, ensure_ascii=False)


def _within(id: int | None) -> str:
    return "" if id is None else f"[{id}] "


def _typed(content: str, enter: bool, *, default: bool) -> str:
    """A text to type with a mark, where what it says is not the default or not clear."""
    content = str(content)
    if enter == default and not ENTER_MARK.search(content.rstrip()):
        return content
    return f"{content}{'[ENTER]' if enter else '[NOENTER]'}"


def _xy(point: Sequence[float | None]) -> str:
    x, y = point
    return f"{_number(x)},{_number(y)}"


def _number(value: float | None) -> str:
    """A number without an exponent; thousandths of a pixel or second are all that counts."""
    if value is None:
        raise ParseError("a point needs both numbers, x and y")
    return f"{float(value):.3f}".rstrip("0").rstrip(".")
