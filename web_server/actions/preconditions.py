"""Check that an action can be done to an element before anything on the page is touched.

An action that cannot be done does nothing: no pointer or key event, no change of focus. One call of
`js/use/usage.js` in the page decides what the element can be used for.
"""

from __future__ import annotations

from typing import Any, Literal

from web_server.actions import pointer
from web_server.errors import Conflict, NotFound
from web_server.observe.target import ElementGone
from web_server.session.page_handle import PageHandle

Purpose = Literal["text", "toggle", "file", "list", "focus", "value", "table"]
"""text (type, clear, edit), toggle (check, uncheck), file (upload), list (select), focus (press),
value (value), table (table)."""


async def check_usage(page_handle: PageHandle, element_id: str, purpose: Purpose) -> dict[str, Any]:
    """Return how an element can be used for a purpose.

    Args:
        page_handle: the page.
        element_id: as the client wrote it.
        purpose: what the action needs the element for.

    Returns:
        `how`; the `id` of the element to act on, which may be a part of the named one or the field
        that it labels; and further facts of `js/use/usage.js` for the purpose.

    Raises:
        BadRequest: the id is not a number.
        NotFound: the id was never shown, or its element vanished.
        Conflict: the element cannot be used for it; the message says why and suggests an action.
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
    if use["id"] != number:
        message += f" ({await _named(page_handle, use['id'])})"
    near = ", ".join([await _named(page_handle, each) for each in use.get("near", ())])
    advice = " ".join(filter(None, [use["fits"], near])) or "nothing was done"
    raise Conflict(f"{message}: {advice}")


async def _named(page_handle: PageHandle, element_id: int) -> str:
    return pointer.describe(await pointer.find(page_handle, str(element_id))) + f" [{element_id}]"
