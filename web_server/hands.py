"""Reaching an element with real input: hit testing, focus, typing, choosing options.

Everything here acts by mouse and keyboard events of the browser, at the point where the element
is; only native selects and date, colour and range inputs, which have no part of the page to click
on, get their value set.
"""

from __future__ import annotations

import asyncio
from typing import Any

from playwright.async_api import Error

from web_server.errors import BadRequest, Conflict, NotFound
from web_server.observe import ElementGone, Target
from web_server.surface import Surface
from web_server.view import one_line

TYPED_BY_KEY = 100
"""Texts up to this many characters are typed key by key, longer ones come in one piece."""

_APPROACHES = 5
_PICTURE_SECONDS = 3.0
_COVER_MS = 300

_SET_TYPES = frozenset(
    {"date", "time", "datetime-local", "month", "week", "color", "range"},
)
_NO_TEXT_TYPES = frozenset(
    {"checkbox", "radio", "button", "submit", "reset", "image", "file", "hidden"}
)

_SET_VALUE = """(element, value) => {
  const before = element.value;
  const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  setter.call(element, value);
  if (value !== '' && element.type !== 'range' && element.value === '') {
    setter.call(element, before);
    return null;
  }
  element.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  element.dispatchEvent(new Event('change', {bubbles: true}));
  return element.value;
}"""

_SELECT_CONTENT = """(element) => {
  const editable = (node) => node.isContentEditable
    || (node.matches && node.matches('input, textarea') && !node.disabled);
  const inner = () => {
    if (editable(element)) return element;
    if (element.control && editable(element.control)) return element.control;
    const roots = [element, element.shadowRoot].filter(Boolean);
    for (const root of roots) {
      const found = root.querySelector(
        'input:not([type=hidden]):not([type=checkbox]):not([type=radio]):not([type=file])'
        + ':not([type=button]):not([type=submit]), textarea, [contenteditable]:not('
        + '[contenteditable=false])');
      if (found) return found;
    }
    return null;
  };
  const deepActive = () => {
    let active = element.ownerDocument.activeElement;
    while (active && active.shadowRoot && active.shadowRoot.activeElement) {
      active = active.shadowRoot.activeElement;
    }
    return active;
  };
  let field = inner();
  const active = deepActive();
  // A combo box may have put its own field under the focus when it was clicked.
  if (!field && active && editable(active)) field = active;
  if (!field) return 'none';
  if (field.readOnly) return 'readonly';
  if (active !== field && !(field.isContentEditable && field.contains(active))) field.focus();
  if (field.isContentEditable) {
    let host = field;
    while (host.parentElement && host.parentElement.isContentEditable) host = host.parentElement;
    const range = field.ownerDocument.createRange();
    range.selectNodeContents(host);
    const selection = field.ownerDocument.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return host.textContent ? 'rich' : 'rich-empty';
  }
  field.select();
  if (field.matches('textarea')) return field.value ? 'lines' : 'lines-empty';
  return field.value ? 'line' : 'line-empty';
}"""

_CHOOSE = """(element, wanted) => {
  let select = element;
  if (element.tagName === 'OPTION') {
    select = element.closest('select');
    if (select && !wanted.length) wanted = [element.label];
  }
  if (!select || select.tagName !== 'SELECT') return {kind: 'none'};
  if (select.disabled) return {kind: 'disabled'};
  const plain = (text) => text.replace(/\\s+/g, ' ').trim();
  const options = [...select.options];
  const match = (text) => {
    const rules = [
      (o) => plain(o.label) === plain(text) || plain(o.text) === plain(text),
      (o) => o.value === text,
      (o) => plain(o.label).toLowerCase() === plain(text).toLowerCase(),
      (o) => plain(o.label).toLowerCase().includes(plain(text).toLowerCase()),
    ];
    for (const rule of rules) {
      const found = options.filter((option) => rule(option));
      if (found.length) return found.find((option) => !option.disabled) || found[0];
    }
    return null;
  };
  const chosen = wanted.map(match);
  const labels = options.map((option) => plain(option.label));
  const missing = wanted.filter((_, i) => !chosen[i]);
  if (missing.length) return {kind: 'missing', missing, labels: labels.slice(0, 60)};
  if (!select.multiple && chosen.length !== 1) return {kind: 'single'};
  const off = chosen.find((o) => o.disabled || (o.parentElement && o.parentElement.disabled));
  if (off) return {kind: 'off', label: plain(off.label)};
  // No focus: lists that stand in for the native one would open, and cover what comes next.
  if (select.multiple) for (const option of options) option.selected = chosen.includes(option);
  else select.selectedIndex = options.indexOf(chosen[0]);
  select.dispatchEvent(new Event('input', {bubbles: true, composed: true}));
  select.dispatchEvent(new Event('change', {bubbles: true}));
  return {kind: 'done', labels: chosen.map((option) => plain(option.label))};
}"""

_CHECKED = """(element) => {
  const box = element.matches('input') ? element
    : element.control || element.querySelector('input[type=checkbox], input[type=radio]');
  if (box && box.matches('[type=checkbox], [type=radio]')) return box.checked;
  const aria = element.getAttribute('aria-checked') || element.getAttribute('aria-pressed');
  return aria === null ? null : aria === 'true';
}"""


def describe(target: Target) -> str:
    """An element as a person would name it: role and name."""
    return f"{target.role} '{one_line(target.name)[:80]}'" if target.name else target.role


def element_number(element_id: str) -> str:
    """A `targetId` as plain digits, if it is a number in one of the ways that clients write it."""
    return element_id.strip().strip("[]").removesuffix(".0")


async def find(surface: Surface, element_id: str) -> Target:
    """The element of that id.

    Raises:
        BadRequest: it is not a number.
        NotFound: no such element was shown, or it is gone.
    """
    text = element_number(element_id)
    if not text.isdecimal():
        raise BadRequest(f"targetId must be an element's number, not '{one_line(element_id)[:40]}'")
    if len(text) > 15:
        raise NotFound(f"no element [{text[:15]}...] on this page")
    try:
        return await surface.observer.resolve(int(text))
    except ElementGone as gone:
        raise NotFound(str(gone)) from None


async def reach(surface: Surface, element_id: str) -> Target:
    """The element of that id, scrolled into view, with nothing above it.

    Raises:
        BadRequest, NotFound: see `find`.
        Conflict: it is disabled, covered, or cannot be seen.
    """
    target = await find(surface, element_id)
    if target.disabled:
        raise Conflict(f"[{target.id}] {describe(target)} is disabled: it cannot be acted on")
    if not target.in_viewport or target.covered_by:
        try:
            target = await target.scroll_into_view()
            if target.covered_by and await surface.activity.call("changed", _COVER_MS):
                # What covers it may be on its way out.
                await surface.activity.settle()
                target = await surface.observer.resolve(target.id)
        except ElementGone as gone:
            raise NotFound(str(gone)) from None
    if not target.in_viewport:
        raise Conflict(
            f"[{target.id}] {describe(target)} is hidden or has no size: it cannot be brought "
            "into view"
        )
    if target.covered_by:
        raise Conflict(
            f"[{target.id}] {describe(target)} is covered by {target.covered_by}: "
            "close or move that first"
        )
    return target


async def click_at(
    surface: Surface, x: float, y: float, button: Any = "left", count: int = 1
) -> None:
    """Move the mouse there and click."""
    await surface.move_mouse(x, y)
    await _press_button(surface, button, count)


async def click(surface: Surface, target: Target, button: Any = "left", count: int = 1) -> None:
    """Click an element, at the place where it is once the mouse has come there.

    Raises:
        NotFound, Conflict: the coming of the mouse made it vanish, or brought something above it.
    """
    for attempt in range(_APPROACHES):
        if surface.mouse_at != (target.x, target.y, surface.activity.commits):
            await surface.move_mouse(target.x, target.y)
        elif not attempt:
            break
        try:
            now = await surface.observer.resolve(target.id)
        except ElementGone as gone:
            raise NotFound(str(gone)) from None
        near = abs(now.x - target.x) <= 1 and abs(now.y - target.y) <= 1
        if near and now.in_viewport and not now.covered_by:
            break
        # It moved, or shows something else under the mouse: what that started comes first, be it
        # a picture that has no size as long as it is not there.
        await surface.activity.settle()
        await surface.activity.until_loaded(_PICTURE_SECONDS)
        target = await reach(surface, str(target.id))
    await _press_button(surface, button, count)


async def _press_button(surface: Surface, button: Any, count: int) -> None:
    mouse = surface.page.mouse
    for number in range(1, count + 1):
        # Sent at once, carried out in order: nothing comes between.
        await asyncio.gather(
            mouse.down(button=button, click_count=number),
            mouse.up(button=button, click_count=number),
        )


async def fill(surface: Surface, target: Target, text: str) -> None:
    """Replace the content of a field.

    Raises:
        Conflict: it is not one that takes this text.
    """
    if target.tag == "select":
        await choose(target, [text])
        return
    if target.input_type in _SET_TYPES and target.tag == "input":
        value = await target.evaluate(_SET_VALUE, text.strip())
        if value is None:
            raise Conflict(
                f"[{target.id}] {describe(target)} takes a {target.input_type} value "
                f"(as 2024-12-31, 13:45 or #aabbcc), not '{one_line(text)[:60]}'"
            )
        return
    if target.tag == "input" and target.input_type in _NO_TEXT_TYPES:
        hint = "use upload" if target.input_type == "file" else "click it instead"
        raise Conflict(f"[{target.id}] {describe(target)} takes no text: {hint}")
    await click(surface, target)
    kind = await target.evaluate(_SELECT_CONTENT)
    if kind == "none":
        raise Conflict(f"[{target.id}] {describe(target)} is not a field that takes text")
    if kind == "readonly":
        raise Conflict(f"[{target.id}] {describe(target)} is read-only")
    keyboard = surface.page.keyboard
    if kind == "line" or kind == "line-empty":
        text = text.replace("\r\n", "\n").replace("\n", " ")
    if not text:
        if not kind.endswith("-empty"):
            await keyboard.press("Delete")
    else:
        await type_keys(surface, text)


async def type_keys(surface: Surface, text: str) -> None:
    """Type at the focus. Long texts, and such of several lines, come in one piece."""
    keyboard = surface.page.keyboard
    if len(text) <= TYPED_BY_KEY and "\n" not in text and "\t" not in text:
        await keyboard.type(text)
    else:
        await keyboard.insert_text(text)


async def choose(target: Target, labels: list[str]) -> str | None:
    """Choose options of a native select by label or value; None if it is not a native select.

    Raises:
        Conflict: it has no such option, or it cannot be chosen.
    """
    result = await target.evaluate(_CHOOSE, labels)
    kind = result["kind"]
    if kind == "none":
        return None
    if kind == "missing":
        missing = ", ".join(f"'{one_line(label)[:60]}'" for label in result["missing"])
        has = ", ".join(f"'{label}'" for label in result["labels"])
        raise Conflict(f"[{target.id}] {describe(target)} has no option {missing}; it has {has}")
    if kind == "disabled":
        raise Conflict(f"[{target.id}] {describe(target)} is disabled: it cannot be acted on")
    if kind == "off":
        raise Conflict(f"the option '{result['label']}' is disabled")
    if kind == "single":
        raise Conflict(f"[{target.id}] {describe(target)} takes exactly one option")
    return "selected " + ", ".join(f"'{label}'" for label in result["labels"])


async def checked(target: Target) -> bool | None:
    """Whether a check box, radio button or switch is on; None if it is none."""
    state = await target.evaluate(_CHECKED)
    return None if state is None else bool(state)


_KEY_NAMES = {
    "ctrl": "Control",
    "control": "Control",
    "cmd": "Meta",
    "command": "Meta",
    "meta": "Meta",
    "super": "Meta",
    "win": "Meta",
    "alt": "Alt",
    "option": "Alt",
    "shift": "Shift",
    "esc": "Escape",
    "escape": "Escape",
    "return": "Enter",
    "enter": "Enter",
    "del": "Delete",
    "delete": "Delete",
    "backspace": "Backspace",
    "tab": "Tab",
    "space": "Space",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "arrowup": "ArrowUp",
    "arrowdown": "ArrowDown",
    "arrowleft": "ArrowLeft",
    "arrowright": "ArrowRight",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "pgup": "PageUp",
    "pgdn": "PageDown",
    "home": "Home",
    "end": "End",
    "insert": "Insert",
    "plus": "+",
    "minus": "-",
}


def key_name(text: str) -> str:
    """A key as the browser library calls it, from what people and other tools call it."""
    key = text.strip() if text.strip() else text
    if key[:1] in "fF" and key[1:].isdecimal():
        return key.upper()
    return _KEY_NAMES.get(key.lower(), key)


def modifiers(keys: list[str]) -> list[str]:
    """Keys to hold during a click or drag, in the browser library's names.

    Raises:
        BadRequest: one of them is no modifier.
    """
    names = [key_name(key) for key in keys]
    for name in names:
        if name not in ("Control", "Shift", "Alt", "Meta"):
            raise BadRequest(
                f"'{one_line(name)[:40]}' is no modifier: use Control, Shift, Alt, Meta"
            )
    return names


def chord(text: str) -> str:
    """A chord such as `ctrl+shift+a` in the browser library's names.

    Raises:
        BadRequest: it is empty, or ends with a modifier's `+`.
    """
    if not text.strip():
        if text:
            return "Space"
        raise BadRequest("press needs `keys`, for example 'Enter' or 'Control+a'")
    if text.strip() == "+":
        return "+"
    parts = text.strip().split("+")
    if parts[-1] == "" and len(parts) > 1:
        if parts[-2] != "":
            raise BadRequest(f"'{one_line(text)[:40]}' ends where a key should follow")
        parts = [*parts[:-2], "+"]
    return "+".join(key_name(part) for part in parts)


async def press(surface: Surface, keys: str) -> None:
    """Press a chord.

    Raises:
        BadRequest: there is no such key.
    """
    try:
        await surface.page.keyboard.press(chord(keys))
    except Error as error:
        if "Unknown key" in error.message:
            raise BadRequest(f"there is no key '{one_line(keys)[:40]}'") from None
        raise
