"""Key names: translate those that people and other tools use into Playwright's."""

from __future__ import annotations

import string

from web_server.errors import BadRequest
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

_NAMED = """
    Escape Backspace Tab CapsLock Enter Space ContextMenu PrintScreen ScrollLock Pause PageUp
    PageDown Insert Delete Home End ArrowLeft ArrowUp ArrowRight ArrowDown NumLock Backquote Minus
    Equal Backslash BracketLeft BracketRight Semicolon Quote Comma Period Slash AltGraph Control
    Shift Alt Meta ControlLeft ControlRight ShiftLeft ShiftRight AltLeft AltRight MetaLeft MetaRight
    NumpadDivide NumpadMultiply NumpadSubtract NumpadAdd NumpadDecimal NumpadEnter"""
_KEYS = _NAMED.split()
_KEYS += [f"F{number}" for number in range(1, 13)]
_KEYS += [f"{row}{digit}" for row in ("Digit", "Numpad") for digit in range(10)]
_KEYS += [f"Key{letter}" for letter in string.ascii_uppercase]
_OTHER_NAMES = {
    "ctrl": "Control",
    "cmd": "Meta",
    "command": "Meta",
    "super": "Meta",
    "win": "Meta",
    "option": "Alt",
    "esc": "Escape",
    "return": "Enter",
    "del": "Delete",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "pgup": "PageUp",
    "pgdn": "PageDown",
    "page_up": "PageUp",
    "page_down": "PageDown",
    "plus": "+",
    "minus": "-",
}
_KEY_NAMES = {**{key.lower(): key for key in _KEYS}, **_OTHER_NAMES}
_MODIFIERS = ("Control", "Shift", "Alt", "Meta")
_UNSHIFTED = "`1234567890-=[]\\;',./" + string.ascii_lowercase
_SHIFTED = '~!@#$%^&*()_+{}|:"<>?' + string.ascii_uppercase
_WITH_SHIFT = dict(zip(_UNSHIFTED, _SHIFTED, strict=True))
_WITHOUT_SHIFT = {shifted: plain for plain, shifted in _WITH_SHIFT.items()}


def key_name(text: str) -> str:
    """Return Playwright's name of a key."""
    key = text.strip() if text.strip() else text
    return _KEY_NAMES.get(key.lower(), key)


def modifiers(keys: list[str]) -> list[str]:
    """Return Playwright's names of keys to hold during a click or drag.

    Raises:
        BadRequest: one of them is not a modifier.
    """
    names = [key_name(key) for key in keys]
    for name in names:
        if name not in _MODIFIERS:
            raise BadRequest(
                f"keys: '{one_line(name)[:40]}' is not a modifier: use Control, Shift, Alt, Meta"
            )
    return names


def chord(text: str) -> str:
    """Return a chord such as `ctrl+shift+a` in Playwright's names.

    A character means the key that produces it on a US keyboard: with Shift held, `1` is `!`; `!`
    and capital letters hold Shift. A letter in a shortcut (`Control+A`) is in lower case.

    Raises:
        BadRequest: the chord is empty, ends with `+` after a modifier, or names an unknown key.
    """
    if not text.strip():
        if text:
            return "Space"
        raise BadRequest("press needs `keys`, for example 'Enter' or 'Control+a'")
    parts = text.strip().split("+")
    if text.strip() == "+":
        parts = ["+"]
    elif parts[-1] == "" and len(parts) > 1:
        if parts[-2] != "":
            raise BadRequest(
                f"keys: '{one_line(text)[:40]}' ends where a key should follow, as in Control+a"
            )
        parts = [*parts[:-2], "+"]
    *held, key = [_known(key_name(part), text) for part in parts]
    return "+".join(_as_typed(held, key))


def _known(key: str, text: str) -> str:
    """Return the key's name.

    Raises:
        BadRequest: a US keyboard has no such key.
    """
    if key == " ":
        return "Space"
    if key in _WITH_SHIFT or key in _WITHOUT_SHIFT or key in _KEYS:
        return key
    raise BadRequest(
        f"keys: unknown key '{one_line(text)[:40]}': use names such as Enter, ArrowDown, "
        "Control+a; type_text types any character"
    )


def _as_typed(held: list[str], key: str) -> list[str]:
    """Return a chord whose key is the character that the modifiers produce."""
    shift = "Shift" in held
    shortcut = any(each in ("Control", "Alt", "Meta") for each in held)
    if shift:
        return [*held, _WITH_SHIFT.get(key, key)]
    if shortcut and key.isalpha() and len(key) == 1:
        return [*held, key.lower()]
    return [*held, "Shift", key] if key in _WITHOUT_SHIFT else [*held, key]


_CLIPBOARD_KEYS = {
    ("Control", "c"): "copy",
    ("Control", "x"): "copy",
    ("Control", "v"): "paste",
    ("Control", "Insert"): "copy",
    ("Shift", "Insert"): "paste",
    ("Shift", "Delete"): "copy",
}


def clipboard_use(text: str) -> str:
    """Return what a chord does with the clipboard: `copy` (also for cut), `paste`, or empty."""
    *held, key = chord(text).replace("Meta", "Control").split("+")
    key = key.removeprefix("Key").lower() if len(key.removeprefix("Key")) == 1 else key
    return next((_CLIPBOARD_KEYS[h, key] for h in held if (h, key) in _CLIPBOARD_KEYS), "")


async def press(page_handle: PageHandle, keys: str, hold_ms: float = 0) -> None:
    """Press a chord, and hold it for milliseconds.

    Raises:
        BadRequest: the chord is malformed, or names an unknown key.
    """
    await page_handle.press_key(chord(keys), hold_ms)
