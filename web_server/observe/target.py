"""The element of an id: its facts, the point to click, and functions on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from web_server.observe.isolated_world import ContextGone, IsolatedWorld

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame

    from web_server.observe.observer import Observer


NOTHING_PRESSED = "nothing"
"""Result of `Target.missed_press` if no document of the page received a press."""


class ElementGone(Exception):
    """The page has no element with this id. The message is one line for the model."""


def element_gone(element_id: int) -> ElementGone:
    """Return the error for an id without an element."""
    return ElementGone(
        f"Element [{element_id}] is not on the page now: it vanished or the page changed."
        " Use an id from the current observation."
    )


@dataclass
class Target:
    """An element in its current state.

    Attributes:
        id: as observations show it.
        role: its accessible role.
        name: its accessible name.
        tag: its HTML tag.
        input_type: the type of an input element; empty for others.
        disabled: whether it is disabled or inert.
        editable: whether its content can be edited.
        in_viewport: False if it has to be scrolled into view or has no box.
        x: where to click, in CSS pixels of the main frame's viewport.
        y: the same.
        covered_by: describes the element that covers this point; None if nothing does.
        passes: whether it ignores the pointer.
        frame: its frame in Playwright; None in documents of object and embed elements.
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
    _world: IsolatedWorld = field(repr=False)
    _local_id: int = field(repr=False)
    _observer: Observer = field(repr=False)

    async def scroll_into_view(self) -> Target:
        """Scroll the element, and the frames around it, to the middle of the view.

        Returns:
            its state after scrolling.

        Raises:
            ElementGone: it left the page.
        """
        for world, local_id in reversed(list(self._world.owners(self._local_id))):
            await world.call("scrollToNode", local_id)
        return await self._observer.resolve(self.id)

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of `elementActions` in js/use/target.js with the element.

        Args:
            function: the name of the function.
            arguments: its other arguments, as values that JSON can hold.

        Raises:
            ElementGone: it left the page.
        """
        try:
            answer = await self._world.call("callWithElement", self._local_id, function, *arguments)
        except ContextGone:
            raise element_gone(self.id) from None
        if answer is None:
            raise element_gone(self.id)
        return answer.get("value")

    async def box(self) -> tuple[float, float, float, float]:
        """Left, top, width and height in CSS pixels of the main frame's viewport.

        Raises:
            ElementGone: it left the page.
        """
        place = await self._world.call("placeOf", self._local_id)
        if place is None:
            raise element_gone(self.id)
        dx, dy = await self._origin()
        return place[0] + dx, place[1] + dy, place[2], place[3]

    async def _origin(self) -> tuple[float, float]:
        """The origin of the element's isolated world in the main frame's viewport."""
        x = y = 0.0
        for world, owner_id in list(self._world.owners(self._local_id))[1:]:
            place = await world.call("originOf", owner_id)
            if place is None:
                raise element_gone(self.id)
            x, y = x + place["x"], y + place["y"]
        return x, y

    async def reached(self) -> dict[str, Any]:
        """Describe the elements that a click reaches, and the form that Enter submits.

        Raises:
            ElementGone: it left the page.
        """
        try:
            facts: dict[str, Any] | None = await self._world.call("reachedNode", self._local_id)
        except ContextGone:
            facts = None
        if facts is None:
            raise element_gone(self.id)
        return facts

    async def takes_keys(self) -> bool:
        """Whether the element receives the keys of the keyboard."""
        return bool(await self._world.call("takesKeys", self._local_id))

    def place(self) -> tuple[IsolatedWorld, int]:
        """The isolated world of the element, and its id there."""
        return self._world, self._local_id

    async def inner_point(self, x: float, y: float) -> tuple[float, float]:
        """Convert a point of the main frame's viewport to the element's isolated world."""
        dx, dy = await self._origin()
        return x - dx, y - dy

    async def expect_press(self) -> None:
        """Record the target of the next mouse press, for `missed_press`."""
        await self._world.call("expectPress", self._local_id)

    async def missed_press(self) -> str | None:
        """Describe what was pressed instead of this element; None if the press reached it."""
        try:
            missed: str | None = await self._world.call("missedPress", self._local_id)
        except ContextGone:
            return None  # the press navigated
        return missed

    async def locate_text(self, text: str) -> dict[str, Any] | None:
        """Find a text inside the element and bring it into view.

        Args:
            text: the displayed text, ignoring white space and case; empty for all text.

        Returns:
            None if the element does not show it. Otherwise `count`: number of occurrences; `x1`,
            `y1`, `x2`, `y2`: start and end of the first one in the main frame's viewport;
            `covered_by`: the element that covers its start; `silent`: whether it is selected
            already, because dragging the mouse over it would not select it.
        """
        try:
            found: dict[str, Any] | None = await self._world.call(
                "locateText", self._local_id, text
            )
        except ContextGone:
            raise element_gone(self.id) from None
        if found is not None:
            dx, dy = await self._origin()
            found |= {"x1": found["x1"] + dx, "x2": found["x2"] + dx}
            found |= {"y1": found["y1"] + dy, "y2": found["y2"] + dy}
        return found

    async def ensure_text_selected(self) -> bool | None:
        """Select the text that `locate_text` found, if the mouse selected a different one.

        Returns:
            whether it is selected now; None if it left the page.
        """
        try:
            selected: bool | None = await self._world.call("ensureSelected")
        except ContextGone:
            return None
        return selected

    async def handle(self) -> ElementHandle:
        """Return Playwright's handle of the element.

        Raises:
            ElementGone: it left the page.
        """
        if self.frame is None:
            raise Error("elements inside object and embed elements have no handle")
        handle = await self._observer.get_handle(self._world, self._local_id, self.frame)
        if handle is None:
            raise element_gone(self.id)
        return handle
