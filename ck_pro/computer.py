"""The computer as a function: what models are told of it, and reading what they say."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from ck_pro.events import COMPUTER_DEEDS, ComputerAction, ErrorObservation
from ck_pro.exceptions import ParseError, ToolError
from ck_pro.tool import Tool

COMPUTER = "computer"
"""Name of the function."""

COMPUTER_DESCRIPTION = """\
Use the mouse and the keyboard. You are shown the screen after it.

x and y are pixels of the screenshot shown last, from its left top corner."""
"""The function `computer` as models read it."""

_NUMBER = {"type": "number"}
_POINT = {"type": "object", "properties": {"x": _NUMBER, "y": _NUMBER}, "required": ["x", "y"]}
COMPUTER_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "enum": list(COMPUTER_DEEDS)},
        "x": {**_NUMBER, "description": "for click, double_click, move, scroll"},
        "y": _NUMBER,
        "button": {"type": "string", "enum": ["left", "right", "wheel", "back", "forward"]},
        "text": {"type": "string", "description": "for type: typed where the focus is"},
        "keys": {
            "type": "array",
            "items": {"type": "string"},
            "description": 'for keypress: one chord, as ["CTRL", "A"]; for the mouse: keys held',
        },
        "path": {"type": "array", "items": _POINT, "description": "for drag: its points"},
        "scroll_x": {**_NUMBER, "description": "for scroll: pixels to the right"},
        "scroll_y": {**_NUMBER, "description": "for scroll: pixels down; negative: up"},
        "ms": {**_NUMBER, "description": "for wait: milliseconds"},
    },
    "required": ["action"],
}
"""JSON schema of the arguments of the function `computer`."""


def computer_action(arguments: Mapping[str, Any], **fields: Any) -> ComputerAction:
    """The act that a call's arguments mean.

    Args:
        arguments: `action` and its fields; points may also be pairs, one key a text.
        fields: of the action, beside them.

    Raises:
        ParseError: they mean none; its text tells the model what to mend.
    """
    given = {k: v for k, v in arguments.items() if v is not None}
    known = COMPUTER_PARAMETERS["properties"]
    if unknown := [k for k in given if k not in known]:  # not even those that only we may set
        raise ParseError(
            f"The call of {COMPUTER} cannot be used: it takes no {unknown[0]!r}; "
            f"it takes: {', '.join(known)}"
        )
    if isinstance(given.get("keys"), str):
        given["keys"] = given["keys"].split("+") if len(given["keys"]) > 1 else [given["keys"]]
    if isinstance(given.get("path"), list):
        given["path"] = [_point(p) for p in given["path"]]
    try:
        return ComputerAction.model_validate({**given, **fields})
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        at = f"{where}: " if where else ""
        raise ParseError(f"The call of {COMPUTER} cannot be used: {at}{said}") from None


def _point(given: Any) -> Any:
    pair = isinstance(given, list | tuple) and len(given) == 2
    return {"x": given[0], "y": given[1]} if pair else given


class ComputerTool(Tool):
    """The computer as a function: for code, and for models without a computer tool of their own."""

    name = "computer"
    description = COMPUTER_DESCRIPTION
    parameters = COMPUTER_PARAMETERS
    on_resume = "never"
    acts_by_run = True
    """Its acts are approved one by one, together with what lies at their points."""

    def execute(
        self,
        action: str,
        x: float | None = None,
        y: float | None = None,
        button: str = "left",
        text: str | None = None,
        keys: list[str] | None = None,
        path: list[list[float]] | None = None,
        scroll_x: float = 0,
        scroll_y: float = 0,
        ms: float | None = None,
    ) -> str:
        """See `bind`: without a run there is no computer."""
        raise ToolError(f"{self.name}: there is no computer outside of a run")

    def bind(self, run: Any) -> Callable[..., str]:
        """The function for one run: acts, and returns one line on what came of it."""

        @functools.wraps(self.execute)
        def computer(*args: Any, **kwargs: Any) -> str:
            given = inspect.signature(self.execute).bind(*args, **kwargs).arguments
            seen = run.calls.act(computer_action(given))
            if isinstance(seen, ErrorObservation):
                raise ToolError(seen.text)
            return str(seen)

        computer.__name__ = self.name
        return computer

    def get_function_definition(self, short: bool) -> str:
        """The function as prompts show it, with its arguments explained."""
        text = super().get_function_definition(short)
        if short:
            return text
        notes = [
            f"    {name}: {said}"
            for name, schema in self.parameters["properties"].items()
            if (said := schema.get("description") or ", ".join(schema.get("enum", ())))
        ]
        head, quotes, _ = text.rpartition('"""')
        return "\n".join([head.rstrip(), "", *notes, f"    {quotes}"])
