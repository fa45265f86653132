"""Names of keys: from those of computer-use models to X keysyms. Pure."""

from __future__ import annotations

from ck_pro.exceptions import ToolError

_NAMES = {
    **{"ctrl": "ctrl", "control": "ctrl", "alt": "alt", "option": "alt", "shift": "shift"},
    **{"cmd": "super", "command": "super", "meta": "super", "super": "super", "win": "super"},
    **{"enter": "Return", "return": "Return", "esc": "Escape", "escape": "Escape"},
    **{"tab": "Tab", "space": "space", "backspace": "BackSpace"},
    **{"del": "Delete", "delete": "Delete", "ins": "Insert", "insert": "Insert"},
    **{"arrowup": "Up", "arrowdown": "Down", "arrowleft": "Left", "arrowright": "Right"},
    **{"up": "Up", "down": "Down", "left": "Left", "right": "Right"},
    **{"pageup": "Prior", "pagedown": "Next", "home": "Home", "end": "End"},
    **{"capslock": "Caps_Lock", "printscreen": "Print", "menu": "Menu", "contextmenu": "Menu"},
    **{f"f{n}": f"F{n}" for n in range(1, 25)},
    **{"plus": "plus", "minus": "minus"},
}


def keysym(key: str) -> str:
    """Return the X name of a key, as xdotool expects it.

    Args:
        key: a character, or a name such as "CTRL", "Enter" or "ArrowUp".

    Raises:
        ToolError: the key is unknown.
    """
    if len(key) == 1:
        return "space" if key == " " else f"U{ord(key):04X}" if not key.isalnum() else key
    plain = key.strip().lower().replace("_", "").replace("-", "").replace(" ", "")
    if plain not in _NAMES:
        raise ToolError(f"unknown key {key!r}: use a character, or a name such as CTRL, ENTER, F5")
    return _NAMES[plain]


def keysyms(keys: list[str]) -> list[str]:
    """Return the X names of keys pressed together; letters beside a modifier are lower case.

    Raises:
        ToolError: there is no key, or one is unknown.
    """
    if not keys:
        raise ToolError("keypress needs a key")
    names = [keysym(key) for key in keys]
    if len(names) > 1:  # CTRL+A is the key a with Control, not the capital letter
        names = [n.lower() if len(n) == 1 else n for n in names]
    return names
