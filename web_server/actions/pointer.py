"""Find an element by its id, bring it into view, and click it."""

from __future__ import annotations

import asyncio
from typing import Any

from web_server.errors import BadRequest, Conflict, NotFound
from web_server.observe.target import ElementGone, Target
from web_server.quoting import quoted
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

MAX_ID_DIGITS = 15
_CLICK_ATTEMPTS = 5
_PICTURE_SECONDS = 3.0
_COVER_MS = 300


def describe(target: Target) -> str:
    """Return role and name of an element, such as `button 'Buy'`."""
    return f"{target.role} '{one_line(target.name)[:80]}'" if target.name else target.role


def label(target: Target) -> str:
    """Return id, role and name of an element, such as `[3] button 'Buy'`."""
    return f"[{target.id}] {describe(target)}"


def element_number(element_id: str) -> str:
    """Return a `targetId` as digits, if it is a number in one of the forms that clients write."""
    return element_id.strip().strip("[]").removesuffix(".0")


def number_of(element_id: str, field: str = "targetId") -> int:
    """Return an element's id as a number.

    Args:
        element_id: as the client wrote it.
        field: where the client wrote it.

    Raises:
        BadRequest: it is not a number.
        NotFound: no element's id is that long.
    """
    text = element_number(element_id)
    if not text:
        raise BadRequest(f"{field} is missing: give the number before the element")
    if not text.isdecimal():
        asked = one_line(element_id)[:40]
        raise BadRequest(
            f"{field} must be the number before an element, or role and name such as "
            f"button 'Save'; not '{asked}'"
        )
    if len(text) > MAX_ID_DIGITS:
        raise NotFound(f"{field}: there is no element [{text[:MAX_ID_DIGITS]}...] on the page")
    return int(text)


async def find(page_handle: PageHandle, element_id: str, field: str = "targetId") -> Target:
    """Return the element with an id.

    Args:
        page_handle: the page.
        element_id: as the client wrote it.
        field: where the client wrote it.

    Raises:
        BadRequest: the id is not a number.
        NotFound: the id was never shown, or its element vanished.
    """
    number = number_of(element_id, field)
    try:
        return await page_handle.observer.resolve(number)
    except ElementGone as gone:
        raise NotFound(str(gone)) from None


async def reach(page_handle: PageHandle, element_id: str) -> Target:
    """Return the element with an id, scrolled into view, where nothing covers it.

    Raises:
        BadRequest, NotFound: see `find`.
        Conflict: the element is disabled, covered or not visible.
    """
    target = await find(page_handle, element_id)
    if target.disabled:
        raise Conflict(f"{label(target)} is disabled: it cannot be acted on")
    if not target.in_viewport or target.covered_by:
        try:
            target = await target.scroll_into_view()
            if await is_barred(target) and await page_handle.settler.call("changed", _COVER_MS):
                # The cover may be disappearing.
                await page_handle.settler.settle()
                target = await page_handle.observer.resolve(target.id)
        except ElementGone as gone:
            raise NotFound(str(gone)) from None
    if not target.in_viewport:
        raise Conflict(
            f"{label(target)} is hidden or has no size: it cannot be brought "
            "into view; if it takes keys, press one on it instead"
        )
    if target.passes and await _hit_test(target) != "part":
        raise Conflict(
            f"{label(target)} lets the mouse through (pointer-events: none): "
            "a click would not reach it; press a key on it instead"
        )
    met = await _hit_test(target) if target.covered_by else "part"
    if met == "around":
        raise Conflict(
            f"{label(target)} is not visible in its place: it is clipped by or lies "
            f"behind its container, {quoted(target.covered_by or '')}; open that first"
        )
    if met != "part":
        raise Conflict(
            f"{label(target)} is covered by {quoted(target.covered_by or '')}: "
            "close or move that first"
        )
    return target


async def is_barred(target: Target) -> bool:
    """Return whether a click at the element's place would reach another control."""
    return target.covered_by is not None and await _hit_test(target) != "part"


async def _hit_test(target: Target) -> str:
    """Return what the mouse meets in the element's place; see `hitTest` in observe/js."""
    try:
        return str(await target.call("hitTest"))
    except ElementGone as gone:
        raise NotFound(str(gone)) from None


async def click_at(
    page_handle: PageHandle,
    x: float,
    y: float,
    button: Any = "left",
    count: int = 1,
    hold: float = 0.0,
) -> None:
    """Move the mouse to a point and click; hold the button for so many seconds."""
    await page_handle.move_mouse(x, y)
    await _press_checked(page_handle, button, count, hold)


async def click(
    page_handle: PageHandle,
    target: Target,
    button: Any = "left",
    count: int = 1,
    hold: float = 0.0,
) -> None:
    """Click an element: move the mouse there, and follow the element if that moves it.

    Args:
        page_handle: the page.
        target: the element.
        button: "left", "right" or "middle".
        count: number of clicks.
        hold: seconds for which the button is held.

    Raises:
        NotFound, Conflict: under the mouse it vanished, or something covered it.
    """
    for attempt in range(_CLICK_ATTEMPTS):
        if page_handle.mouse_at != (target.x, target.y, page_handle.activity.commits):
            await page_handle.move_mouse(target.x, target.y)
        elif not attempt:
            break
        try:
            now = await page_handle.observer.resolve(target.id)
        except ElementGone as gone:
            raise NotFound(str(gone)) from None
        near = abs(now.x - target.x) <= 1 and abs(now.y - target.y) <= 1
        if near and now.in_viewport and not await is_barred(now):
            break
        if attempt == _CLICK_ATTEMPTS - 1:
            await _click_moving(page_handle, now, button, count)
            return
        # It moved or changed under the mouse. Wait for that, and for pictures, which have no size
        # before they are loaded.
        await page_handle.settler.settle()
        await page_handle.settler.wait_for_images(_PICTURE_SECONDS)
        target = await reach(page_handle, str(target.id))
    await _press_checked(page_handle, button, count, hold)


async def _click_moving(page_handle: PageHandle, target: Target, button: Any, count: int) -> None:
    """Click an element that keeps moving, and check that the click reached it.

    Raises:
        Conflict: it did not.
    """
    await target.expect_press()
    await _press_button_at(page_handle, target, button, count)
    missed = await target.missed_press()
    if missed is not None:
        raise Conflict(f"{label(target)} keeps moving: the click went to {missed} instead")


async def _press_button_at(
    page_handle: PageHandle, target: Target, button: Any, count: int
) -> None:
    # No check between moving and pressing: the element would move on meanwhile.
    await page_handle.before_input()
    page_handle.mouse_at = None
    moving = page_handle.page.mouse.move(target.x, target.y)
    await asyncio.gather(moving, _press_button(page_handle, button, count))


async def _press_checked(
    page_handle: PageHandle, button: Any, count: int, hold: float = 0.0
) -> None:
    await page_handle.before_input()
    if hold:
        await _hold_button(page_handle, button, hold)
    else:
        await _press_button(page_handle, button, count)


async def _hold_button(page_handle: PageHandle, button: Any, seconds: float) -> None:
    mouse = page_handle.page.mouse
    await mouse.down(button=button)
    try:
        await asyncio.sleep(seconds)
    finally:
        await mouse.up(button=button)


async def _press_button(page_handle: PageHandle, button: Any, count: int) -> None:
    mouse = page_handle.page.mouse
    for number in range(1, count + 1):
        # Sent together, so that nothing comes between.
        await asyncio.gather(
            mouse.down(button=button, click_count=number),
            mouse.up(button=button, click_count=number),
        )
