"""`ComputerMethodTool`: a further method of a computer as a function for the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ck_pro.exceptions import ConfigError, ToolError
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool
from ck_web.computer.browser import BrowserComputer
from ck_web.computer.browser_env import ComputerEnv

_DONE = "success"


class ComputerMethodTool(Tool):
    """A method of the computer that is not an action, such as `goto` of a browser.

    The schema comes from the caller. A method without a result returns "success".
    """

    on_resume = "never"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ComputerMethodTool:
        """Return the tool for an entry of the Responses API's `tools`.

        Raises:
            ConfigError: it is not a function.
        """
        body = {**given, **given.get("function", {})}
        if body.get("type", "function") != "function" or not body.get("name"):
            raise ConfigError(f"tools: not a function with a name: {dict(given)!r}")
        return cls(
            name=body["name"],
            description=body.get("description") or f"Call {body['name']} of the computer.",
            parameters=body.get("parameters") or {"type": "object", "properties": {}},
        )

    def execute(self, **arguments: Any) -> Any:
        """Raise `ToolError`: only the function from `bind` has a computer."""
        raise ToolError(f"{self.name}: the computer is available only in a run")

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for one run."""

        def call(**arguments: Any) -> Any:
            method = getattr(computer_of(run), self.name, None)
            if not callable(method):
                raise ToolError(f"this computer has no function {self.name!r}")
            result = method(**arguments)
            return _DONE if result is None else result

        call.__name__ = self.name
        vars(call)["__signature__"] = self._signature()
        return call

    def get_function_definition(self, short: bool) -> str:
        """Return the definition for prompts, with the parameters of the schema."""
        head = f"{self.name}{self._signature()}"
        text = " ".join(self.description.split())
        return f"- {head}: {text}" if short else f'def {head}:\n    """{text}"""'

    def _signature(self) -> inspect.Signature:
        required = self.parameters.get("required") or ()
        names = self.parameters.get("properties") or {}
        kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        ordered = sorted(names, key=lambda name: name not in required)
        return inspect.Signature(
            [inspect.Parameter(n, kind, default=empty if n in required else None) for n in ordered]
        )


def computer_of(run: RunContext) -> Any:
    """Return the computer of a run."""
    environment = run.environment
    if isinstance(environment, ComputerEnv):
        return BrowserComputer.over(environment)
    return getattr(environment, "computer", None)
