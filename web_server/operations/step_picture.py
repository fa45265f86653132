"""A small picture of a page for viewers of a run, with the boxes of its elements."""

from __future__ import annotations

import asyncio
import base64

from playwright.async_api import Error

from web_server.actions.named_elements import with_ids
from web_server.actions.pointer import element_number
from web_server.actions.registry import find_action
from web_server.contract import PerformAction, StepPicture
from web_server.errors import ServerError
from web_server.observe.target import ElementGone
from web_server.operations.capture import capture_small
from web_server.session.page import Tab

DEFAULT_SIDE = 720
"""Longer side in pixels, unless the request sets `imageMax`."""
_MAX_DIGITS = 15
_Box = tuple[float, float, float, float]


async def step_picture(tab: Tab, request: PerformAction) -> StepPicture:
    """Return a picture of the viewport.

    Args:
        tab: the page.
        request: the action that follows, for `targets`; without a name, there is none.
    """
    handle = tab.page_handle
    taking = capture_small(tab, request.imageMax or DEFAULT_SIDE)
    image, targets = await asyncio.gather(taking, _targets(tab, request))
    size = handle.page.viewport_size or {"width": 0, "height": 0}
    return StepPicture(
        image=base64.b64encode(image).decode("ascii"),
        width=size["width"],
        height=size["height"],
        url=tab.url(),
        elements=handle.observer.boxes_in_view(),
        targets=[[round(side) for side in box] for box in targets],
    )


async def _targets(tab: Tab, request: PerformAction) -> list[_Box]:
    """Return what an action acts on: boxes of elements, and points as boxes without size."""
    if not request.actionName.strip():
        return []
    try:
        aim = find_action(request).aim
        request, _ = await with_ids(tab.page_handle, request)
        boxes = await _boxes(tab, request.targetId)
        if aim == "focus" or (aim == "keys" and not boxes):
            boxes = await _boxes(tab, str((await tab.page_handle.observer.focus()).get("id", "")))
        points = [(point.x, point.y) for point in request.path] if aim == "path" else []
        if aim in ("point", "drag") and request.x is not None and request.y is not None:
            points = [(request.x, request.y)]
        # only the end of a drag does not count from the element's top left corner
        left, top = boxes[0][:2] if boxes and aim != "drag" else (0.0, 0.0)
        ends = [points[0], points[-1]] if len(points) > 1 else points
        boxes += [(left + x, top + y, 0.0, 0.0) for x, y in ends]
        return [*boxes, *await _boxes(tab, request.toId)]
    except (ElementGone, ServerError, Error):
        return []  # the action will report this


async def _boxes(tab: Tab, target_id: str) -> list[_Box]:
    """Return the box of an element in a list; an empty list without an element."""
    number = element_number(target_id)
    if not number.isdecimal() or len(number) > _MAX_DIGITS:
        return []
    return [await (await tab.page_handle.observer.resolve(int(number))).box()]
