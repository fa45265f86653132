"""`ComputerTool`: the computer as a function of the agent's code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ck_pro.events import ErrorObservation
from ck_pro.events.computer_schema import COMPUTER_DESCRIPTION, COMPUTER_PARAMETERS, computer_action
from ck_pro.exceptions import ToolError
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool


class ComputerTool(Tool):
    """The computer as a function, for code and for models without a built-in computer tool."""

    name = "computer"
    description = COMPUTER_DESCRIPTION
    parameters = COMPUTER_PARAMETERS
    on_resume = "never"
    checks_arguments = False
    acts_by_run = True
    """The run approves each action, with the elements at its points."""

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
        region: list[float] | None = None,
    ) -> str:
        """Raise `ToolError`: only the function from `bind` has a computer."""
        raise ToolError(f"{self.name}: the computer is available only in a run")

    def bind(self, run: RunContext) -> Callable[..., str]:
        """Return the function for one run, which acts and returns one line about the effect."""

        @functools.wraps(self.execute)
        def computer(*args: Any, **kwargs: Any) -> str:
            given = inspect.signature(self.execute).bind(*args, **kwargs).arguments
            seen = run.act(computer_action(given))
            if isinstance(seen, ErrorObservation):
                raise ToolError(seen.text)
            return str(seen)

        computer.__name__ = self.name
        return computer

    def get_function_definition(self, short: bool) -> str:
        """Return the definition for prompts, with a description of each argument."""
        text = super().get_function_definition(short)
        if short:
            return text
        notes = [
            f"    {name}: {note}"
            for name, schema in self.parameters["properties"].items()
            if (note := schema.get("description") or ", ".join(schema.get("enum", ())))
        ]
        head, quotes, _ = text.rpartition('"""')
        return "\n".join([head.rstrip(), "", *notes, f"    {quotes}"])
