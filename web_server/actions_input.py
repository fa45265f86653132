"""Actions that put something into fields: text, choices, files; and the keyboard's keys."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from web_server import custom_lists, editors, fields, hands, keys, usage
from web_server.doing import Doing
from web_server.errors import BadRequest, Conflict
from web_server.observe import ElementGone, Target
from web_server.surface import Surface
from web_server.view import one_line


async def type_text_into(doing: Doing) -> str:
    """Replace the content of a field; Enter follows if asked for."""
    text = doing.request.actionValue or doing.request.text
    target, how, came = await _fill(doing, text)
    said = f"typed '{one_line(text)[:80]}' into {hands.describe(target)}{came}"
    if doing.request.needEnter:
        said += await fields.press_enter(doing.surface, target, how)
    return said


async def clear(doing: Doing) -> str:
    """Empty a field."""
    target, _, came = await _fill(doing, "")
    return f"cleared {hands.describe(target)}{came}"


async def _fill(doing: Doing, text: str) -> tuple[Target, str, str]:
    """Replace the content of a field.

    Returns:
        the field, how it takes text (see `usage.check`), and a remark on the result.
    """
    surface = doing.surface
    use = await usage.check(surface, doing.request.targetId, "text")
    how = use["how"]
    if how == "select":
        target = await hands.find(surface, use["id"])
        await fields.choose(target, [text])
        return target, how, ""
    if how == "editor":
        target = await hands.find(surface, use["id"])
        if await editors.fill(surface, target, text):
            return target, how, ""
    target = await hands.reach(surface, use["id"])
    return target, how, await fields.fill(surface, target, how, text)


async def select(doing: Doing) -> str:
    """Choose options by label or value, in native and in other lists."""
    request, surface = doing.request, doing.surface
    wanted = request.values or ([request.actionValue] if request.actionValue else [])
    use = await usage.check(surface, request.targetId, "list")
    target = await hands.find(surface, use["id"])
    if not wanted and target.tag != "option":
        raise BadRequest("select needs the option's label as actionValue (or several as values)")
    if use["how"] == "native":
        done = await fields.choose_kept(surface, target, wanted)
        return f"{done} in {hands.describe(target)}"
    if len(wanted) != 1:
        raise Conflict(f"[{target.id}] {hands.describe(target)} is no native list: click its items")
    if (value := await fields.suggested(target, wanted[0])) is not None:
        field = await usage.check(surface, use["id"], "text")
        target = await hands.reach(surface, field["id"])
        came = await fields.fill(surface, target, field["how"], value)
        return f"selected '{one_line(value)}' in {hands.describe(target)}{came}"
    return await custom_lists.choose(surface, use, wanted[0])


async def check(doing: Doing) -> str:
    """Switch a check box or its like on."""
    return await _set_checked(doing, True)


async def uncheck(doing: Doing) -> str:
    """Switch a check box or its like off."""
    return await _set_checked(doing, False)


async def _set_checked(doing: Doing, wanted: bool) -> str:
    word = "on" if wanted else "off"
    surface, element_id = doing.surface, doing.request.targetId
    use = await usage.check(surface, element_id, "toggle")
    if use["on"] == wanted:
        return f"{hands.describe(await hands.find(surface, use['id']))} is {word} already"
    target = await hands.reach(surface, use["id"])
    name = hands.describe(target)
    if use["radio"] and not wanted:
        raise Conflict(f"[{target.id}] {name} is a radio button: choose another one instead")
    await hands.click(surface, target)
    for attempt in (1, 2):
        try:
            use = await surface.observer.usage(target.id, "toggle")
        except ElementGone:
            return f"clicked {name}, which vanished then"
        if use.get("on") == wanted:
            return f"switched {name} {word}"
        if attempt == 1:  # a page that asks its own state first switches it a moment later
            await surface.settler.settle()
    raise Conflict(f"[{target.id}] {name} did not switch {word} when clicked")


async def press(doing: Doing) -> str:
    """Press chords, at the focus or on an element."""
    request = doing.request
    chords = request.keys or [request.actionValue or request.text]
    for chord in chords:
        keys.chord(chord)
    if request.targetId.strip():
        await usage.check(doing.surface, request.targetId, "focus")
    activity = doing.surface.activity
    commits = activity.commits
    copied: str | None = None
    for number, chord in enumerate(chords):
        if activity.commits != commits:
            done = ", ".join(one_line(each) or "Space" for each in chords[:number])
            return f"pressed {done}; not the rest, as the page went elsewhere"
        if number:  # a page may listen for the next key only once it has drawn what this one did
            await doing.surface.settler.call("still", fields.BETWEEN_KEYS_MS)
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
    surface = doing.surface
    text = doing.request.text or doing.request.actionValue
    focus = await surface.observer.focus()
    pressing = doing.request.needEnter or " " in text or "\n" in text
    if focus["kind"] == "control" and pressing:
        raise Conflict(
            f"{fields.named(focus)} has the focus and takes no text; a space or Enter would press "
            "it: click the field or the place for the text first"
        )
    await fields.type_keys(surface, text, field=focus["kind"] == "field")
    if doing.request.needEnter:
        await surface.press_key("Enter")
    said = f"typed '{one_line(text)[:80]}'"
    if "id" not in focus:
        return f"{said}; no element has the focus"
    return f"{said} {'into' if focus['kind'] == 'field' else 'at'} {fields.named(focus)}"


async def upload(doing: Doing) -> str:
    """Give files to a file field: the one named, or the one that the named element stands for."""
    surface, request = doing.surface, doing.request
    if not request.targetId.strip():
        return await _upload_chosen(doing)
    use = await usage.check(surface, request.targetId, "file")
    if use["how"] == "other" and surface.open_chooser is not None:
        return await _upload_chosen(doing)
    target = await hands.find(surface, use["id"])
    name = f"[{target.id}] {hands.describe(target)}"
    if len(request.files) > 1 and not use.get("several", True):
        raise Conflict(f"{name} takes one file, not {len(request.files)}: upload one")
    files = await doing.session.uploads.keep(request.files)
    names = ", ".join(file.name for file in files) or "no file"
    if use["how"] == "file":
        handle = await target.handle()
        await handle.set_input_files(files)
        return f"gave {names} to {hands.describe(target)}"
    # it may be a place to drop files on, which a button is not
    if not use["pressed"]:
        target = await hands.reach(surface, use["id"])
        if await _drop_files(surface, target, files):
            return f"dropped {names} on {hands.describe(target)}"
    raise Conflict(
        f"{name} is no file field and takes no dropped files: if a click makes the page ask for a "
        "file, click it first, then upload to it"
    )


async def _upload_chosen(doing: Doing) -> str:
    """Give files to the file chooser that the page opened after a click."""
    surface, given = doing.surface, doing.request.files
    chooser = surface.open_chooser
    if chooser is None:
        raise Conflict(
            "the page asks for no file now: first click the button or field that asks for one"
        )
    if len(given) > 1 and not chooser.several:
        raise Conflict(f"the page takes one file, not {len(given)}: upload one")
    files = await doing.session.uploads.keep(given)
    if not await surface.answer_chooser(chooser, files):
        raise Conflict("the file field that the page opened is gone: click what opens it again")
    names = ", ".join(file.name for file in files) or "no file"
    return f"gave {names} to the file chooser that the page opened"


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
