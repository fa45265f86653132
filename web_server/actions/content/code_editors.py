"""Editors that draw their text: CodeMirror, Monaco, Ace, and others by the clipboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.async_api import JSHandle

from web_server.actions.action_context import ActionContext
from web_server.errors import Conflict
from web_server.javascript import load_script
from web_server.observe.target import Target
from web_server.session.session import Session


class CodeEditor:
    """An editor whose script can be used. Offsets count UTF-16 units; a line break is one.

    Args:
        handle: what a script of `actions/js` returned.
    """

    def __init__(self, handle: JSHandle) -> None:
        self._handle = handle

    async def text(self) -> str:
        """Return the whole text.

        Raises:
            Conflict: the editor returns something else.
        """
        text = await self._handle.evaluate("editor => editor.text()")
        if not isinstance(text, str):
            raise Conflict("the script of the page's editor returns no text")
        return text

    async def fixed(self) -> bool:
        """Return whether the text is read-only."""
        return bool(await self._handle.evaluate("editor => editor.fixed()"))

    async def select(self, start: int, end: int) -> None:
        """Focus the editor and select a part of its text."""
        await self._handle.evaluate("(editor, [a, b]) => editor.select(a, b)", [start, end])

    async def replace(self, start: int, end: int, text: str) -> None:
        """Replace a part of the text by the editor's own function."""
        script = "(editor, [a, b, text]) => { editor.replace(a, b, text) }"
        await self._handle.evaluate(script, [start, end, text])


async def open_editor(target: Target, script: str) -> CodeEditor | None:
    """Return the editor of an element; None if the page does not give access to it.

    Args:
        target: an element of the editor.
        script: the name of its script, as `fieldValue` of observe/js returned it.
    """
    handle = await target.handle()
    found = await handle.evaluate_handle(load_script("actions", script))
    return None if await found.evaluate("found => found === null") else CodeEditor(found)


async def copied_text(context: ActionContext, target: Target) -> str:
    """Return the whole text of another editor, by the keys that select and copy it.

    Raises:
        Conflict: the editor takes no focus, or another session uses the clipboard.
    """
    await _select_all(context, target)
    session = context.session
    with _own_clipboard(session):
        copied = await session.clipboard.copy(session, lambda: _press(context, "c"))
    return copied.replace("\r\n", "\n")


async def paste_all(context: ActionContext, target: Target, text: str) -> None:
    """Replace the whole text of another editor, by the keys that paste.

    Raises:
        Conflict: as for `copied_text`.
    """
    await _select_all(context, target)
    session = context.session
    with _own_clipboard(session):
        session.copied = {"text/plain": text}
        await session.clipboard.paste(session, lambda: _press(context, "v"))


async def _select_all(context: ActionContext, target: Target) -> None:
    if not await target.call("focusEditor"):
        await target.call("focusElement")
    if not await target.takes_keys():
        raise Conflict("the editor takes no focus: nothing was done")
    await context.page_handle.press_key("ControlOrMeta+a")


async def _press(context: ActionContext, key: str) -> None:
    await context.page_handle.press_key(f"ControlOrMeta+{key}")


@contextmanager
def _own_clipboard(session: Session) -> Iterator[None]:
    """Restore what the session has copied."""
    copied = session.copied
    try:
        yield
    finally:
        session.copied = copied
