"""Fill editors that draw their text themselves and receive keys in a hidden field.

The hidden field holds at most a part of the text. To replace the whole text, the keys for
"select all" are pressed, as a user would.
"""

from __future__ import annotations

from web_server.actions.typing_keys import type_keys
from web_server.observe.target import Target
from web_server.session.page_handle import PageHandle


async def fill(page_handle: PageHandle, target: Target, text: str) -> bool:
    """Replace the content of such an editor.

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
