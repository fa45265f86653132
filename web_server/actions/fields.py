"""Fill fields, with the browser's mouse and keyboard events.

Only date, colour and range inputs have their value set: their pickers are outside the page.
"""

from __future__ import annotations

import re

from web_server.actions.pointer import click, label
from web_server.actions.typing_keys import KeyCheck, type_keys
from web_server.errors import Conflict
from web_server.observe.target import ElementGone, Target
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

_SET_TYPES = {
    "date": "2024-12-31",
    "time": "13:45",
    "datetime-local": "2024-12-31T13:45",
    "month": "2024-12",
    "week": "2024-W52",
    "color": "#aabbcc",
    "range": "50",
}
"""Types of inputs whose value is set, with an example of a value."""


async def fill(
    page_handle: PageHandle, target: Target, how: str, text: str, check: KeyCheck | None = None
) -> str:
    """Replace the content of a field.

    Args:
        page_handle: the page.
        target: the field.
        how: as `check_usage` returned it: field, value or declared.
        text: the new content.
        check: see `type_keys`.

    Returns:
        a remark on the result, with a comma or semicolon before it; empty if the field holds the
        text.

    Raises:
        Conflict: the field does not accept this text, or accepts no text after all.
    """
    if how == "value":
        return await _set_value(target, text.strip())
    if target.input_type == "number" and text and not re.search(r"\d", text):
        raise Conflict(f"{label(target)} takes a number, not '{one_line(text)[:60]}'")
    await click(page_handle, target)
    kind = await _select_content(page_handle, target, declared=how == "declared")
    keyboard = page_handle.page.keyboard
    if kind == "focus":
        await keyboard.press("ControlOrMeta+a")
    if kind in ("line", "line-empty"):
        text = text.replace("\r\n", "\n").replace("\n", " ")
    if text:
        await type_keys(page_handle, text, field=kind != "focus", check=check)
    elif not kind.endswith("-empty"):
        await keyboard.press("Delete")
    return await _remark(page_handle, target, text)


async def _set_value(target: Target, text: str) -> str:
    """Set the value of an input without a part in the page to type into; return a remark."""
    value = await target.call("setFieldValue", text)
    if value is None:
        raise Conflict(
            f"{label(target)} takes a {target.input_type} value "
            f"such as {_SET_TYPES[target.input_type]}, not '{one_line(text)[:60]}'"
        )
    return "" if value == text else _holds(value)


async def _select_content(page_handle: PageHandle, target: Target, *, declared: bool) -> str:
    """Select the content of a field that was clicked.

    Args:
        page_handle: the page.
        target: the field.
        declared: only its role says that it accepts text.

    Returns:
        the kind of field, as `selectContent` of observe/js.

    Raises:
        Conflict: it accepts no text.
    """
    try:
        kind = str(await target.call("selectContent"))
        if declared and kind in ("focus", "none") and target.role == "gridcell":
            kind = await _open_cell(page_handle, target)
    except ElementGone:
        raise Conflict(f"{label(target)} vanished when it was clicked: nothing was typed") from None
    if kind == "none":
        raise Conflict(f"{label(target)} was clicked and took no focus: nothing was typed")
    if kind == "readonly":
        raise Conflict(f"{label(target)} is read-only: nothing was typed")
    return kind


async def _open_cell(page_handle: PageHandle, target: Target) -> str:
    """Open the editor of a grid's cell that was clicked; return the kind of field."""
    await page_handle.settler.settle()
    kind = str(await target.call("selectContent"))
    if kind == "focus":
        await page_handle.page.keyboard.press("F2")  # the usual key to edit a cell
        await page_handle.settler.settle()
        kind = str(await target.call("selectContent"))
    if kind in ("focus", "none"):
        raise Conflict(
            f"{label(target)} was clicked and did not become a field: nothing was typed; "
            "double-click it, then type into the field that appears"
        )
    return kind


async def _remark(page_handle: PageHandle, target: Target, text: str) -> str:
    """Return a remark on a field after typing: that it holds another text, or vanished."""
    try:
        held = await target.call("fieldContent")
        if isinstance(held, dict):
            if _contains(held["rich"], text):
                return ""
            await page_handle.settler.settle()  # some editors draw a moment later
            held = await target.call("fieldContent")
    except ElementGone:
        return ", which vanished meanwhile: it may not have received all of the text"
    if isinstance(held, dict):
        return "" if _contains(held["rich"], text) else _holds(held["rich"].strip())
    if held is None or held in (len(text), text.replace("\r\n", "\n")):
        return ""
    return f"; it holds {held} characters now" if isinstance(held, int) else _holds(held)


def _contains(content: str, text: str) -> bool:
    """Return whether an editor, which may add markup, holds a text, white space aside."""
    return "".join(text.split()) in "".join(content.split())


def _holds(value: str) -> str:
    return f"; it holds '{one_line(value)[:80]}' now" if value else "; it is empty now"


async def content(target: Target) -> str:
    """Return the text that a field holds; empty for a password."""
    held = await target.call("fieldContent")
    return held if isinstance(held, str) else held["rich"] if isinstance(held, dict) else ""


async def fill_editor(page_handle: PageHandle, target: Target, text: str) -> bool:
    """Replace the content of an editor that draws its text and receives keys in a hidden field.

    The hidden field holds at most a part of the text. To replace the whole text, the keys for
    "select all" are pressed, as a user would.

    Args:
        page_handle: the page.
        target: the hidden field.
        text: the new content.

    Returns:
        False if something covers the editor; then nothing was done.
    """
    if not await target.call("focusEditor"):
        return False
    keyboard = page_handle.page.keyboard
    await keyboard.press("ControlOrMeta+a")
    await (type_keys(page_handle, text) if text else keyboard.press("Delete"))
    return True
