"""Actions that put something into fields: text, choices, files; and the keyboard's keys."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from web_server.actions import custom_lists, editors, fields, keys, pointer
from web_server.actions.action_context import ActionContext
from web_server.actions.preconditions import check_usage
from web_server.actions.registry import action
from web_server.errors import BadRequest, Conflict
from web_server.observe.target import ElementGone, Target
from web_server.session.page_handle import PageHandle
from web_server.view import one_line


@action("type", purpose="text", has_steps=True, sends_keys=True)
async def type_text_into(context: ActionContext) -> str:
    """Replace the content of a field; Enter follows if asked for."""
    text = context.request.actionValue or context.request.text
    target, how, came = await _fill(context, text)
    said = f"typed '{one_line(text)[:80]}' into {pointer.describe(target)}{came}"
    if context.request.needEnter:
        said += await fields.press_enter(context.page_handle, target, how)
    return said


@action("clear", purpose="text", has_steps=True)
async def clear(context: ActionContext) -> str:
    """Empty a field."""
    target, _, came = await _fill(context, "")
    return f"cleared {pointer.describe(target)}{came}"


async def _fill(context: ActionContext, text: str) -> tuple[Target, str, str]:
    """Replace the content of a field.

    Returns:
        the field, how it takes text (see `check_usage`), and a remark on the result.
    """
    page_handle = context.page_handle
    use = await check_usage(page_handle, context.request.targetId, "text")
    how = use["how"]
    if how == "select":
        target = await pointer.find(page_handle, use["id"])
        await fields.choose(target, [text])
        return target, how, ""
    if how == "editor":
        target = await pointer.find(page_handle, use["id"])
        if await editors.fill(page_handle, target, text):
            return target, how, ""
    target = await pointer.reach(page_handle, use["id"])
    return target, how, await fields.fill(page_handle, target, how, text)


@action("select", "select_option", aim="mouse", purpose="list", has_steps=True)
async def select(context: ActionContext) -> str:
    """Choose options by label or value, in native and in other lists."""
    request, page_handle = context.request, context.page_handle
    wanted = request.values or ([request.actionValue] if request.actionValue else [])
    use = await check_usage(page_handle, request.targetId, "list")
    target = await pointer.find(page_handle, use["id"])
    if not wanted and target.tag != "option":
        raise BadRequest("select needs the option's label as actionValue (or several as values)")
    if use["how"] == "native":
        done = await fields.choose_kept(page_handle, target, wanted)
        return f"{done} in {pointer.describe(target)}"
    if len(wanted) != 1:
        raise Conflict(
            f"[{target.id}] {pointer.describe(target)} is not a native list: select one value"
        )
    if (value := await fields.suggested(target, wanted[0])) is not None:
        field = await check_usage(page_handle, use["id"], "text")
        target = await pointer.reach(page_handle, field["id"])
        came = await fields.fill(page_handle, target, field["how"], value)
        return f"selected '{one_line(value)}' in {pointer.describe(target)}{came}"
    return await custom_lists.choose(page_handle, use, wanted[0])


@action("check", aim="mouse", purpose="toggle")
async def check(context: ActionContext) -> str:
    """Switch a check box or its like on."""
    return await _set_checked(context, True)


@action("uncheck", aim="mouse", purpose="toggle")
async def uncheck(context: ActionContext) -> str:
    """Switch a check box or its like off."""
    return await _set_checked(context, False)


async def _set_checked(context: ActionContext, wanted: bool) -> str:
    word = "on" if wanted else "off"
    page_handle, element_id = context.page_handle, context.request.targetId
    use = await check_usage(page_handle, element_id, "toggle")
    if use["on"] == wanted:
        return f"{pointer.describe(await pointer.find(page_handle, use['id']))} is {word} already"
    target = await pointer.reach(page_handle, use["id"])
    name = pointer.describe(target)
    if use["radio"] and not wanted:
        raise Conflict(f"[{target.id}] {name} is a radio button: choose another one instead")
    await pointer.click(page_handle, target)
    for attempt in (1, 2):
        try:
            use = await page_handle.observer.usage(target.id, "toggle")
        except ElementGone:
            return f"clicked {name}, which vanished then"
        if use.get("on") == wanted:
            return f"switched {name} {word}"
        if attempt == 1:  # a page that asks its own state first switches it a moment later
            await page_handle.settler.settle()
    raise Conflict(f"[{target.id}] {name} did not switch {word} when clicked")


@action("press", aim="keys", expects_change=True, sends_keys=True)
async def press(context: ActionContext) -> str:
    """Press chords, at the focus or on an element."""
    request = context.request
    chords = request.keys or [request.actionValue or request.text]
    for chord in chords:
        keys.chord(chord)
    if request.targetId.strip():
        await check_usage(context.page_handle, request.targetId, "focus")
    activity = context.page_handle.activity
    commits = activity.commits
    copied: str | None = None
    for number, chord in enumerate(chords):
        if activity.commits != commits:
            done = ", ".join(one_line(each) or "Space" for each in chords[:number])
            return f"pressed {done}; not the rest, as the page went elsewhere"
        if number:  # a page may listen for the next key only once it has drawn what this one did
            await context.page_handle.settler.call("still", fields.BETWEEN_KEYS_MS)
        copied = await _press_one(context, chord)
    said = f"pressed {', '.join(one_line(chord) or 'Space' for chord in chords)}"
    return said if copied is None else f"{said}, which copied {_quoted(copied)}"


async def _press_one(context: ActionContext, chord: str) -> str | None:
    """Press a chord; what it copied if it is one that copies, else None."""
    session = context.session

    def press() -> Awaitable[None]:
        return keys.press(context.page_handle, chord)

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


@action("type_text", aim="focus", expects_change=True, has_steps=True, sends_keys=True)
async def type_text(context: ActionContext) -> str:
    """Type at the focus."""
    page_handle = context.page_handle
    text = context.request.text or context.request.actionValue
    focus = await page_handle.observer.focus()
    pressing = context.request.needEnter or " " in text or "\n" in text
    if focus["kind"] == "control" and pressing:
        raise Conflict(
            f"{fields.named(focus)} has the focus and takes no text; a space or Enter would press "
            "it: click the field or the place for the text first"
        )
    await fields.type_keys(page_handle, text, field=focus["kind"] == "field")
    if context.request.needEnter:
        await page_handle.press_key("Enter")
    said = f"typed '{one_line(text)[:80]}'"
    if "id" not in focus:
        return f"{said}; no element has the focus"
    return f"{said} {'into' if focus['kind'] == 'field' else 'at'} {fields.named(focus)}"


@action("upload", purpose="file", has_steps=True)
async def upload(context: ActionContext) -> str:
    """Give files to a file field: the one named, or the one that the named element stands for."""
    page_handle, request = context.page_handle, context.request
    if not request.targetId.strip():
        return await _upload_chosen(context)
    use = await check_usage(page_handle, request.targetId, "file")
    if use["how"] == "other" and page_handle.choosers.open is not None:
        return await _upload_chosen(context)
    target = await pointer.find(page_handle, use["id"])
    name = f"[{target.id}] {pointer.describe(target)}"
    if len(request.files) > 1 and not use.get("several", True):
        raise Conflict(f"{name} takes one file, not {len(request.files)}: upload one")
    files = await context.session.uploads.keep(request.files)
    names = ", ".join(file.name for file in files) or "no file"
    if use["how"] == "file":
        handle = await target.handle()
        await handle.set_input_files(files)
        return f"gave {names} to {pointer.describe(target)}"
    # it may be a place to drop files on, which a button is not
    if not use["pressed"]:
        target = await pointer.reach(page_handle, use["id"])
        if await _drop_files(page_handle, target, files):
            return f"dropped {names} on {pointer.describe(target)}"
    raise Conflict(
        f"{name} is no file field and takes no dropped files: if a click makes the page ask for a "
        "file, click it first, then upload to it"
    )


async def _upload_chosen(context: ActionContext) -> str:
    """Give files to the file chooser that the page opened after a click."""
    page_handle, given = context.page_handle, context.request.files
    chooser = page_handle.choosers.open
    if chooser is None:
        raise Conflict(
            "the page asks for no file now: first click the button or field that asks for one"
        )
    if len(given) > 1 and not chooser.several:
        raise Conflict(f"the page takes one file, not {len(given)}: upload one")
    files = await context.session.uploads.keep(given)
    if not await page_handle.choosers.answer(chooser, files):
        raise Conflict("the file field that the page opened is gone: click what opens it again")
    names = ", ".join(file.name for file in files) or "no file"
    return f"gave {names} to the file chooser that the page opened"


async def _drop_files(page_handle: PageHandle, target: Target, files: list[Path]) -> bool:
    """Drag files from outside onto an element; False if the page does not take them."""
    drag: dict[str, Any] = {
        "x": target.x,
        "y": target.y,
        "data": {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1},
    }
    send = page_handle.activity.cdp.send
    await target.call("expectDrop")
    await send("Input.dispatchDragEvent", {"type": "dragEnter", **drag})
    await send("Input.dispatchDragEvent", {"type": "dragOver", **drag})
    # Without a page that takes it, Chromium would open the file itself.
    taken = await target.call("acceptsDrop")
    await send("Input.dispatchDragEvent", {"type": "drop" if taken else "dragCancel", **drag})
    return bool(taken)
