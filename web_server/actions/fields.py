"""Fields: typing, choosing options, check boxes.

Everything here acts by mouse and keyboard events of the browser; only native selects and date,
colour and range inputs, which have no part of the page to click on, get their value set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from web_server.actions.pointer import click, describe
from web_server.errors import Conflict
from web_server.observe.target import ElementGone, Target
from web_server.quoting import quoted
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

BETWEEN_KEYS_MS = 200
"""How long the page may change between two keys, at most."""
MOST_KEYS = 1000
"""So many characters are typed as keys at once."""
TYPED_BY_KEY = 100
"""Texts up to this many characters are typed key by key, longer ones come in one piece."""

_SET_TYPES = {
    "date": "2024-12-31",
    "time": "13:45",
    "datetime-local": "2024-12-31T13:45",
    "month": "2024-12",
    "week": "2024-W52",
    "color": "#aabbcc",
    "range": "50",
}
"""Inputs whose value is set, with an example of one."""


async def fill(page_handle: PageHandle, target: Target, how: str, text: str) -> str:
    """Replace the content of a field.

    Args:
        surface: the page.
        target: the field.
        how: as `check_usage` returned it: field, value or declared.
        text: the new content.

    Returns:
        a remark on the result, with a comma or semicolon before it; empty if the field simply
        holds the text now.

    Raises:
        Conflict: the field does not take this text, or takes no text after all.
    """
    if how == "value":
        value = await target.call("setFieldValue", text.strip())
        if value is None:
            raise Conflict(
                f"[{target.id}] {describe(target)} takes a {target.input_type} value "
                f"such as {_SET_TYPES[target.input_type]}, not '{one_line(text)[:60]}'"
            )
        return "" if value == text.strip() else _holds(value)
    if target.input_type == "number" and text and not re.search(r"\d", text):
        raise Conflict(
            f"[{target.id}] {describe(target)} takes a number, not '{one_line(text)[:60]}'"
        )
    await click(page_handle, target)
    try:
        kind = await target.call("selectContent")
        if how == "declared" and kind in ("focus", "none"):
            kind = await _turn_into_field(page_handle, target, kind)
    except ElementGone:
        raise Conflict(
            f"[{target.id}] {describe(target)} vanished when it was clicked: nothing was typed"
        ) from None
    keyboard = page_handle.page.keyboard
    if kind == "none":
        raise Conflict(
            f"[{target.id}] {describe(target)} was clicked and took no focus: nothing was typed"
        )
    if kind == "readonly":
        raise Conflict(f"[{target.id}] {describe(target)} is read-only: nothing was typed")
    if kind == "focus":
        await keyboard.press("ControlOrMeta+a")
    if kind == "line" or kind == "line-empty":
        text = text.replace("\r\n", "\n").replace("\n", " ")
    if not text:
        if not kind.endswith("-empty"):
            await keyboard.press("Delete")
    else:
        await type_keys(page_handle, text, field=kind != "focus")
    return await _what_came(page_handle, target, text)


async def _turn_into_field(page_handle: PageHandle, target: Target, kind: str) -> str:
    """Have an element that only says by its role that it takes text become a field.

    Returns:
        as `selectContent` in observe/js.
    """
    if target.role != "gridcell":
        return kind
    await page_handle.settler.settle()
    kind = str(await target.call("selectContent"))
    if kind == "focus":
        await page_handle.page.keyboard.press("F2")  # by which the cells of grids are edited
        await page_handle.settler.settle()
        kind = str(await target.call("selectContent"))
    if kind in ("focus", "none"):
        raise Conflict(
            f"[{target.id}] {describe(target)} was clicked and did not become a field: nothing "
            "was typed; double-click it, then type into the field that appears"
        )
    return kind


async def _what_came(page_handle: PageHandle, target: Target, text: str) -> str:
    """What is to be said of a field after typing: that it holds something else, or is gone."""
    try:
        held = await target.call("fieldContent")
        if isinstance(held, dict):
            if _among(text, held["rich"]):
                return ""
            await page_handle.settler.settle()  # some editors draw a moment later
            held = await target.call("fieldContent")
    except ElementGone:
        return ", which vanished meanwhile: not all may have gone there"
    if isinstance(held, dict):
        return "" if _among(text, held["rich"]) else _holds(held["rich"].strip())
    if held is None or held in (len(text), text.replace("\r\n", "\n")):
        return ""
    return f"; it holds {held} characters now" if isinstance(held, int) else _holds(held)


def _among(text: str, words: str) -> bool:
    """Whether an editor that may put marks of its own around the words holds them."""
    return "".join(text.split()) in "".join(words.split())


def _holds(value: str) -> str:
    return f"; it holds '{one_line(value)[:80]}' now" if value else "; it is empty now"


async def type_keys(page_handle: PageHandle, text: str, *, field: bool = True) -> None:
    """Type at the focus.

    Args:
        surface: the page.
        text: what to type.
        field: whether an editable field has the focus, which takes long texts and texts of several
            lines in one piece. Anything else hears keys only, and gets each as a key.

    Raises:
        Conflict: there is no field, and the text is longer than `MOST_KEYS`.
    """
    keyboard = page_handle.page.keyboard
    if not field:
        text = text.replace("\r\n", "\n")
        if len(text) > MOST_KEYS:
            raise Conflict(
                f"no field has the focus, so each character is a key press, and {len(text):,} are "
                f"too many: type at most {MOST_KEYS:,} at once"
            )
        for part in filter(None, re.split(r"([\t\n])", text)):
            if part in "\t\n":
                await page_handle.press_key("Tab" if part == "\t" else "Enter")
                await page_handle.settler.call("still", BETWEEN_KEYS_MS)
                continue
            # the first key of a cell may open its editor, which takes the others
            await _type_words(page_handle, part[0])
            await page_handle.settler.call("still", BETWEEN_KEYS_MS)
            await _type_words(page_handle, part[1:])
    elif len(text) <= TYPED_BY_KEY and "\n" not in text and "\t" not in text:
        await _type_words(page_handle, text)
    else:
        await keyboard.insert_text(text)


async def _type_words(page_handle: PageHandle, text: str) -> None:
    """Type key by key. What has the focus is checked before each key that may press a button."""
    for number, part in enumerate(re.split(r"(?=[ \n])", text)):
        if number or part[:1] in (" ", "\n"):
            await page_handle.before_key()
        await page_handle.page.keyboard.type(part)


async def choose(target: Target, labels: list[str]) -> str | None:
    """Choose options of a native select by label or value; None if it is not a native select.

    Raises:
        Conflict: it has no such option, or it cannot be chosen.
    """
    result = await target.call("chooseOptions", labels)
    kind = result["kind"]
    if kind == "none":
        return None
    if kind == "missing":
        missing, has = _listed(result["missing"]), _listed(result["labels"])
        raise Conflict(f"[{target.id}] {describe(target)} has no option {missing}; it has {has}")
    if kind == "disabled":
        raise Conflict(f"[{target.id}] {describe(target)} is disabled: it cannot be acted on")
    if kind == "off":
        raise Conflict(f"the option {quoted(result['label'])} is disabled")
    if kind == "single":
        raise Conflict(f"[{target.id}] {describe(target)} takes exactly one option")
    said = f"selected {_listed(result['labels'])}"
    if kind == "otherwise":
        now = _listed(result["now"]) or "nothing"
        said += f", which the page changed to {now},"
    return said


def _listed(labels: list[str]) -> str:
    return ", ".join(quoted(label) for label in labels)


async def choose_kept(page_handle: PageHandle, target: Target, labels: list[str]) -> str | None:
    """The same; where something stands in for the list, also what that made of the choice.

    Raises:
        Conflict: see `choose`.
    """
    said = await choose(target, labels)
    if said is None or (target.in_viewport and not target.covered_by and not target.passes):
        return said
    try:
        chosen = await target.call("chosenLabels")
        await page_handle.settler.settle()
        now = await target.call("chosenLabels")
    except ElementGone:
        return said
    if now != chosen:
        said += f", which the page changed to {_listed(now) or 'nothing'} then,"
    return said


async def press_enter(page_handle: PageHandle, target: Target, how: str) -> str:
    """Press Enter after a field was filled, if the key goes to a field.

    A field whose value was set was not clicked: it gets the focus now, so that the key does not go
    to what had it before, a button perhaps. Lists and colours would open a window on that key.

    Returns:
        what is to be said of it.
    """
    if how == "select" or target.input_type == "color":
        return ""
    if how == "value":
        try:
            await target.call("focusElement")
        except ElementGone:
            return ""
    if target.role == "combobox":
        await page_handle.settler.settle()  # the suggestions come first: Enter takes one
    focus = await page_handle.observer.focus()
    if focus["kind"] == "control" and how != "value":
        return f"; Enter was not pressed, as the focus went to {named(focus)}"
    await page_handle.press_key("Enter")
    return " and pressed Enter"


def named(focus: Mapping[str, Any]) -> str:
    """Name what has the focus, as of `Observer.focus`: `textbox 'City' [5]`."""
    if "id" not in focus:
        return "no element"
    name = f" '{one_line(focus['name'])[:80]}'" if focus["name"] else ""
    return f"{focus['role']}{name} [{focus['id']}]"


async def content(target: Target) -> str:
    """Return the text that a field holds; empty for a password."""
    held = await target.call("fieldContent")
    return held if isinstance(held, str) else held["rich"] if isinstance(held, dict) else ""


async def suggested(target: Target, label: str) -> str | None:
    """The value that a field's own list of suggestions has under that label; None without one."""
    value: str | None = await target.call("suggestedValue", label)
    return value
