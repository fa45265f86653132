"""Actions on the text that a field or an editor has: value returns it, edit replaces a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from web_server.actions import fields, pointer
from web_server.actions.action_context import ActionContext
from web_server.actions.content.code_editors import (
    CodeEditor,
    copied_text,
    open_editor,
    paste_all,
)
from web_server.actions.preconditions import Purpose, check_usage
from web_server.actions.registry import action
from web_server.actions.typing_keys import BETWEEN_KEYS_MS
from web_server.errors import BadRequest, Conflict
from web_server.observe.target import Target
from web_server.view import one_line

MAX_VALUE = 5_000_000
"""Longest value that `value` returns, in characters."""


@dataclass
class _Field:
    """A field with its content.

    Attributes:
        target: the field.
        how: how text gets into it, as `check_usage` returned it.
        kind: text, choice, toggle, rich, password, editor or other; as `fieldValue` of observe/js.
        value: the content; empty for a password.
        editor: access to an editor that draws its text, if the page gives it.
    """

    target: Target
    how: str
    kind: str
    value: Any
    editor: CodeEditor | None = None

    @property
    def name(self) -> str:
        return pointer.label(self.target)


@action("value", acts=False, settles=False, purpose="value")
async def value(context: ActionContext) -> str:
    """Return the exact value of a field or an editor as data."""
    field = await _find_field(context, "value")
    if field.kind == "password":
        raise Conflict(f"{field.name} is a password field: its value is not shown")
    if field.kind == "other":
        raise Conflict(f"{field.name} has no value that can be read")
    if isinstance(field.value, str) and len(field.value) > MAX_VALUE:
        raise Conflict(f"the value of {field.name} is longer than {MAX_VALUE:,} characters")
    context.data = {"value": field.value}
    size = f", {len(field.value):,} characters" if isinstance(field.value, str) else ""
    return f"value of {pointer.describe(field.target)}{size}"


@action("edit", purpose="text", has_steps=True)
async def edit(context: ActionContext) -> str:
    """Replace a text in a field or an editor, without typing the rest again."""
    request = context.request
    old, new = (text.replace("\r\n", "\n") for text in (request.actionValue, request.text))
    if not old:
        raise BadRequest("edit needs the text to replace as actionValue, and the new one as text")
    field = await _find_field(context, "text")
    if field.kind not in ("text", "rich", "editor") or field.how == "select":
        raise Conflict(f"{field.name} has no text to edit: use type or select")
    if field.editor is not None and await field.editor.fixed():
        raise Conflict(f"{field.name} is read-only")
    if "\n" in new and field.target.tag == "input":
        raise Conflict(f"{field.name} takes one line")
    at = _place_of(old, field)
    expected = field.value[:at] + new + field.value[at + len(old) :]
    start = _units(field.value[:at])
    await _replace(context, field, start, start + _units(old), new, expected)
    await context.page_handle.settler.call("still", BETWEEN_KEYS_MS)
    now = await _correct(context, field, expected)
    done = f"edited {pointer.describe(field.target)}"
    return done if now == expected else f"{done}; {_difference(now, expected)}"


async def _find_field(context: ActionContext, purpose: Purpose) -> _Field:
    """Return the field of the request with its content."""
    page_handle = context.page_handle
    use = await check_usage(page_handle, context.request.targetId, purpose)
    target = await pointer.find(page_handle, use["id"])
    found = await target.call("fieldValue")
    field = _Field(target, use["how"], found["kind"], found.get("value", ""))
    if field.kind == "editor":
        field.editor = await open_editor(target, found["editor"])
        if field.editor is not None:
            field.value = await field.editor.text()
            return field
    if field.kind == "editor" or (field.how == "editor" and field.kind == "text"):
        field.kind, field.value = "editor", await copied_text(context, target)
    return field


def _place_of(old: str, field: _Field) -> int:
    """Return where a text begins in the value.

    Raises:
        Conflict: it is not there, or there several times.
    """
    count, words = field.value.count(old), f"'{one_line(old)[:80]}'"
    if count == 1:
        return int(field.value.index(old))
    if count:
        raise Conflict(f"{words} is {count} times in {field.name}: give more of the text around it")
    near = "".join(old.split()) in "".join(field.value.split())
    hint = "it has these words with other white space" if near else "value() returns its text"
    raise Conflict(f"{words} is not in {field.name}: {hint}; nothing was done")


def _units(text: str) -> int:
    """Return the length of a text in UTF-16 units, as JavaScript counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


async def _replace(
    context: ActionContext, field: _Field, start: int, end: int, new: str, expected: str
) -> None:
    """Select a part of the text and type over it; where that is impossible, type all of it."""
    page_handle, target = context.page_handle, field.target
    if field.kind == "editor":
        if field.editor is None:
            await paste_all(context, target, expected)
            return
        if field.how != "editor":
            await pointer.reach(page_handle, str(target.id))
        elif not await target.call("focusEditor"):
            raise Conflict(f"{field.name} is covered: nothing was done")
        await field.editor.select(start, end)
    else:
        field.target = target = await pointer.reach(page_handle, str(target.id))
        if field.how == "value":
            await fields.fill(page_handle, target, field.how, expected)
            return
        await pointer.click(page_handle, target)
        if not await target.call("selectPart", start, end):
            await fields.fill(page_handle, target, field.how, expected)
            return
    await page_handle.settler.call("still", BETWEEN_KEYS_MS)  # editors note the selection late
    if field.kind == "editor" and not await target.takes_keys():
        raise Conflict(f"{field.name} lost the focus: nothing was done")
    if new:
        await page_handle.before_key()
        await page_handle.page.keyboard.insert_text(new)
    else:
        await page_handle.press_key("Delete")


async def _correct(context: ActionContext, field: _Field, expected: str) -> str:
    """Return the text after the edit. Undo what an editor added, such as a closing bracket."""
    if field.kind != "editor":
        return str((await field.target.call("fieldValue"))["value"])
    if field.editor is None:
        return await copied_text(context, field.target)
    now = await field.editor.text()
    if now != expected:
        start, end = _common_ends(now, expected)
        middle = expected[start : len(expected) - end]
        await field.editor.replace(_units(now[:start]), _units(now[: len(now) - end]), middle)
        now = await field.editor.text()
    return now


def _common_ends(one: str, other: str) -> tuple[int, int]:
    """Return how many characters two texts share at the beginning and at the end."""
    shortest = min(len(one), len(other))
    start = next((i for i in range(shortest) if one[i] != other[i]), shortest)
    left = shortest - start
    end = next((i for i in range(left) if one[-1 - i] != other[-1 - i]), left)
    return start, end


def _difference(now: str, expected: str) -> str:
    """Return the place where two texts differ, in one line."""
    start, end = _common_ends(now, expected)
    changed = now[max(0, start - 20) : len(now) - end + 20]
    return f"the page changed the text, which has '{one_line(changed)[:80]}' there"
