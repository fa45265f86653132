"""Check that an action can be done to an element, before anything on the page is touched.

An action that cannot be done does nothing: no pointer and no key event, no focus. What the element
can be used for is decided in the page (`observe_usage.js`), in one call.
"""

from __future__ import annotations

from typing import Any, Literal

from web_server import hands
from web_server.errors import Conflict, NotFound
from web_server.observe import ElementGone
from web_server.surface import Surface

Purpose = Literal["text", "toggle", "file", "list", "focus"]


async def check(surface: Surface, element_id: str, purpose: Purpose) -> dict[str, Any]:
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
    number = hands.number_of(element_id)
    try:
        use = await surface.observer.usage(number, purpose)
    except ElementGone as gone:
        raise NotFound(str(gone)) from None
    if use["how"] != "none":
        return {**use, "id": str(use["id"])}
    target = await hands.find(surface, str(number))
    message = f"[{number}] {hands.describe(target)} {use['why']}"
    hints = [use["fits"], ", ".join([await _named(surface, each) for each in use.get("near", ())])]
    fits = " ".join(hint for hint in hints if hint)
    if use["id"] != number:
        message += f" ({await _named(surface, use['id'])})"
    raise Conflict(f"{message}: {fits or 'nothing was done'}")


async def _named(surface: Surface, element_id: int) -> str:
    return hands.describe(await hands.find(surface, str(element_id))) + f" [{element_id}]"
