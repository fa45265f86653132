"""Check that an action can be done to an element, before anything on the page is touched.

An action that cannot be done does nothing: no pointer and no key event, no focus. What the element
can be used for is decided in the page (`observe_usage.js`), in one call.
"""

from __future__ import annotations

from typing import Any, Literal

from web_server.actions import pointer as pointer
from web_server.errors import Conflict, NotFound
from web_server.observe.observer import ElementGone
from web_server.session.page_handle import PageHandle

Purpose = Literal["text", "toggle", "file", "list", "focus"]


async def check(page_handle: PageHandle, element_id: str, purpose: Purpose) -> dict[str, Any]:
    """Return what an element can be used for.

    Args:
        surface: the page that it is on.
        element_id: as the client wrote it.
        purpose: text (type, clear), toggle (check, uncheck), file (upload), list (select), focus
            (press).

    Returns:
        `how`, the `id` of the element to act on (a part of the named one, or the field that it
        labels) and what else `observe_usage.js` returns for the purpose.

    Raises:
        BadRequest: the id is not a number.
        NotFound: no such element was shown, or it is gone.
        Conflict: it cannot be used so; the message says why, and what to do instead.
    """
    number = pointer.number_of(element_id)
    try:
        use = await page_handle.observer.usage(number, purpose)
    except ElementGone as gone:
        raise NotFound(str(gone)) from None
    if use["how"] != "none":
        return {**use, "id": str(use["id"])}
    target = await pointer.find(page_handle, str(number))
    message = f"[{number}] {pointer.describe(target)} {use['why']}"
    hints = [
        use["fits"],
        ", ".join([await _named(page_handle, each) for each in use.get("near", ())]),
    ]
    fits = " ".join(hint for hint in hints if hint)
    if use["id"] != number:
        message += f" ({await _named(page_handle, use['id'])})"
    raise Conflict(f"{message}: {fits or 'nothing was done'}")


async def _named(page_handle: PageHandle, element_id: int) -> str:
    return pointer.describe(await pointer.find(page_handle, str(element_id))) + f" [{element_id}]"
