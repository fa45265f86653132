"""Actions on fields: type, choose, upload; and key presses."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from web_server.actions import custom_lists, fields, keys, native_lists, pointer
from web_server.actions.action_context import ActionContext
from web_server.actions.preconditions import check_usage
from web_server.actions.registry import action
from web_server.actions.typing_keys import (
    BETWEEN_KEYS_MS,
    focus_name,
    press_enter,
    type_keys,
    with_secrets,
)
from web_server.errors import BadRequest, Conflict
from web_server.observe.target import ElementGone, Target
from web_server.session.page_handle import PageHandle
from web_server.view import one_line


@action("type", purpose="text", has_steps=True, sends_keys=True)
async def type_text_into(context: ActionContext) -> str:
    """Replace the content of a field, then press Enter if the request asks for it."""
    text = context.request.actionValue or context.request.text
    target, how, remark = await _fill(context, text)
    done = f"typed '{one_line(text)[:80]}' into {pointer.describe(target)}{remark}"
    if context.request.needEnter:
        done += await press_enter(context.page_handle, target, how)
    return done


@action("clear", purpose="text", has_steps=True)
async def clear(context: ActionContext) -> str:
    """Empty a field."""
    target, _, remark = await _fill(context, "")
    return f"cleared {pointer.describe(target)}{remark}"


async def _fill(context: ActionContext, text: str) -> tuple[Target, str, str]:
    """Replace the content of a field.

    Returns:
        the field, `how` of `check_usage`, and a remark on the result.
    """
    page_handle = context.page_handle
    use = await check_usage(page_handle, context.request.targetId, "text")
    how = use["how"]
    text, check = await with_secrets(context, text)
    if how == "select":
        target = await pointer.find(page_handle, use["id"])
        await native_lists.choose(target, [text])
        return target, how, ""
    if how == "editor":
        target = await pointer.find(page_handle, use["id"])
        if await fields.fill_editor(page_handle, target, text):
            return target, how, ""
    target = await pointer.reach(page_handle, use["id"])
    return target, how, await fields.fill(page_handle, target, how, text, check)


@action("select", "select_option", aim="mouse", purpose="list", has_steps=True)
async def select(context: ActionContext) -> str:
    """Choose options by label or value, in native and custom lists."""
    request, page_handle = context.request, context.page_handle
    labels = request.values or ([request.actionValue] if request.actionValue else [])
    use = await check_usage(page_handle, request.targetId, "list")
    target = await pointer.find(page_handle, use["id"])
    if not labels and target.tag != "option":
        raise BadRequest("select needs the option's label as actionValue (or several as values)")
    if use["how"] == "native":
        done = await native_lists.choose_visibly(page_handle, target, labels)
        return f"{done} in {pointer.describe(target)}"
    if len(labels) != 1:
        raise Conflict(f"{pointer.label(target)} is not a native list: select one value")
    if (value := await native_lists.suggested_value(target, labels[0])) is not None:
        field = await check_usage(page_handle, use["id"], "text")
        target = await pointer.reach(page_handle, field["id"])
        remark = await fields.fill(page_handle, target, field["how"], value)
        return f"selected '{one_line(value)}' in {pointer.describe(target)}{remark}"
    return await custom_lists.choose(page_handle, use, labels[0])


@action("check", aim="mouse", purpose="toggle")
async def check(context: ActionContext) -> str:
    """Switch a check box, switch or toggle button on."""
    return await _set_checked(context, True)


@action("uncheck", aim="mouse", purpose="toggle")
async def uncheck(context: ActionContext) -> str:
    """Switch a check box, switch or toggle button off."""
    return await _set_checked(context, False)


async def _set_checked(context: ActionContext, on: bool) -> str:
    word = "on" if on else "off"
    page_handle, element_id = context.page_handle, context.request.targetId
    use = await check_usage(page_handle, element_id, "toggle")
    if use["on"] == on:
        return f"{pointer.describe(await pointer.find(page_handle, use['id']))} is {word} already"
    target = await pointer.reach(page_handle, use["id"])
    name = pointer.describe(target)
    if use["radio"] and not on:
        raise Conflict(f"{pointer.label(target)} is a radio button: choose another one instead")
    await pointer.click(page_handle, target)
    for attempt in (1, 2):
        try:
            use = await page_handle.observer.usage(target.id, "toggle")
        except ElementGone:
            return f"clicked {name}, which vanished then"
        if use.get("on") == on:
            return f"switched {name} {word}"
        if attempt == 1:  # some pages switch it a moment later
            await page_handle.settler.settle()
    raise Conflict(f"{pointer.label(target)} did not switch {word} when clicked")


@action(
    "press",
    aim="keys",
    expects_change=True,
    sends_keys=True,
    extra_seconds=lambda request: (request.hold or 0) / 1000,
)
async def press(context: ActionContext) -> str:
    """Press chords at the focus, or on an element; hold the last one for `hold` ms."""
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
        if number:  # a page may miss a key that comes before it has drawn the effect of the last
            await context.page_handle.settler.call("still", BETWEEN_KEYS_MS)
        last = number == len(chords) - 1
        copied = await _press_one(context, chord, (request.hold or 0) if last else 0)
    done = f"pressed {', '.join(one_line(chord) or 'Space' for chord in chords)}"
    return done if copied is None else f"{done}, which copied {_quoted(copied)}"


async def _press_one(context: ActionContext, chord: str, hold_ms: float) -> str | None:
    """Press a chord, held for `hold_ms`; return what it copied, or None if it does not copy."""
    session = context.session

    def press() -> Awaitable[None]:
        return keys.press(context.page_handle, chord, hold_ms)

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
    given = context.request.text or context.request.actionValue
    text, check = await with_secrets(context, given)
    focus = await page_handle.observer.focus()
    pressing = context.request.needEnter or " " in text or "\n" in text
    if focus["kind"] == "control" and pressing:
        raise Conflict(
            f"{focus_name(focus)} has the focus and takes no text; a space or Enter would press "
            "it: click the field or the place for the text first"
        )
    await type_keys(page_handle, text, field=focus["kind"] == "field", check=check)
    if context.request.needEnter:
        await page_handle.press_key("Enter")
    done = f"typed '{one_line(given)[:80]}'"
    if "id" not in focus:
        return f"{done}; no element has the focus"
    return f"{done} {'into' if focus['kind'] == 'field' else 'at'} {focus_name(focus)}"


@action("upload", purpose="file", has_steps=True)
async def upload(context: ActionContext) -> str:
    """Give files to a file field, to the field that the element stands for, or drop them."""
    page_handle, request = context.page_handle, context.request
    if not request.targetId.strip():
        return await _upload_chosen(context)
    use = await check_usage(page_handle, request.targetId, "file")
    if use["how"] == "other" and page_handle.choosers.open is not None:
        return await _upload_chosen(context)
    target = await pointer.find(page_handle, use["id"])
    name = pointer.label(target)
    if len(request.files) > 1 and not use.get("several", True):
        raise Conflict(f"{name} takes one file, not {len(request.files)}: upload one")
    files = await context.session.uploads.keep(request.files)
    names = ", ".join(file.name for file in files) or "no file"
    if use["how"] == "file":
        handle = await target.handle()
        await handle.set_input_files(files)
        return f"gave {names} to {pointer.describe(target)}"
    if not use["pressed"]:  # a button is not a place to drop files on
        target = await pointer.reach(page_handle, use["id"])
        if await _drop_files(page_handle, target, files):
            return f"dropped {names} on {pointer.describe(target)}"
    raise Conflict(
        f"{name} is not a file field and accepts no dropped files: if a click makes the page ask "
        "for a file, click it first, then upload to it"
    )


async def _upload_chosen(context: ActionContext) -> str:
    """Give files to the file chooser that the page opened after a click."""
    page_handle, given = context.page_handle, context.request.files
    chooser = page_handle.choosers.open
    if chooser is None:
        raise Conflict(
            "the page does not ask for a file now: first click the button or field that does"
        )
    if len(given) > 1 and not chooser.several:
        raise Conflict(f"the page takes one file, not {len(given)}: upload one")
    files = await context.session.uploads.keep(given)
    if not await page_handle.choosers.answer(chooser, files):
        raise Conflict("the page removed the file field that it opened: click what opens it again")
    names = ", ".join(file.name for file in files) or "no file"
    return f"gave {names} to the file chooser that the page opened"


async def _drop_files(page_handle: PageHandle, target: Target, files: list[Path]) -> bool:
    """Drag files from outside onto an element; return False if the page does not accept them."""
    drag: dict[str, Any] = {
        "x": target.x,
        "y": target.y,
        "data": {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1},
    }
    send = page_handle.activity.cdp.send
    await target.call("expectDrop")
    await send("Input.dispatchDragEvent", {"type": "dragEnter", **drag})
    await send("Input.dispatchDragEvent", {"type": "dragOver", **drag})
    # Chromium would open a file that the page does not accept.
    accepted = await target.call("acceptsDrop")
    await send("Input.dispatchDragEvent", {"type": "drop" if accepted else "dragCancel", **drag})
    return bool(accepted)
