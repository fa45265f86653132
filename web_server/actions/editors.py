"""Editors that draw their text themselves, and take the keys by a field that nobody sees.

What such a field holds is a part of the text at most, so that selecting its content would replace
nothing: the editor is asked to select all as a person would.
"""

from __future__ import annotations

from web_server.actions.fields import type_keys
from web_server.observe.target import Target
from web_server.session.page_handle import PageHandle


async def fill(page_handle: PageHandle, target: Target, text: str) -> bool:
    """Replace the content of an editor that draws its text itself and takes keys by a hidden field.

    Args:
        surface: the page.
        target: the hidden field.
        text: the new content.

    Returns:
        False if something lies over the editor; then nothing was done.
    """
    if not await target.call("focusEditor"):
        return False
    keyboard = page_handle.page.keyboard
    await keyboard.press("ControlOrMeta+a")
    await (type_keys(page_handle, text) if text else keyboard.press("Delete"))
    return True
