"""An element that an id stands for: what it is, where to hit it, code to run on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from web_server.observe.isolated_world import ContextGone, IsolatedWorld

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame

    from web_server.observe.observer import Observer


NOTHING_PRESSED = "nothing"
"""What `Target.missed_press` tells where no document of the page heard of a press."""


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
    that lies over that point (None: nothing does); `passes`: the mouse goes through it;
    `in_viewport` is False for what has to be scrolled to, or has no box at all. `frame` is the
    browser library's, None where it has none (documents of object and embed elements).
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
    passes: bool
    frame: Frame | None
    _realm: IsolatedWorld = field(repr=False)
    _local_id: int = field(repr=False)
    _observer: Observer = field(repr=False)

    async def scroll_into_view(self) -> Target:
        """Scroll the element (and the frames it is in) to the middle, and look again.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        for world, local_id in reversed(list(self._realm.owners(self._local_id))):
            await world.call("scrollToNode", local_id)
        return await self._observer.resolve(self.id)

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call one of `elementActions` of js/target.js with the element, unseen by the page.

        Args:
            function: the name of the function.
            arguments: its further arguments, as JSON can hold them.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        try:
            answer = await self._realm.call("callWithElement", self._local_id, function, *arguments)
        except ContextGone:
            raise gone(self.id) from None
        if answer is None:
            raise gone(self.id)
        return answer.get("value")

    async def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height in the main frame's viewport, in CSS pixels.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        place = await self._realm.call("placeOf", self._local_id)
        if place is None:
            raise gone(self.id)
        dx, dy = await self._origin()
        return place[0] + dx, place[1] + dy, place[2], place[3]

    async def _origin(self) -> tuple[float, float]:
        """Where the document that is walked together with the element stands in the main one."""
        x = y = 0.0
        for world, owner_id in list(self._realm.owners(self._local_id))[1:]:
            place = await world.call("originOf", owner_id)
            if place is None:
                raise gone(self.id)
            x, y = x + place["x"], y + place["y"]
        return x, y

    async def reached(self) -> dict[str, Any]:
        """Role, name and text of the element, and what Enter in it submits.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        try:
            facts: dict[str, Any] | None = await self._realm.call("reachedNode", self._local_id)
        except ContextGone:
            facts = None
        if facts is None:
            raise gone(self.id)
        return facts

    async def takes_keys(self) -> bool:
        """Whether the keyboard's keys go to the element."""
        return bool(await self._realm.call("takesKeys", self._local_id))

    def place(self) -> tuple[IsolatedWorld, int]:
        """The document that knows the element, and its id there."""
        return self._realm, self._local_id

    async def inner_point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the main frame's viewport, in the document that knows the element."""
        dx, dy = await self._origin()
        return x - dx, y - dy

    async def expect_press(self) -> None:
        """Take note of what a button of the mouse is pressed on next."""
        await self._realm.call("expectPress", self._local_id)

    async def missed_press(self) -> str | None:
        """What the button was pressed on since `expect_press` instead; None: on this element."""
        try:
            missed: str | None = await self._realm.call("missedPress", self._local_id)
        except ContextGone:
            return None  # the page went elsewhere, so something was hit
        return missed

    async def quote(self, text: str) -> dict[str, Any] | None:
        """Find a text inside the element and bring it into view.

        Args:
            text: as it is shown, white space and case aside; all that is shown if empty.

        Returns:
            None if it is not there; else `count`: how often it is; `x1`, `y1`, `x2`, `y2`: where
            the first one begins and ends, in the main frame's viewport; `covered_by`: what lies
            over its beginning; `silent`: a mouse that is dragged over it would do something else
            than to select it, so that it is selected already.
        """
        try:
            found: dict[str, Any] | None = await self._realm.call(
                "locateText", self._local_id, text
            )
        except ContextGone:
            raise gone(self.id) from None
        if found is not None:
            dx, dy = await self._origin()
            found |= {"x1": found["x1"] + dx, "x2": found["x2"] + dx}
            found |= {"y1": found["y1"] + dy, "y2": found["y2"] + dy}
        return found

    async def quote_selected(self) -> bool | None:
        """Whether the text that `quote` found is selected, which is mended if it is not quite.

        None: it is not there any more.
        """
        try:
            selected: bool | None = await self._realm.call("ensureSelected")
        except ContextGone:
            return None
        return selected

    async def handle(self) -> ElementHandle:
        """The element as the browser library's own handle, for what only it can do.

        Raises:
            ElementGone: it vanished meanwhile.
        """
        if self.frame is None:
            raise Error("the document of an object or embed element hands nothing over")
        handle = await self._observer.hand_over(self._realm, self._local_id, self.frame)
        if handle is None:
            raise gone(self.id)
        return handle
