"""What `performAction` can do: one function for each `actionName`.

A function gets a `Doing`, does it, and returns what it did in a few words. What the page made of
it is told by the caller, after the page has settled.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from playwright.async_api import FilePayload

from web_server import hands
from web_server.contract import ACTION_NAMES, PerformAction, UploadFile
from web_server.errors import BadRequest, Conflict, NotFound
from web_server.page import Tab
from web_server.reading import find_lines, read_page
from web_server.session import Session
from web_server.surface import Surface
from web_server.view import one_line

WAIT_SECONDS = 5.0
"""How long `wait` waits for something to change on the page."""
FIND_SECONDS = 10.0
"""How long `wait_for` waits for its text, unless it is told."""
_UPLOAD_LIMIT = 50_000_000


@dataclass
class Doing:
    """One action at work.

    Attributes:
        session: the leased browser.
        tab: the page acted on; an action may exchange it for another.
        request: the action's arguments.
    """

    session: Session
    tab: Tab
    request: PerformAction

    @property
    def surface(self) -> Surface:
        """The Playwright page acted on."""
        return self.tab.surface

    def point(self) -> tuple[float, float]:
        """The request's point.

        Raises:
            BadRequest: x or y is missing, or outside of the viewport.
        """
        x, y = self.request.x, self.request.y
        if x is None or y is None:
            raise BadRequest(f"{self.request.actionName} needs x and y, in pixels of the viewport")
        width, height = self.session.viewport
        if not (0 <= x < width and 0 <= y < height):
            raise BadRequest(f"({x:g}, {y:g}) is outside of the viewport, {width} x {height}")
        return x, y


async def click(doing: Doing) -> str:
    target = await hands.reach(doing.surface, doing.request.targetId)
    if target.tag == "option" and (done := await hands.choose(target, [])):
        return done
    if target.tag == "select":
        # A native menu opens outside of the page, where nothing can be seen or clicked.
        await target.evaluate("(element) => element.focus()")
        return f"focused {hands.describe(target)}: choose with the action select"
    held = hands.modifiers(doing.request.keys)
    await _holding(
        doing, held, hands.click_at(doing.surface, target.x, target.y, doing.request.button)
    )
    return f"clicked {hands.describe(target)}"


async def type_text_into(doing: Doing) -> str:
    target = await hands.reach(doing.surface, doing.request.targetId)
    text = doing.request.actionValue or doing.request.text
    await hands.fill(doing.surface, target, text)
    said = f"typed '{one_line(text)[:80]}' into {hands.describe(target)}"
    if doing.request.needEnter:
        await doing.surface.page.keyboard.press("Enter")
        said += " and pressed Enter"
    return said


async def clear(doing: Doing) -> str:
    target = await hands.reach(doing.surface, doing.request.targetId)
    await hands.fill(doing.surface, target, "")
    return f"cleared {hands.describe(target)}"


async def select(doing: Doing) -> str:
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
            await hands.click_at(surface, target.x, target.y)
            await surface.activity.settle()
        observed = await surface.observer.observe(scope="page", elements=True)
        item = _item_named(observed.elements, label)
        if item is not None:
            found = await hands.reach(surface, item)
            await hands.click_at(surface, found.x, found.y)
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
    return await _set_checked(doing, True)


async def uncheck(doing: Doing) -> str:
    return await _set_checked(doing, False)


async def _set_checked(doing: Doing, wanted: bool) -> str:
    word = "on" if wanted else "off"
    target = await hands.reach(doing.surface, doing.request.targetId)
    state = await hands.checked(target)
    if state is None:
        raise Conflict(f"[{target.id}] {hands.describe(target)} cannot be switched on or off")
    if state == wanted:
        return f"{hands.describe(target)} is {word} already"
    await hands.click_at(doing.surface, target.x, target.y)
    if await hands.checked(target) == state:
        raise Conflict(f"[{target.id}] {hands.describe(target)} did not switch {word} when clicked")
    return f"switched {hands.describe(target)} {word}"


async def hover(doing: Doing) -> str:
    target = await hands.reach(doing.surface, doing.request.targetId)
    await doing.surface.page.mouse.move(target.x, target.y)
    return f"moved the mouse over {hands.describe(target)}"


async def press(doing: Doing) -> str:
    request = doing.request
    chords = request.keys or [request.actionValue or request.text]
    if request.targetId.strip():
        target = await hands.find(doing.surface, request.targetId)
        await target.evaluate("(element) => element.focus()")
    for keys in chords:
        await hands.press(doing.surface, keys)
    return f"pressed {', '.join(one_line(keys) or 'Space' for keys in chords)}"


async def type_text(doing: Doing) -> str:
    text = doing.request.text or doing.request.actionValue
    await hands.type_keys(doing.surface, text)
    if doing.request.needEnter:
        await doing.surface.page.keyboard.press("Enter")
    return f"typed '{one_line(text)[:80]}'"


async def drag(doing: Doing) -> str:
    source = await hands.reach(doing.surface, doing.request.targetId)
    if doing.request.toId.strip():
        goal = await hands.find(doing.surface, doing.request.toId)
        if not goal.in_viewport:
            raise Conflict(f"[{goal.id}] {hands.describe(goal)} is out of view: scroll first")
        end, where = (goal.x, goal.y), hands.describe(goal)
    else:
        end = doing.point()
        where = f"({end[0]:g}, {end[1]:g})"
    await _drag(doing, [(source.x, source.y), end])
    return f"dragged {hands.describe(source)} to {where}"


async def drag_path(doing: Doing) -> str:
    points = [(point.x, point.y) for point in doing.request.path]
    if len(points) < 2:
        raise BadRequest("drag_path needs `path`: at least two points {x, y}")
    held = hands.modifiers(doing.request.keys)
    await _holding(doing, held, _drag(doing, points))
    return f"dragged along {len(points)} points"


async def _drag(doing: Doing, points: list[tuple[float, float]]) -> None:
    mouse = doing.surface.page.mouse
    button: Any = doing.request.button
    await mouse.move(*points[0])
    await mouse.down(button=button)
    try:
        for x, y in points[1:]:
            # Drag libraries want to see movement before they believe in a drag.
            await mouse.move(x, y, steps=6 if len(points) == 2 else 2)
    finally:
        await mouse.up(button=button)


async def click_at(doing: Doing) -> str:
    return await _click_point(doing, 1)


async def double_click_at(doing: Doing) -> str:
    return await _click_point(doing, 2)


async def _click_point(doing: Doing, count: int) -> str:
    if doing.request.targetId.strip():
        target = await hands.reach(doing.surface, doing.request.targetId)
        x, y, where = target.x, target.y, hands.describe(target)
    else:
        x, y = doing.point()
        where = f"({x:g}, {y:g})"
    held = hands.modifiers(doing.request.keys)
    clicking = hands.click_at(doing.surface, x, y, doing.request.button, count)
    await _holding(doing, held, clicking)
    return f"{'double-clicked' if count == 2 else 'clicked'} {where}"


async def move(doing: Doing) -> str:
    x, y = doing.point()
    await doing.surface.page.mouse.move(x, y)
    return f"moved the mouse to ({x:g}, {y:g})"


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
    files = [_payload(doing.session, file) for file in doing.request.files]
    if sum(len(file["buffer"]) for file in files) > _UPLOAD_LIMIT:
        raise BadRequest(f"an upload may have {_UPLOAD_LIMIT:,} bytes at most")
    names = ", ".join(file["name"] for file in files) or "no file"
    target = await hands.find(doing.surface, doing.request.targetId)
    if target.tag == "input" and target.input_type == "file":
        handle = await target.handle()
        await handle.set_input_files(files)
        return f"gave {names} to {hands.describe(target)}"
    target = await hands.reach(doing.surface, doing.request.targetId)
    async with doing.surface.page.expect_file_chooser(timeout=3000) as waiting:
        await hands.click_at(doing.surface, target.x, target.y)
    chooser = await waiting.value
    await chooser.set_files(files)
    return f"clicked {hands.describe(target)} and gave it {names}"


def _payload(session: Session, file: UploadFile | str) -> FilePayload:
    """A file's content: sent along, or a download of this very browser."""
    if isinstance(file, UploadFile):
        try:
            content = base64.b64decode(file.buffer, validate=True)
        except (binascii.Error, ValueError):
            raise BadRequest(f"the buffer of file '{file.name}' is not base64") from None
        return {"name": file.name, "mimeType": file.mimeType, "buffer": content}
    parts = PurePosixPath(file).parts
    known = len(parts) == 3 and parts[1] == session.id
    path = session.downloads.file(parts[2]) if known else None
    if path is None:
        raise NotFound(
            "files are sent as {name, mimeType, buffer (base64)}, or named by a path of "
            "downloaded_file_path; no other path is read"
        )
    return {"name": path.name, "mimeType": "application/octet-stream", "buffer": path.read_bytes()}


_DIRECTIONS: dict[str, tuple[float, float]] = {
    "down": (0, 1),
    "up": (0, -1),
    "right": (1, 0),
    "left": (-1, 0),
}
_ENDS: dict[str, tuple[float, float]] = {"top": (0, -1e6), "bottom": (0, 1e6)}


async def scroll(doing: Doing) -> str:
    direction = doing.request.actionValue.strip().lower() or "down"
    if direction not in _DIRECTIONS and direction not in _ENDS:
        known = ", ".join([*_DIRECTIONS, *_ENDS])
        raise BadRequest(f"scroll goes {known}; not '{one_line(direction)[:40]}'")
    if doing.request.targetId.strip():
        return await scroll_in(doing)
    if direction in _ENDS:
        dx, dy = _ENDS[direction]
    else:
        x, y = _DIRECTIONS[direction]
        dx, dy = 0.9 * x, 0.9 * y
    moved = await doing.surface.activity.call("scroll", dx, dy)
    if moved == "none" and direction in _DIRECTIONS:
        # Nothing scrolls by itself: a map or a canvas may listen to the wheel.
        width, height = doing.session.viewport
        mouse = doing.surface.page.mouse
        await mouse.move(width / 2, height / 2)
        await mouse.wheel(dx * width, dy * height)
        return f"turned the wheel {direction}"
    if moved == "end":
        return f"cannot scroll further {direction}"
    return f"scrolled {direction}"


async def scroll_in(doing: Doing) -> str:
    request = doing.request
    target = await hands.find(doing.surface, request.targetId)
    dx, dy = request.x or 0.0, request.y or 0.0
    if not dx and not dy:
        direction = request.actionValue.strip().lower() or "down"
        if direction not in _DIRECTIONS:
            raise BadRequest("scroll_in needs x and y in pixels, or a direction as actionValue")
        x, y = _DIRECTIONS[direction]
        dx, dy = x * 0.9, y * 0.9
    moved = await target.evaluate(
        """(element, [dx, dy]) => {
          for (let box = element; box; box = box.parentElement || box.getRootNode().host) {
            const before = [box.scrollLeft, box.scrollTop];
            const unit = (share, size) => Math.abs(share) < 1 ? share * size : share;
            box.scrollBy({left: unit(dx, box.clientWidth), top: unit(dy, box.clientHeight),
                          behavior: 'instant'});
            if (box.scrollLeft !== before[0] || box.scrollTop !== before[1]) return true;
            if (box !== element && box.scrollHeight > box.clientHeight + 1
                && /auto|scroll/.test(getComputedStyle(box).overflowY)) return false;
          }
          return false;
        }""",
        [dx, dy],
    )
    return f"{'scrolled' if moved else 'cannot scroll further'} in {hands.describe(target)}"


async def scroll_to(doing: Doing) -> str:
    request = doing.request
    element_id = request.targetId.strip()
    text = request.text or request.actionValue
    if not element_id:
        if not text.strip():
            raise BadRequest("scroll_to needs targetId or text")
        found = await find_lines(doing.surface, text, 1)
        if not found:
            raise NotFound(f"the page does not show '{one_line(text)[:80]}'")
        element_id = found[0].element_id
    target = await hands.find(doing.surface, element_id)
    target = await target.scroll_into_view()
    return f"scrolled to {hands.describe(target)}"


async def goback(doing: Doing) -> str:
    return await doing.tab.go_in_history(-1)


async def goforward(doing: Doing) -> str:
    return await doing.tab.go_in_history(1)


async def goto(doing: Doing) -> str:
    url = doing.request.actionValue or doing.request.text
    if not url.strip():
        raise BadRequest("goto needs a URL as actionValue")
    return await doing.tab.goto(url)


async def restart(doing: Doing) -> str:
    return await doing.tab.goto(doing.tab.home)


async def wait(doing: Doing) -> str:
    given = doing.request.timeout
    seconds = WAIT_SECONDS if given is None else given / 1000
    changed = await doing.surface.activity.call("changed", min(seconds, 60.0) * 1000)
    return "waited until something changed" if changed else "waited"


async def wait_for(doing: Doing) -> str:
    request = doing.request
    text = request.text or request.actionValue
    if text.strip():
        limit = FIND_SECONDS * 1000 if request.timeout is None else request.timeout
        limit = min(limit, 60_000)
        if await doing.surface.activity.call("text", text, limit):
            return f"'{one_line(text)[:80]}' is on the page"
        raise Conflict(f"'{one_line(text)[:80]}' did not appear within {limit:g} ms")
    if request.timeout is None:
        raise BadRequest("wait_for needs text, or timeout in ms")
    milliseconds = min(request.timeout, 60_000)
    await asyncio.sleep(milliseconds / 1000)
    return f"waited {milliseconds:g} ms"


async def new_tab(doing: Doing) -> str:
    if not doing.session.follows_tabs:
        raise BadRequest('this browser has one page: ask for tabs with "tabs": true at getBrowser')
    url = doing.request.actionValue or doing.request.text or "about:blank"
    doing.tab = await doing.session.open_tab(url)
    await doing.tab.goto(url)
    return f"opened tab {doing.tab.id}"


async def switch_tab(doing: Doing) -> str:
    wanted = doing.request.actionValue or doing.request.text
    if not wanted.strip():
        raise BadRequest("switch_tab needs the tab's pageId as actionValue")
    doing.tab = doing.session.tab(wanted)
    await doing.tab.surface.page.bring_to_front()
    return f"switched to tab {doing.tab.id}"


async def close_tab(doing: Doing) -> str:
    session = doing.session
    tab = session.tab(doing.request.actionValue) if doing.request.actionValue else doing.tab
    if len(session.tabs) == 1:
        raise Conflict("the last tab is not closed: give the browser back with /closeBrowser")
    await session.close_tab(tab)
    doing.tab = session.tab("")
    return f"closed tab {tab.id}, tab {doing.tab.id} is shown now"


async def read(doing: Doing) -> str:
    return await read_page(doing.surface, doing.request.actionValue)


async def find(doing: Doing) -> str:
    text = doing.request.text or doing.request.actionValue
    if not text.strip():
        raise BadRequest("find needs a text")
    found = await find_lines(doing.surface, text, 30)
    if not found:
        return f"'{one_line(text)[:80]}' is not on the page"
    lines = [line.text for line in found]
    return f"found '{one_line(text)[:80]}' in {len(lines)} lines:\n" + "\n".join(lines)


async def answer_dialog(doing: Doing) -> str:
    value = doing.request.actionValue.strip().lower() or "accept"
    if value not in ("accept", "dismiss"):
        raise BadRequest("answer_dialog takes accept or dismiss as actionValue, and text")
    doing.session.next_answer = (value == "accept", doing.request.text or None)
    return f"the next dialog will be {value}ed"


Action = Callable[[Doing], Coroutine[Any, Any, str]]

_DIFFERENTLY_NAMED: dict[str, Action] = {"type": type_text_into, "select_option": select}

ACTIONS: dict[str, Action] = {
    name: _DIFFERENTLY_NAMED.get(name) or globals()[name] for name in ACTION_NAMES
}

UNSETTLED = frozenset({"read", "find", "answer_dialog"})
"""Actions that change nothing, after which nothing need settle."""


def action_of(request: PerformAction) -> tuple[str, Action]:
    """The name and the function of the request's `actionName`.

    Raises:
        BadRequest: there is none.
    """
    name = request.actionName.strip().lower().replace("-", "_")
    if name not in ACTIONS:
        known = ", ".join(ACTION_NAMES)
        asked = one_line(request.actionName)[:40]
        raise BadRequest(f"unknown actionName '{asked}'; known: {known}")
    return name, ACTIONS[name]
