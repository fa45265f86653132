"""Actions that put something into fields: text, choices, files; and the keyboard's keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from web_server import editors, fields, hands, keys
from web_server.doing import Doing
from web_server.errors import BadRequest, Conflict
from web_server.observe import ElementGone, Target
from web_server.surface import NOT_BY_FIELD, Surface
from web_server.view import one_line

_BETWEEN_KEYS_MS = 200


async def type_text_into(doing: Doing) -> str:
    """Replace the content of a field; Enter follows if asked for."""
    text = doing.request.actionValue or doing.request.text
    target, came = await _fill(doing, text)
    said = f"typed '{one_line(text)[:80]}' into {hands.describe(target)}{came}"
    if doing.request.needEnter and await fields.takes_enter(target):
        await doing.surface.press_key("Enter")
        said += " and pressed Enter"
    return said


async def clear(doing: Doing) -> str:
    """Empty a field."""
    target, came = await _fill(doing, "")
    return f"cleared {hands.describe(target)}{came}"


async def _fill(doing: Doing, text: str) -> tuple[Target, str]:
    """Replace what the request's field holds: the field, and what is to be said of it."""
    target = await hands.find(doing.surface, doing.request.targetId)
    if await editors.fill(doing.surface, target, text):
        return target, ""
    target = await hands.reach(doing.surface, doing.request.targetId)
    return target, await fields.fill(doing.surface, target, text)


async def select(doing: Doing) -> str:
    """Choose options by label or value, in native and in other lists."""
    request = doing.request
    wanted = request.values or ([request.actionValue] if request.actionValue else [])
    target = await hands.find(doing.surface, request.targetId)
    if not wanted and target.tag != "option":
        raise BadRequest("select needs the option's label as actionValue (or several as values)")
    if done := await fields.choose_kept(doing.surface, target, wanted):
        return f"{done} in {hands.describe(target)}"
    if len(wanted) != 1:
        raise Conflict(f"[{target.id}] {hands.describe(target)} is no native list: click its items")
    if (value := await fields.suggested(target, wanted[0])) is not None:
        target = await hands.reach(doing.surface, request.targetId)
        came = await fields.fill(doing.surface, target, value)
        return f"selected '{one_line(value)}' in {hands.describe(target)}{came}"
    return await _select_custom(doing, wanted[0])


async def _select_custom(doing: Doing, label: str) -> str:
    """Choose in a list made of other elements: click the item of that name.

    If there is none yet, the list is opened, and then, where one may type into it, asked for it.
    """
    surface = doing.surface
    shown: set[str] = set()  # before it was opened
    for attempt in (1, 2, 3):
        target = await hands.reach(surface, doing.request.targetId)
        if attempt == 3 and not (target.editable and target.role == "combobox"):
            break
        if attempt == 2:
            await hands.click(surface, target)
        elif attempt == 3:
            await fields.fill(surface, target, label)
        if attempt > 1:
            await surface.settler.settle()
        observed = await surface.observer.observe(scope="page", elements=True)
        item = _item_named(observed.elements, label, shown)
        shown = shown or {str(element_id) for element_id in observed.elements}
        if item is not None:
            found = await hands.reach(surface, item)
            await hands.click(surface, found)
            return f"selected '{one_line(label)}' in {hands.describe(target)}"
    raise Conflict(
        f"[{doing.request.targetId}] {hands.describe(target)} shows no item '{one_line(label)}': "
        "click it and choose from what appears"
    )


def _item_named(elements: dict[Any, Any], label: str, shown: set[str]) -> str | None:
    """Id of the item of a list or menu with that name, or of what came with that name.

    Args:
        elements: those of the page, by id.
        label: the name, white space and case aside.
        shown: ids of those that were there before the list was opened; empty if it was not.
    """
    roles = ("option", "menuitem", "menuitemradio", "menuitemcheckbox", "treeitem", "listitem")
    wanted = one_line(label).lower()
    named = {
        str(element_id): element.get("role")
        for element_id, element in elements.items()
        if one_line(element.get("name", "")).lower() == wanted
    }
    items = [element_id for element_id, role in named.items() if role in roles]
    came = [element_id for element_id in named if shown and element_id not in shown]
    return next(iter(items + came), None)


async def check(doing: Doing) -> str:
    """Switch a check box or its like on."""
    return await _set_checked(doing, True)


async def uncheck(doing: Doing) -> str:
    """Switch a check box or its like off."""
    return await _set_checked(doing, False)


async def _set_checked(doing: Doing, wanted: bool) -> str:
    word = "on" if wanted else "off"
    target = await hands.reach(doing.surface, doing.request.targetId)
    state = await fields.checked(target)
    if state is None:
        raise Conflict(f"[{target.id}] {hands.describe(target)} cannot be switched on or off")
    if state == wanted:
        return f"{hands.describe(target)} is {word} already"
    await hands.click(doing.surface, target)
    try:
        now = await fields.checked(target)
        if now == state:
            # Pages that ask their own state first switch it a moment later.
            await doing.surface.settler.settle()
            now = await fields.checked(target)
    except ElementGone:
        return f"clicked {hands.describe(target)}, which vanished then"
    if now == state:
        raise Conflict(f"[{target.id}] {hands.describe(target)} did not switch {word} when clicked")
    return f"switched {hands.describe(target)} {word}"


async def press(doing: Doing) -> str:
    """Press chords, at the focus or on an element."""
    request = doing.request
    chords = request.keys or [request.actionValue or request.text]
    if request.targetId.strip():
        target = await hands.find(doing.surface, request.targetId)
        await target.evaluate("(element) => element.focus()")
    activity = doing.surface.activity
    commits = activity.commits
    copied: str | None = None
    for number, chord in enumerate(chords):
        if activity.commits != commits:
            done = ", ".join(one_line(each) or "Space" for each in chords[:number])
            return f"pressed {done}; not the rest, as the page went elsewhere"
        if number:  # a page may listen for the next key only once it has drawn what this one did
            await doing.surface.settler.call("still", _BETWEEN_KEYS_MS)
        copied = await _press_one(doing, chord)
    said = f"pressed {', '.join(one_line(chord) or 'Space' for chord in chords)}"
    return said if copied is None else f"{said}, which copied {_quoted(copied)}"


async def _press_one(doing: Doing, chord: str) -> str | None:
    """Press a chord; what it copied if it is one that copies, else None."""
    session = doing.session

    def press() -> Awaitable[None]:
        return keys.press(doing.surface, chord)

    match keys.clipboard_use(chord):
        case "copy":
            return await session.clipboard.copy(session, press)
        case "paste":
            await session.clipboard.paste(session, press)
        case _:
            await press()
    return None


def _quoted(text: str) -> str:
    return f"'{one_line(text)[:80]}'" if text else "nothing"


async def type_text(doing: Doing) -> str:
    """Type at the focus."""
    text = doing.request.text or doing.request.actionValue
    await fields.type_keys(doing.surface, text)
    if doing.request.needEnter:
        await doing.surface.press_key("Enter")
    return f"typed '{one_line(text)[:80]}'"


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
    if await _give_to_chooser(doing.surface, target, files):
        return f"clicked {hands.describe(target)} and gave it {names}"
    # no chooser: it may be a place to drop files on
    target = await hands.reach(doing.surface, doing.request.targetId)
    if await _drop_files(doing.surface, target, files):
        return f"dropped {names} on {hands.describe(target)}"
    raise Conflict(
        f"[{target.id}] {hands.describe(target)} opens no file chooser and takes no dropped files: "
        "use the file field or button of the form"
    )


async def _give_to_chooser(surface: Surface, target: Target, files: list[Path]) -> bool:
    """Click what opens a file chooser, and answer that; False if none was opened.

    Raises:
        Conflict: it takes one file, and there are several.
    """
    chooser = surface.expect_chooser()
    try:
        await hands.click(surface, target)
        # Whatever the click makes the page do, it has done when the page is at rest.
        settling = asyncio.ensure_future(surface.settler.settle())
        waited: set[asyncio.Future[Any]] = {chooser, settling}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        settling.cancel()
        await asyncio.gather(settling, return_exceptions=True)
        if not chooser.done():
            return False
    finally:
        chooser.cancel()
    opened = chooser.result()
    if not opened.node_id:
        raise Conflict(f"[{target.id}] {hands.describe(target)} asks for a file {NOT_BY_FIELD}")
    if len(files) > 1 and not opened.several:
        raise Conflict(
            f"[{target.id}] {hands.describe(target)} takes one file, not {len(files)}: upload one"
        )
    paths = [str(file) for file in files]
    arguments = {"files": paths, "backendNodeId": opened.node_id}
    await surface.activity.cdp.send("DOM.setFileInputFiles", arguments)
    return True


async def _drop_files(surface: Surface, target: Target, files: list[Path]) -> bool:
    """Drag files from outside onto an element; False if the page does not take them."""
    drag: dict[str, Any] = {
        "x": target.x,
        "y": target.y,
        "data": {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1},
    }
    send = surface.activity.cdp.send
    await target.evaluate(
        """(element) => {
          element.ckOver = null;
          element.ownerDocument.addEventListener('dragover', (event) => {
            element.ckOver = event;
          }, {capture: true, once: true});
        }"""
    )
    await send("Input.dispatchDragEvent", {"type": "dragEnter", **drag})
    await send("Input.dispatchDragEvent", {"type": "dragOver", **drag})
    # Without a page that takes it, Chromium would open the file itself.
    taken = await target.evaluate("(element) => !!element.ckOver?.defaultPrevented")
    await send("Input.dispatchDragEvent", {"type": "drop" if taken else "dragCancel", **drag})
    return bool(taken)
