"""The computer as a function for models: its JSON schema, and the parsing of its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ck_pro.events.computer import COMPUTER_ACTIONS, ComputerAction
from ck_pro.exceptions import ParseError

COMPUTER = "computer"
"""Name of the function."""

COMPUTER_DESCRIPTION = """\
Use the mouse and the keyboard. The result is a new screenshot.

x and y are pixels of the last screenshot, from its top left corner."""
"""Description of the function `computer` for models."""

_NUMBER = {"type": "number"}
_POINT = {"type": "object", "properties": {"x": _NUMBER, "y": _NUMBER}, "required": ["x", "y"]}
_REGION = {
    "type": "object",
    "properties": {"x": _NUMBER, "y": _NUMBER, "width": _NUMBER, "height": _NUMBER},
    "required": ["x", "y", "width", "height"],
}
COMPUTER_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(COMPUTER_ACTIONS)},
        "x": {**_NUMBER, "description": "for clicks, move, scroll"},
        "y": _NUMBER,
        "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
        "text": {"type": "string", "description": "for type: text to type at the focus"},
        "keys": {
            "type": "array",
            "items": {"type": "string"},
            "description": 'for keypress: one chord: ["CTRL", "A"]; for the mouse: keys held',
        },
        "path": {"type": "array", "items": _POINT, "description": "for drag: points of the path"},
        "scroll_x": {**_NUMBER, "description": "for scroll: pixels to the right"},
        "scroll_y": {**_NUMBER, "description": "for scroll: pixels down; negative: up"},
        "ms": {
            **_NUMBER,
            "description": "milliseconds: to wait, or to hold the button of a click or the keys",
        },
        "region": {
            **_REGION,
            "description": "for zoom: the next step shows this part enlarged",
        },
    },
    "required": ["action"],
}
"""JSON schema of the arguments of the function `computer`."""


def computer_action(arguments: Mapping[str, Any], **fields: Any) -> ComputerAction:
    """Parse the arguments of a call to an action.

    Args:
        arguments: `action` and its fields; points may also be pairs, a region four numbers, one
            key a text.
        fields: further fields of the action.

    Raises:
        ParseError: the arguments are invalid; the message says what to fix.
    """
    values = {k: v for k, v in arguments.items() if v is not None}
    known = COMPUTER_PARAMETERS["properties"]
    if unknown := [
        k for k in values if k not in known
    ]:  # also fields that only the environment sets
        raise ParseError(
            f"The call of {COMPUTER} cannot be used: it takes no {unknown[0]!r}; "
            f"it takes: {', '.join(known)}"
        )
    if isinstance(values.get("keys"), str):
        values["keys"] = values["keys"].split("+") if len(values["keys"]) > 1 else [values["keys"]]
    if isinstance(values.get("path"), list):
        values["path"] = [_point(p) for p in values["path"]]
    if isinstance(given := values.get("region"), list | tuple) and len(given) == 4:
        values["region"] = dict(zip(("x", "y", "width", "height"), given, strict=True))
    try:
        return ComputerAction.model_validate({**values, **fields})
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        at = f"{where}: " if where else ""
        raise ParseError(f"The call of {COMPUTER} cannot be used: {at}{message}") from None


def _point(point: Any) -> Any:
    pair = isinstance(point, list | tuple) and len(point) == 2
    return {"x": point[0], "y": point[1]} if pair else point
