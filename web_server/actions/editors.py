"""Editors that draw their text themselves, and take the keys by a field that nobody sees.

What such a field holds is a part of the text at most, so that selecting its content would replace
nothing: the editor is asked to select all as a person would.
"""

from __future__ import annotations

from web_server.actions.fields import type_keys
from web_server.observe.observer import Target
from web_server.session.page_handle import PageHandle

_TAKE_KEYS = """(element) => {
  const small = (node) => {
    const box = node.getBoundingClientRect();
    return box.width < 8 || box.height < 8;
  };
  let editor = element.parentElement;
  while (editor && small(editor)) editor = editor.parentElement;
  if (!editor) return false;
  editor.scrollIntoView({block: 'nearest', behavior: 'instant'});
  const box = editor.getBoundingClientRect();
  const middle = (low, high, end) => (Math.max(low, 0) + Math.min(high, end)) / 2;
  const hit = editor.getRootNode().elementFromPoint(
    middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
  if (!hit || !editor.contains(hit)) return false;
  element.focus({preventScroll: true});
  return element.getRootNode().activeElement === element;
}"""


async def fill(page_handle: PageHandle, target: Target, text: str) -> bool:
    """Replace the content of an editor that draws its text itself and takes keys by a hidden field.

    Args:
        surface: the page.
        target: the hidden field.
        text: the new content.

    Returns:
        False if something lies over the editor; then nothing was done.
    """
    if not await target.evaluate(_TAKE_KEYS):
        return False
    keyboard = page_handle.page.keyboard
    await keyboard.press("ControlOrMeta+a")
    await (type_keys(page_handle, text) if text else keyboard.press("Delete"))
    return True
