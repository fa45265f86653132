"""Fields: typing, choosing options, check boxes.

Everything here acts by mouse and keyboard events of the browser; only native selects and date,
colour and range inputs, which have no part of the page to click on, get their value set.
"""

from __future__ import annotations

from web_server.errors import Conflict
from web_server.hands import click, describe
from web_server.observe import ElementGone, Target
from web_server.surface import Surface
from web_server.view import one_line

TYPED_BY_KEY = 100
"""Texts up to this many characters are typed key by key, longer ones come in one piece."""

_SET_TYPES = {
    "date": "2024-12-31",
    "time": "13:45",
    "datetime-local": "2024-12-31T13:45",
    "month": "2024-12",
    "week": "2024-W52",
    "color": "#aabbcc",
    "range": "50",
}
"""Inputs whose value is set, with an example of one."""
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
  const now = [...select.selectedOptions].map((option) => plain(option.label));
  const kept = chosen.every((option) => option.selected) && now.length === chosen.length;
  return {kind: kept ? 'done' : 'otherwise', now, labels: chosen.map((o) => plain(o.label))};
}"""

_CHOSEN = """(element) => [...element.closest('select').selectedOptions]
  .map((option) => `'${option.label.replace(/\\s+/g, ' ').trim()}'`).join(', ')"""

_SUGGESTED = """(element, wanted) => {
  const plain = (text) => text.replace(/\\s+/g, ' ').trim().toLowerCase();
  const options = element.tagName === 'INPUT' && element.list ? [...element.list.options] : [];
  const found = options.find((option) => plain(option.value) === plain(wanted))
    || options.find((option) => plain(option.label) === plain(wanted));
  return found ? found.value : null;
}"""

_HELD = """(element) => typeof element.value === 'string'
  ? element.type === 'password' ? element.value.length : element.value
  : element.isContentEditable ? {rich: element.innerText} : null"""

_CHECKED = """(element) => {
  const box = element.matches('input') ? element
    : element.control || element.querySelector('input[type=checkbox], input[type=radio]');
  if (box && box.matches('[type=checkbox], [type=radio]')) return box.checked;
  const aria = element.getAttribute('aria-checked') || element.getAttribute('aria-pressed');
  return aria === null ? null : aria === 'true';
}"""


async def fill(surface: Surface, target: Target, text: str) -> str:
    """Replace the content of a field.

    Returns:
        what is to be said of it, with a comma or semicolon before it; empty if the field simply
        holds the text now.

    Raises:
        Conflict: it is not one that takes this text.
    """
    if target.tag == "select":
        await choose(target, [text])
        return ""
    if target.input_type in _SET_TYPES and target.tag == "input":
        value = await target.evaluate(_SET_VALUE, text.strip())
        if value is None:
            raise Conflict(
                f"[{target.id}] {describe(target)} takes a {target.input_type} value "
                f"such as {_SET_TYPES[target.input_type]}, not '{one_line(text)[:60]}'"
            )
        return "" if value == text.strip() else _holds(value)
    if target.tag == "input" and target.input_type in _NO_TEXT_TYPES:
        hint = "use upload" if target.input_type == "file" else "click it instead"
        raise Conflict(f"[{target.id}] {describe(target)} takes no text: {hint}")
    await click(surface, target)
    try:
        kind = await target.evaluate(_SELECT_CONTENT)
    except ElementGone:
        raise Conflict(
            f"[{target.id}] {describe(target)} vanished when it was clicked: nothing was typed"
        ) from None
    if kind == "none":
        hint = ": press the arrow keys on it, or drag it" if target.role == "slider" else ""
        raise Conflict(f"[{target.id}] {describe(target)} is not a field that takes text{hint}")
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
    return await _what_came(surface, target, text)


async def _what_came(surface: Surface, target: Target, text: str) -> str:
    """What is to be said of a field after typing: that it holds something else, or is gone."""
    try:
        held = await target.evaluate(_HELD)
        if isinstance(held, dict):
            if _among(text, held["rich"]):
                return ""
            await surface.settler.settle()  # some editors draw a moment later
            held = await target.evaluate(_HELD)
    except ElementGone:
        return ", which vanished meanwhile: not all may have gone there"
    if isinstance(held, dict):
        return "" if _among(text, held["rich"]) else _holds(held["rich"].strip())
    if held is None or held in (len(text), text.replace("\r\n", "\n")):
        return ""
    return f"; it holds {held} characters now" if isinstance(held, int) else _holds(held)


def _among(text: str, words: str) -> bool:
    """Whether an editor that may put marks of its own around the words holds them."""
    return "".join(text.split()) in "".join(words.split())


def _holds(value: str) -> str:
    return f"; it holds '{one_line(value)[:80]}' now" if value else "; it is empty now"


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
    said = "selected " + ", ".join(f"'{label}'" for label in result["labels"])
    if kind == "otherwise":
        now = ", ".join(f"'{label}'" for label in result["now"]) or "nothing"
        said += f", which the page changed to {now},"
    return said


async def choose_kept(surface: Surface, target: Target, labels: list[str]) -> str | None:
    """The same; where something stands in for the list, also what that made of the choice.

    Raises:
        Conflict: see `choose`.
    """
    said = await choose(target, labels)
    if said is None or (target.in_viewport and not target.covered_by and not target.passes):
        return said
    try:
        chosen = await target.evaluate(_CHOSEN)
        await surface.settler.settle()
        now = await target.evaluate(_CHOSEN)
    except ElementGone:
        return said
    if now != chosen:
        said += f", which the page changed to {now or 'nothing'} then,"
    return said


async def takes_enter(target: Target) -> bool:
    """Whether Enter, pressed now, is for the field that was just filled.

    A field whose value was set was not clicked: it gets the focus now, so that the key does not go
    to what had it before, a button perhaps. Lists and colours would open a window on that key.
    """
    if target.tag == "select" or target.input_type == "color":
        return False
    if target.tag == "input" and target.input_type in _SET_TYPES:
        try:
            await target.evaluate("(element) => element.focus()")
        except ElementGone:
            return False
    return True


async def suggested(target: Target, label: str) -> str | None:
    """The value that a field's own list of suggestions has under that label; None without one."""
    value: str | None = await target.evaluate(_SUGGESTED, label)
    return value


async def checked(target: Target) -> bool | None:
    """Whether a check box, radio button or switch is on; None if it is none."""
    state = await target.evaluate(_CHECKED)
    return None if state is None else bool(state)
