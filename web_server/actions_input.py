"""Actions by mouse and keyboard on elements and points."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from typing import Any

from web_server import hands
from web_server.doing import Doing
from web_server.errors import BadRequest, Conflict
from web_server.observe import Target
from web_server.view import one_line


async def click(doing: Doing) -> str:
    """Click an element; choose an `option`; focus a native select."""
    target = await hands.reach(doing.surface, doing.request.targetId)
    if target.tag == "option" and (done := await hands.choose(target, [])):
        return done
    if target.tag == "select":
        # A native menu opens outside of the page, where nothing can be seen or clicked.
        await target.evaluate("(element) => element.focus()")
        return f"focused {hands.describe(target)}: choose with the action select"
    held = hands.modifiers(doing.request.keys)
    await _holding(doing, held, hands.click(doing.surface, target, doing.request.button))
    return f"clicked {hands.describe(target)}"


async def type_text_into(doing: Doing) -> str:
    """Replace the content of a field; Enter follows if asked for."""
    target = await hands.reach(doing.surface, doing.request.targetId)
    text = doing.request.actionValue or doing.request.text
    await hands.fill(doing.surface, target, text)
    said = f"typed '{one_line(text)[:80]}' into {hands.describe(target)}"
    if doing.request.needEnter:
        await doing.surface.page.keyboard.press("Enter")
        said += " and pressed Enter"
    return said


async def clear(doing: Doing) -> str:
    """Empty a field."""
    target = await hands.reach(doing.surface, doing.request.targetId)
    await hands.fill(doing.surface, target, "")
    return f"cleared {hands.describe(target)}"


async def select(doing: Doing) -> str:
    """Choose options by label or value, in native and in other lists."""
    request = doing.request
    wanted = request.values or ([request.actionValue] if request.actionValue else [])
    target = await hands.find(doing.surface, request.targetId)
    if not wanted and target.tag != "option":
        raise BadRequest("select needs the option's label as actionValue (or several as values)")
    if done := await hands.choose(target, wanted):
        return f"{done} in {hands.describe(target)}"
    if len(wanted) != 1:
        raise Conflict(f"[{target.id}] {hands.describe(target)} is no native list: click its items")
    return await _select_custom(doing, wanted[0])


async def _select_custom(doing: Doing, label: str) -> str:
    """Choose in a list made of other elements: open it, then click the item of that name."""
    surface = doing.surface
    for attempt in (1, 2):
        target = await hands.reach(surface, doing.request.targetId)
        if attempt == 2:
            await hands.click(surface, target)
            await surface.activity.settle()
        observed = await surface.observer.observe(scope="page", elements=True)
        item = _item_named(observed.elements, label)
        if item is not None:
            found = await hands.reach(surface, item)
            await hands.click(surface, found)
            return f"selected '{one_line(label)}' in {hands.describe(target)}"
    raise Conflict(
        f"[{doing.request.targetId}] {hands.describe(target)} shows no item '{one_line(label)}': "
        "click it and choose from what appears"
    )


def _item_named(elements: dict[Any, Any], label: str) -> str | None:
    """Id of the item of a list or menu with that name."""
    roles = ("option", "menuitem", "menuitemradio", "menuitemcheckbox", "treeitem", "listitem")
    wanted = one_line(label).lower()
    for element_id, element in elements.items():
        if element.get("role") in roles and one_line(element.get("name", "")).lower() == wanted:
            return str(element_id)
    return None


async def check(doing: Doing) -> str:
    """Switch a check box or its like on."""
    return await _set_checked(doing, True)


async def uncheck(doing: Doing) -> str:
    """Switch a check box or its like off."""
    return await _set_checked(doing, False)


async def _set_checked(doing: Doing, wanted: bool) -> str:
    word = "on" if wanted else "off"
    target = await hands.reach(doing.surface, doing.request.targetId)
    state = await hands.checked(target)
    if state is None:
        raise Conflict(f"[{target.id}] {hands.describe(target)} cannot be switched on or off")
    if state == wanted:
        return f"{hands.describe(target)} is {word} already"
    await hands.click(doing.surface, target)
    if await hands.checked(target) == state:
        raise Conflict(f"[{target.id}] {hands.describe(target)} did not switch {word} when clicked")
    return f"switched {hands.describe(target)} {word}"


async def hover(doing: Doing) -> str:
    """Move the mouse over an element."""
    target = await hands.reach(doing.surface, doing.request.targetId)
    await doing.surface.move_mouse(target.x, target.y)
    return f"moved the mouse over {hands.describe(target)}"


async def press(doing: Doing) -> str:
    """Press chords, at the focus or on an element."""
    request = doing.request
    chords = request.keys or [request.actionValue or request.text]
    if request.targetId.strip():
        target = await hands.find(doing.surface, request.targetId)
        await target.evaluate("(element) => element.focus()")
    for keys in chords:
        await hands.press(doing.surface, keys)
    return f"pressed {', '.join(one_line(keys) or 'Space' for keys in chords)}"


async def type_text(doing: Doing) -> str:
    """Type at the focus."""
    text = doing.request.text or doing.request.actionValue
    await hands.type_keys(doing.surface, text)
    if doing.request.needEnter:
        await doing.surface.page.keyboard.press("Enter")
    return f"typed '{one_line(text)[:80]}'"


async def drag(doing: Doing) -> str:
    """Drag an element onto another, or to a point."""
    source = await hands.reach(doing.surface, doing.request.targetId)
    if doing.request.toId.strip():
        goal = await hands.find(doing.surface, doing.request.toId)
        if not goal.in_viewport:
            raise Conflict(f"[{goal.id}] {hands.describe(goal)} is out of view: scroll first")
        end, where = await _beyond_middle(source, goal), hands.describe(goal)
    else:
        end = doing.point()
        where = f"({end[0]:g}, {end[1]:g})"
    await _drag(doing, [(source.x, source.y), end])
    return f"dragged {hands.describe(source)} to {where}"


async def _beyond_middle(source: Target, goal: Target) -> tuple[float, float]:
    """Where a drag ends: lists that are sorted by dragging swap only past the middle."""
    width, height = await goal.evaluate(
        "(element) => { const box = element.getBoundingClientRect();"
        " return [box.width, box.height]; }"
    )
    dx, dy = goal.x - source.x, goal.y - source.y
    if abs(dx) > abs(dy):
        return goal.x + math.copysign(min(5.0, width / 4), dx), goal.y
    return goal.x, goal.y + math.copysign(min(5.0, height / 4), dy)


async def drag_path(doing: Doing) -> str:
    """Drag the mouse along points."""
    points = [(point.x, point.y) for point in doing.request.path]
    if len(points) < 2:
        raise BadRequest("drag_path needs `path`: at least two points {x, y}")
    held = hands.modifiers(doing.request.keys)
    await _holding(doing, held, _drag(doing, points))
    return f"dragged along {len(points)} points"


async def _drag(doing: Doing, points: list[tuple[float, float]]) -> None:
    mouse = doing.surface.page.mouse
    button: Any = doing.request.button
    await doing.surface.move_mouse(*points[0])
    await mouse.down(button=button)
    try:
        for x, y in points[1:]:
            # Drag libraries want to see movement before they believe in a drag.
            await doing.surface.move_mouse(x, y, 6 if len(points) == 2 else 2)
    finally:
        await mouse.up(button=button)


async def click_at(doing: Doing) -> str:
    """Click a point, or an element."""
    return await _click_point(doing, 1)


async def double_click_at(doing: Doing) -> str:
    """Double-click a point, or an element."""
    return await _click_point(doing, 2)


async def _click_point(doing: Doing, count: int) -> str:
    held = hands.modifiers(doing.request.keys)
    if doing.request.targetId.strip():
        target = await hands.reach(doing.surface, doing.request.targetId)
        where = hands.describe(target)
        clicking = hands.click(doing.surface, target, doing.request.button, count)
    else:
        x, y = doing.point()
        where = f"({x:g}, {y:g})"
        clicking = hands.click_at(doing.surface, x, y, doing.request.button, count)
    await _holding(doing, held, clicking)
    return f"{'double-clicked' if count == 2 else 'clicked'} {where}"


async def move(doing: Doing) -> str:
    """Move the mouse to a point."""
    x, y = doing.point()
    await doing.surface.move_mouse(x, y)
    return f"moved the mouse to ({x:g}, {y:g})"


async def wheel(doing: Doing) -> str:
    """Turn the wheel over a point, or over the middle of the page."""
    request, (width, height) = doing.request, doing.session.viewport
    dx, dy = request.deltaX or 0.0, request.deltaY or 0.0
    if not dx and not dy:
        raise BadRequest("wheel needs deltaX or deltaY, in pixels")
    aimed = request.x is not None or request.y is not None
    x, y = doing.point() if aimed else (width / 2, height / 2)
    mouse = doing.surface.page.mouse
    await doing.surface.move_mouse(x, y)
    await _holding(doing, hands.modifiers(request.keys), mouse.wheel(dx, dy))
    return f"turned the wheel by ({dx:g}, {dy:g}) at ({x:g}, {y:g})"


async def _holding(doing: Doing, keys: list[str], work: Awaitable[None]) -> None:
    """Do something while modifier keys are held."""
    keyboard = doing.surface.page.keyboard
    for key in keys:
        await keyboard.down(key)
    try:
        await work
    finally:
        for key in reversed(keys):
            await keyboard.up(key)


async def upload(doing: Doing) -> str:
    """Give files to a file input, or to what opens one."""
    target = await hands.find(doing.surface, doing.request.targetId)
    files = await doing.session.uploads.keep(doing.request.files)
    names = ", ".join(file.name for file in files) or "no file"
    if target.tag == "input" and target.input_type == "file":
        handle = await target.handle()
        await handle.set_input_files(files)
        return f"gave {names} to {hands.describe(target)}"
    target = await hands.reach(doing.surface, doing.request.targetId)
    async with doing.surface.page.expect_file_chooser(timeout=3000) as waiting:
        await hands.click(doing.surface, target)
    chooser = await waiting.value
    await chooser.set_files(files)
    return f"clicked {hands.describe(target)} and gave it {names}"
