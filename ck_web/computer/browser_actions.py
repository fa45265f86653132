"""Actions of mouse and keyboard as browser actions. Pure."""

from __future__ import annotations

from typing import Any

from ck_pro.events import BrowserAction, ComputerAction
from ck_web.actions import ACTIONS

WAIT_SECONDS = 1.0
"""Default time of `wait`."""

_BUTTONS = {"wheel": "middle"}


def browser_action(action: ComputerAction) -> BrowserAction:
    """Translate an action of mouse or keyboard into a browser action.

    Args:
        action: any except `screenshot` and `zoom`.
    """
    held = "+".join(action.keys)
    at: dict[str, Any] = {"x": action.x, "y": action.y}
    match action.action:
        case "click" if action.button in ("back", "forward"):
            return ACTIONS[f"go{action.button}"].action()
        case "click" | "double_click" | "triple_click":
            button = _BUTTONS.get(action.button, action.button)
            double, triple = (action.action == f"{n}_click" for n in ("double", "triple"))
            given: dict[str, Any] = {"double": double, "triple": triple, "keys": held}
            given["button"] = button
            return ACTIONS["click_at"].action(**at, **given, hold=_seconds(action))
        case "scroll":
            dx, dy = action.scroll_x, action.scroll_y
            turn = {"dx": dx, "dy": dy, "keys": list(action.keys)}
            return ACTIONS["wheel"].action("", f"{dx:g},{dy:g}", **at, **turn)
        case "type":
            text = action.text or ""
            enter = text.endswith("\n")  # in a field, Enter submits
            return ACTIONS["type_text"].action("", text.removesuffix("\n"), enter=enter)
        case "keypress":
            return ACTIONS["press"].action("", chord(action.keys), hold=_seconds(action))
        case "move":
            return ACTIONS["move"].action(**at)
        case "drag":
            path = [(p.x, p.y) for p in action.path]
            return ACTIONS["drag_path"].action(path=path, keys=held)
    seconds = WAIT_SECONDS if action.ms is None else action.ms / 1000
    return ACTIONS["wait"].action("", f"{seconds:g}")


def chord(keys: tuple[str, ...]) -> str:
    """Return keys pressed together in the server's form: `["CTRL", "A"]` is "CTRL+A"."""
    return "+".join("Space" if key == " " else key for key in keys)


def _seconds(action: ComputerAction) -> float:
    return (action.ms or 0) / 1000
