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

    def bind(self, run: RunContext) -> Callable[..., str]:
        """The function for one run: acts, and returns one line on what came of it."""

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
