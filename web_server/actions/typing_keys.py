"""Type a text or a secret at the focus, and press Enter."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from web_server.actions.action_context import ActionContext
from web_server.actions.action_targets import focused_url, reached_urls
from web_server.errors import Conflict
from web_server.observe.target import ElementGone, Target
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

KeyCheck = Callable[[], Awaitable[None]]
"""Awaited before a key; raises to prevent it."""
BETWEEN_KEYS_MS = 200
"""How long the page may change between two keys."""
MAX_KEYS = 1000
"""Longest text that is typed key by key where no field has the focus."""
TYPED_BY_KEY = 100
"""Longest text that is typed into a field key by key; a longer one is inserted at once."""


async def type_keys(
    page_handle: PageHandle, text: str, *, field: bool = True, check: KeyCheck | None = None
) -> None:
    """Type at the focus.

    Args:
        page_handle: the page.
        text: what to type.
        field: an editable field has the focus, so a long text can be inserted at once. Anything
            else, such as a canvas, receives every character as a key.
        check: awaited before each key of a secret; raises to prevent it.

    Raises:
        Conflict: no field has the focus, and the text is longer than `MAX_KEYS`.
    """
    if check is not None:
        await _type_checked(page_handle, text, check)
    elif not field:
        await _type_without_field(page_handle, text.replace("\r\n", "\n"))
    elif len(text) <= TYPED_BY_KEY and "\n" not in text and "\t" not in text:
        await _type_words(page_handle, text)
    else:
        await page_handle.page.keyboard.insert_text(text)


async def _type_checked(page_handle: PageHandle, text: str, check: KeyCheck) -> None:
    """Type a secret: at once if it is long, else key by key, with a check before each."""
    keyboard = page_handle.page.keyboard
    if len(text) > TYPED_BY_KEY:
        await check()
        await keyboard.insert_text(text)
        return
    for character in text:
        await check()
        await keyboard.type(character)


async def _type_without_field(page_handle: PageHandle, text: str) -> None:
    if len(text) > MAX_KEYS:
        raise Conflict(
            f"no field has the focus, so each character is a key press, and {len(text):,} are "
            f"too many: type at most {MAX_KEYS:,} at once"
        )
    for part in filter(None, re.split(r"([\t\n])", text)):
        if part in "\t\n":
            await page_handle.press_key("Tab" if part == "\t" else "Enter")
            await page_handle.settler.call("still", BETWEEN_KEYS_MS)
            continue
        # The first key may open a cell's editor, which then receives the others.
        await _type_words(page_handle, part[0])
        await page_handle.settler.call("still", BETWEEN_KEYS_MS)
        await _type_words(page_handle, part[1:])


async def _type_words(page_handle: PageHandle, text: str) -> None:
    """Type key by key, and check the focus before each key that could press a button."""
    for number, part in enumerate(re.split(r"(?=[ \n])", text)):
        if number or part[:1] in (" ", "\n"):
            await page_handle.before_key()
        await page_handle.page.keyboard.type(part)


async def press_enter(page_handle: PageHandle, target: Target, how: str) -> str:
    """Press Enter after a field was filled, unless the key would press a button.

    A field whose value was set has not been clicked, so it is focused first. In lists and colour
    inputs the key would open a window, so it is not pressed.

    Returns:
        a remark for the message.
    """
    if how == "select" or target.input_type == "color":
        return ""
    if how == "value":
        try:
            await target.call("focusElement")
        except ElementGone:
            return ""
    if target.role == "combobox":
        await page_handle.settler.settle()  # Enter accepts a suggestion: wait for them
    focus = await page_handle.observer.focus()
    if focus["kind"] == "control" and how != "value":
        return f"; Enter was not pressed, as the focus went to {focus_name(focus)}"
    await page_handle.press_key("Enter")
    return " and pressed Enter"


def focus_name(focus: Mapping[str, Any]) -> str:
    """Return a name for the result of `Observer.focus`, such as `textbox 'City' [5]`."""
    if "id" not in focus:
        return "no element"
    name = f" '{one_line(focus['name'])[:80]}'" if focus["name"] else ""
    return f"{focus['role']}{name} [{focus['id']}]"


async def with_secrets(context: ActionContext, text: str) -> tuple[str, KeyCheck | None]:
    """Return the text to type for a request's text, and a check for its keys.

    Returns:
        The text with its secrets, and a check that the focus is still on their domains; None for a
        text without secrets.

    Raises:
        Conflict: a secret is unknown, or may not be typed into what the action reaches.
    """
    if not context.session.secrets.has_placeholder(text):
        return text, None
    urls = await reached_urls(context)
    if not urls:
        raise Conflict("nothing was typed: no field receives the secret; click the field first")
    filled = [context.session.secrets.filled(text, url) for url in urls]
    return filled[0], partial(_check_focus, context, text)


async def _check_focus(context: ActionContext, text: str) -> None:
    url = await focused_url(context)
    if url is None:
        raise Conflict("the field lost the focus while the secret was typed")
    context.session.secrets.filled(text, url)
