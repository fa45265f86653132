"""Keys by the names that people and other tools give them."""

from __future__ import annotations

from playwright.async_api import Error

from web_server.errors import BadRequest
from web_server.surface import Surface
from web_server.view import one_line

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
                f"keys: '{one_line(name)[:40]}' is no modifier: use Control, Shift, Alt, Meta"
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
            raise BadRequest(
                f"keys: '{one_line(text)[:40]}' ends where a key should follow, as in Control+a"
            )
        parts = [*parts[:-2], "+"]
    return "+".join(key_name(part) for part in parts)


_CLIPBOARD_KEYS = {
    ("Control", "c"): "copy",
    ("Control", "x"): "copy",
    ("Control", "v"): "paste",
    ("Control", "Insert"): "copy",
    ("Shift", "Insert"): "paste",
    ("Shift", "Delete"): "copy",
}


def clipboard_use(text: str) -> str:
    """What a chord does with the clipboard: `copy` (or cut), `paste`, or nothing (empty)."""
    *held, key = chord(text).replace("Meta", "Control").split("+")
    key = key.removeprefix("Key").lower() if len(key.removeprefix("Key")) == 1 else key
    return next((_CLIPBOARD_KEYS[h, key] for h in held if (h, key) in _CLIPBOARD_KEYS), "")


async def press(surface: Surface, keys: str) -> None:
    """Press a chord.

    Raises:
        BadRequest: there is no such key.
    """
    try:
        await surface.press_key(chord(keys))
    except Error as error:
        if "Unknown key" in error.message:
            asked = one_line(keys)[:40]
            raise BadRequest(
                f"keys: there is no key '{asked}': use names such as Enter, ArrowDown, Control+a"
            ) from None
        raise
