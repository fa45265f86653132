"""An element that an id stands for: what it is, where to hit it, code to run on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .frames import Realm

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame

    from .observe import Observer


class ElementGone(Exception):
    """No element with that id is on the page now. The message is one line for the model."""


def gone(element_id: int) -> ElementGone:
    """The error for an id that leads nowhere."""
    return ElementGone(
        f"There is no element [{element_id}] on the page now: it vanished or the page changed."
        " Look at the present observation and use an id from there."
    )


@dataclass
class Target:
    """An element as it is now: what it is, and where the pointer would reach it.

    `x` and `y` are CSS pixels in the main frame's viewport; `covered_by` describes the element
    that lies over that point (None: nothing does); `in_viewport` is False for what has to be
    scrolled to, or has no box at all.
    """

    id: int
    role: str
    name: str
    tag: str
    input_type: str
    disabled: bool
    editable: bool
    in_viewport: bool
    x: float
    y: float
    covered_by: str | None
    frame: Frame
    _realm: Realm = field(repr=False)
    _local_id: int = field(repr=False)
    _observer: Observer = field(repr=False)

    async def scroll_into_view(self) -> Target:
        """Scroll the element (and the frames it is in) to the middle, and look again.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        for realm, local_id in reversed(list(self._realm.owners(self._local_id))):
            await realm.call("scrollToNode", local_id)
        return await self._observer.resolve(self.id)

    async def evaluate(self, function_source: str, arg: Any = None) -> Any:
        """Run `function(element, arg)` on the very element, unseen by the page.

        Args:
            function_source: a JavaScript function expression; async is awaited.
            arg: anything JSON can hold.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        wrapped = (
            "(id, argument) => { const element = ckObserver.elementOf(id);"
            f" return element ? Promise.resolve(({function_source})(element, argument))"
            ".then((value) => ({ value })) : null; }"
        )
        answer = await self._realm.run(wrapped, self._local_id, arg)
        if answer is None:
            raise gone(self.id)
        return answer.get("value")

    async def handle(self) -> ElementHandle:
        """The element as the browser library's own handle, for what only it can do.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        handle = await self._observer.hand_over(self._realm, self._local_id, self.frame)
        if handle is None:
            raise gone(self.id)
        return handle
