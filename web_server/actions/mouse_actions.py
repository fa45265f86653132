"""Actions with the mouse: click, hover, drag, select text, turn the wheel."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from typing import Any

from web_server.actions import keys, native_lists, pointer
from web_server.actions.action_context import ActionContext
from web_server.actions.registry import action
from web_server.contract import PerformAction
from web_server.errors import BadRequest, Conflict, NotFound
from web_server.observe.target import NOTHING_PRESSED, Target
from web_server.quoting import quoted
from web_server.view import one_line

Place = tuple[float, float]

_STILL_SECONDS = 0.06
"""Pause before the end of a drag. After 50 ms, libraries treat it as a drop, not as a throw."""
_PRESSED = frozenset(
    {"button", "link", "checkbox", "radio", "switch", "menuitem", "option", "tab", "treeitem"}
)
"""Roles of controls that a mouse click activates."""
_SHORTEST_DRAG = 5
"""Drag libraries treat a shorter movement, in pixels, as a click."""
_DISPLACED_MS = 500
"""How long elements that a drag displaces may move before the drag ends."""


@action("click", aim="mouse", expects_change=True)
async def click(context: ActionContext) -> str:
    """Click an element; choose an `option`; focus a native select."""
    found = await pointer.find(context.page_handle, context.request.targetId)
    if found.tag == "option" and (
        done := await native_lists.choose_visibly(context.page_handle, found, [])
    ):
        return done  # as the action select does: a substitute for the native list may cover it
    target = await pointer.reach(context.page_handle, context.request.targetId)
    if target.tag == "select":
        # A native menu opens outside the page, where it cannot be observed or clicked.
        await target.call("focusElement")
        return f"focused {pointer.describe(target)}: choose with the action select"
    held = keys.modifiers(context.request.keys)
    await _holding(
        context, held, pointer.click(context.page_handle, target, context.request.button)
    )
    return f"clicked {pointer.describe(target)}"


@action("hover", aim="mouse")
async def hover(context: ActionContext) -> str:
    """Move the mouse over an element."""
    target = await pointer.reach(context.page_handle, context.request.targetId)
    await context.page_handle.move_mouse(target.x, target.y)
    return f"moved the mouse over {pointer.describe(target)}"


@action("drag", aim="drag", expects_change=True, has_steps=True)
async def drag(context: ActionContext) -> str:
    """Drag an element onto another, to a point, or by a distance."""
    request = context.request
    source = await pointer.reach(context.page_handle, request.targetId)
    start = (source.x, source.y)
    if request.toId.strip():
        goal = await pointer.find(context.page_handle, request.toId, "toId")
        if not goal.in_viewport:
            raise Conflict(f"{pointer.label(goal)} is out of view: scroll first")
        if await pointer.is_barred(goal):
            raise Conflict(
                f"{pointer.label(goal)} is covered by "
                f"{quoted(goal.covered_by or '')}: close or move that first, or drag to x and y"
            )
        end, where = await _beyond_middle(source, goal), f"to {pointer.describe(goal)}"
    elif request.deltaX is not None or request.deltaY is not None:
        dx, dy = request.deltaX or 0.0, request.deltaY or 0.0
        start = await _grip(source)
        end, where = (start[0] + dx, start[1] + dy), f"by ({dx:g}, {dy:g})"
        context.within_view(*end)
    elif request.x is None and request.y is None:
        raise BadRequest("drag needs toId, or x and y, or deltaX and deltaY")
    else:
        end = context.point()
        where = f"to ({end[0]:g}, {end[1]:g})"
    held = keys.modifiers(request.keys)
    if source.role in _PRESSED and math.dist(start, end) < _SHORTEST_DRAG:
        raise Conflict(
            f"{pointer.label(source)} would be clicked by so short a drag: "
            f"drag it by {_SHORTEST_DRAG} pixels or more"
        )
    await _holding(context, held, _drag(context, [start, end]))
    return f"dragged {pointer.describe(source)} {where}"


async def _grip(source: Target) -> Place:
    """Return where a drag starts on an element: on a native slider at its thumb."""
    if source.tag == "input" and source.input_type == "range":
        x, y, width, height = await source.box()
        share, across, backwards = await source.call("sliderThumb")
        share = 1 - share if backwards else share
        thumb = min(16.0, width, height)
        if across:
            return x + thumb / 2 + share * (width - thumb), y + height / 2
        return x + width / 2, y + thumb / 2 + share * (height - thumb)
    return source.x, source.y


async def _beyond_middle(source: Target, goal: Target) -> tuple[float, float]:
    """Return where a drag ends: past the middle, where sortable lists swap their items."""
    _, _, width, height = await goal.box()
    dx, dy = goal.x - source.x, goal.y - source.y
    if abs(dx) > abs(dy):
        return goal.x + math.copysign(min(5.0, width / 4), dx), goal.y
    return goal.x, goal.y + math.copysign(min(5.0, height / 4), dy)


@action("drag_path", aim="path", expects_change=True, has_steps=True)
async def drag_path(context: ActionContext) -> str:
    """Drag the mouse along points of the viewport, or of an element's box."""
    path = [(point.x, point.y) for point in context.request.path]
    if len(path) < 2:
        raise BadRequest("drag_path needs `path`: at least two points {x, y}")
    if context.request.targetId.strip():
        target = await pointer.reach(context.page_handle, context.request.targetId)
        x, y, _, _ = await target.box()
        path = [context.within_view(x + dx, y + dy) for dx, dy in path]
    await _holding(context, keys.modifiers(context.request.keys), _drag(context, path))
    return f"dragged along {len(path)} points"


async def _drag(context: ActionContext, points: list[Place]) -> None:
    mouse = context.page_handle.page.mouse
    button: Any = context.request.button
    await context.page_handle.move_mouse(*points[0])
    await context.page_handle.before_input()
    await mouse.down(button=button)
    try:
        for x, y in [*points[1:-1], _just_before(points[-2], points[-1])]:
            # Drag libraries start a drag only after some movement.
            await context.page_handle.move_mouse(x, y, 6 if len(points) == 2 else 2)
        await _pause(context, points[-1])
    finally:
        await mouse.up(button=button)


def _just_before(start: Place, end: Place) -> Place:
    """A pixel before the end of a way: so there is a last, slow movement."""
    length = math.dist(start, end)
    share = 1 - 1 / length if length > 2 else 1
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


async def _pause(context: ActionContext, place: Place) -> None:
    """Wait before the end of a drag, then move the mouse to its place.

    Without the pause, maps and boxes slide on after the drag, and sortable lists, which ignore the
    mouse while they make room, miss the place.
    """
    pausing = asyncio.sleep(_STILL_SECONDS)
    await asyncio.gather(pausing, context.page_handle.settler.call("still", _DISPLACED_MS))
    await context.page_handle.move_mouse(*place)


@action("select_text")
async def select_text(context: ActionContext) -> str:
    """Select a text on the page by its words, or all text of an element."""
    page_handle, text = context.page_handle, context.request.text or context.request.actionValue
    element_id = context.request.targetId.strip()
    if not text.strip() and not element_id:
        raise BadRequest("select_text needs text, or targetId, or both")
    target = await pointer.find(page_handle, element_id or "1")
    where = f" in {pointer.describe(target)}" if element_id else ""
    quotation = f"'{one_line(text)[:80]}'" if text.strip() else "the text"
    found = await target.locate_text(text)
    if found is None:
        raise NotFound(
            f"{quotation} is not shown{where or ' on the page'}: quote it as the page shows it"
        )
    if found["covered_by"]:
        cover = quoted(found["covered_by"])
        raise Conflict(f"{quotation} is covered by {cover}: close or move that first")
    if not found["silent"]:
        await _drag(context, [(found["x1"], found["y1"]), (found["x2"], found["y2"])])
    selected = await target.ensure_text_selected()
    if selected is None:
        raise Conflict(f"{quotation}{where} vanished under the mouse")
    if not selected:
        raise Conflict(f"{quotation}{where} cannot be selected: the page prevents it")
    count = f" (the first of {found['count']} such places)" if found["count"] > 1 else ""
    return f"selected {quotation}{where}{count}"


def _hold_seconds(request: PerformAction) -> float:
    return (request.hold or 0) / 1000


@action("click_at", aim="point", expects_change=True, extra_seconds=_hold_seconds)
async def click_at(context: ActionContext) -> str:
    """Click a point, or an element, or a point of its box; hold the button for `hold` ms."""
    return await _click_point(context, 1)


@action("double_click_at", aim="point", expects_change=True)
async def double_click_at(context: ActionContext) -> str:
    """Double-click a point, or an element, or a point of its box."""
    return await _click_point(context, 2)


@action("triple_click_at", aim="point", expects_change=True)
async def triple_click_at(context: ActionContext) -> str:
    """Click a point three times, which selects a paragraph or a line; or an element."""
    return await _click_point(context, 3)


_CLICKED = ("", "clicked", "double-clicked", "triple-clicked")


async def _click_point(context: ActionContext, count: int) -> str:
    request = context.request
    held = keys.modifiers(request.keys)
    hold = _hold_seconds(request)
    clicked = f"held {request.hold:g} ms" if hold else _CLICKED[count]
    if request.targetId.strip() and request.x is None and request.y is None:
        target = await pointer.reach(context.page_handle, request.targetId)
        where = pointer.describe(target)
        clicking = pointer.click(context.page_handle, target, request.button, count, hold)
    else:
        (x, y), where, aimed = await _aim(context)
        clicking = pointer.click_at(context.page_handle, x, y, request.button, count, hold)
        if aimed is not None:
            await aimed.expect_press()
            await _holding(context, held, clicking)
            return f"{clicked} {where}{await _cover(aimed)}"
    await _holding(context, held, clicking)
    return f"{clicked} {where}"


async def _cover(aimed: Target) -> str:
    """Return a remark on what covered the clicked point of an element; empty if nothing did."""
    missed = await aimed.missed_press()
    if missed is None or missed == NOTHING_PRESSED:
        return ""
    return f", where {quoted(missed)} lies over it"


@action("move", aim="point")
async def move(context: ActionContext) -> str:
    """Move the mouse to a point of the viewport, or of an element's box."""
    (x, y), where, _ = await _aim(context)
    await context.page_handle.move_mouse(x, y)
    return f"moved the mouse to {where}"


async def _aim(context: ActionContext) -> tuple[Place, str, Target | None]:
    """Return the request's point in the viewport, its description, and its element, if any."""
    request = context.request
    if not request.targetId.strip():
        x, y = context.point()
        return (x, y), f"({x:g}, {y:g})", None
    target = await pointer.reach(context.page_handle, request.targetId)
    left, top, width, height = await target.box()
    dx = width / 2 if request.x is None else request.x
    dy = height / 2 if request.y is None else request.y
    if not (0 <= dx <= width and 0 <= dy <= height):
        raise BadRequest(
            f"({dx:g}, {dy:g}) is outside {pointer.label(target)}, which is {width:g} x {height:g}"
        )
    where = f"({dx:g}, {dy:g}) of {pointer.describe(target)}"
    return context.within_view(left + dx, top + dy), where, target


@action("wheel", aim="point")
async def wheel(context: ActionContext) -> str:
    """Turn the wheel over a point, or over the middle of the page."""
    request, (width, height) = context.request, context.session.viewport
    dx, dy = request.deltaX or 0.0, request.deltaY or 0.0
    if not dx and not dy:
        raise BadRequest("wheel needs deltaX or deltaY, in pixels")
    aimed = request.x is not None or request.y is not None
    x, y = context.point() if aimed else (width / 2, height / 2)
    held = keys.modifiers(request.keys)
    await context.page_handle.move_mouse(x, y)
    await _holding(context, held, context.page_handle.turn_wheel(dx, dy))
    return f"turned the wheel by ({dx:g}, {dy:g}) at ({x:g}, {y:g})"


async def _holding(context: ActionContext, keys: list[str], work: Awaitable[None]) -> None:
    """Run work while modifier keys are held."""
    keyboard = context.page_handle.page.keyboard
    for key in keys:
        await keyboard.down(key)
    try:
        await work
    finally:
        for key in reversed(keys):
            await keyboard.up(key)
