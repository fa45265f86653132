"""Reaching an element with the mouse: found by its id, brought into view, hit where it is."""

from __future__ import annotations

import asyncio
from typing import Any

from web_server.errors import BadRequest, Conflict, NotFound
from web_server.observe.target import ElementGone, Target
from web_server.quoting import quoted
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

_APPROACHES = 5
_PICTURE_SECONDS = 3.0
_COVER_MS = 300


def describe(target: Target) -> str:
    """An element as a person would name it: role and name."""
    return f"{target.role} '{one_line(target.name)[:80]}'" if target.name else target.role


def element_number(element_id: str) -> str:
    """A `targetId` as plain digits, if it is a number in one of the ways that clients write it."""
    return element_id.strip().strip("[]").removesuffix(".0")


def number_of(element_id: str, field: str = "targetId") -> int:
    """Return an element's id as a number.

    Args:
        element_id: as the client wrote it.
        field: where the client wrote it.

    Raises:
        BadRequest: it is not a number.
        NotFound: the number is too long for an element's id.
    """
    text = element_number(element_id)
    if not text:
        raise BadRequest(f"{field} is missing: give the number that stands before the element")
    if not text.isdecimal():
        asked = one_line(element_id)[:40]
        raise BadRequest(
            f"{field} must be the number that stands before an element, or role and name such as "
            f"button 'Save'; not '{asked}'"
        )
    if len(text) > 15:
        raise NotFound(f"{field}: there is no element [{text[:15]}...] on the page")
    return int(text)


async def find(page_handle: PageHandle, element_id: str, field: str = "targetId") -> Target:
    """Return the element of that id.

    Args:
        surface: the page that it is on.
        element_id: as the client wrote it.
        field: where the client wrote it.

    Raises:
        BadRequest, NotFound: see `number_of`.
        NotFound: no such element was shown, or it is gone.
    """
    number = number_of(element_id, field)
    try:
        return await page_handle.observer.resolve(number)
    except ElementGone as gone:
        raise NotFound(str(gone)) from None


async def reach(page_handle: PageHandle, element_id: str) -> Target:
    """The element of that id, scrolled into view, with nothing above it.

    Raises:
        BadRequest, NotFound: see `find`.
        Conflict: it is disabled, covered, or cannot be seen.
    """
    target = await find(page_handle, element_id)
    if target.disabled:
        raise Conflict(f"[{target.id}] {describe(target)} is disabled: it cannot be acted on")
    if not target.in_viewport or target.covered_by:
        try:
            target = await target.scroll_into_view()
            if await is_barred(target) and await page_handle.settler.call("changed", _COVER_MS):
                # What covers it may be on its way out.
                await page_handle.settler.settle()
                target = await page_handle.observer.resolve(target.id)
        except ElementGone as gone:
            raise NotFound(str(gone)) from None
    if not target.in_viewport:
        raise Conflict(
            f"[{target.id}] {describe(target)} is hidden or has no size: it cannot be brought "
            "into view; if it takes keys, press one on it instead"
        )
    if target.passes and await _hit_test(target) != "part":
        raise Conflict(
            f"[{target.id}] {describe(target)} lets the mouse through (pointer-events: none): "
            "a click would not reach it; press a key on it instead"
        )
    met = await _hit_test(target) if target.covered_by else "part"
    if met == "around":
        raise Conflict(
            f"[{target.id}] {describe(target)} is not shown where it stands: it is clipped or "
            f"behind what it lies in, {quoted(target.covered_by or '')}; something may have to be "
            "opened"
        )
    if met != "part":
        raise Conflict(
            f"[{target.id}] {describe(target)} is covered by {quoted(target.covered_by or '')}: "
            "close or move that first"
        )
    return target


async def is_barred(target: Target) -> bool:
    """Whether a click at the element's place would go to something else than its control."""
    return target.covered_by is not None and await _hit_test(target) != "part"


async def _hit_test(target: Target) -> str:
    """What the pointer hits in place of a covered element; see `hitTest` in observe/js."""
    try:
        return str(await target.call("hitTest"))
    except ElementGone as gone:
        raise NotFound(str(gone)) from None


async def click_at(
    page_handle: PageHandle, x: float, y: float, button: Any = "left", count: int = 1
) -> None:
    """Move the mouse there and click."""
    await page_handle.move_mouse(x, y)
    await _press_checked(page_handle, button, count)


async def click(
    page_handle: PageHandle, target: Target, button: Any = "left", count: int = 1
) -> None:
    """Click an element, at the place where it is once the mouse has come there.

    Raises:
        NotFound, Conflict: the coming of the mouse made it vanish, or brought something above it.
    """
    for attempt in range(_APPROACHES):
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
        if attempt == _APPROACHES - 1:
            await _click_moving(page_handle, now, button, count)
            return
        # It moved, or shows something else under the mouse: what that started comes first, be it
        # a picture that has no size as long as it is not there.
        await page_handle.settler.settle()
        await page_handle.settler.wait_for_images(_PICTURE_SECONDS)
        target = await reach(page_handle, str(target.id))
    await _press_checked(page_handle, button, count)


async def _click_moving(page_handle: PageHandle, target: Target, button: Any, count: int) -> None:
    """Click what does not stay where it is, and see whether it was hit.

    Raises:
        Conflict: it was not.
    """
    await target.expect_press()
    await _press_button_at(page_handle, target, button, count)
    missed = await target.missed_press()
    if missed is not None:
        raise Conflict(
            f"[{target.id}] {describe(target)} keeps moving: the click went to {missed} instead"
        )


async def _press_button_at(
    page_handle: PageHandle, target: Target, button: Any, count: int
) -> None:
    # No look between moving and pressing: each takes a moment in which it moves on.
    await page_handle.before_input()
    page_handle.mouse_at = None
    moving = page_handle.page.mouse.move(target.x, target.y)
    await asyncio.gather(moving, _press_button(page_handle, button, count))


async def _press_checked(page_handle: PageHandle, button: Any, count: int) -> None:
    await page_handle.before_input()
    await _press_button(page_handle, button, count)


async def _press_button(page_handle: PageHandle, button: Any, count: int) -> None:
    mouse = page_handle.page.mouse
    for number in range(1, count + 1):
        # Sent at once, carried out in order: nothing comes between.
        await asyncio.gather(
            mouse.down(button=button, click_count=number),
            mouse.up(button=button, click_count=number),
        )
