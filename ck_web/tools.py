"""The web agent's functions as tools: their calls and their definitions in prompts."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ck_pro.arguments import parameters_schema, resolved_signature, signature_text
from ck_pro.events import ErrorObservation
from ck_pro.exceptions import ToolError
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool
from ck_pro.tools.human import AskHumanTool
from ck_web.actions import ACTIONS, WebAction
from ck_web.actions.elements import UploadToPage


class WebTool(Tool):
    """One browser function for the agent's code, named after a declared web action.

    A call writes an action string, which is parsed and executed in the run's browser immediately.
    """

    on_resume = "never"  # unless the resumed run has the same page
    checks_arguments = False  # the declared action checks them
    acts_by_run = True
    """The run reviews its actions together with their targets."""

    _declared: ClassVar[Mapping[str, WebAction]] = ACTIONS

    @property
    def reports_result(self) -> bool:
        """Whether the step's observation has the result also if the code does not print it."""
        declared = self._declared[self.name]
        return not (declared.reads_only or declared.returns_data)

    @property
    def element_roles(self) -> Sequence[str]:
        """See `Tool.element_roles`."""
        return self._declared[self.name].roles

    def __init__(self, **kwargs: Any) -> None:
        action = self._declared[kwargs["name"]]
        kwargs.setdefault("description", action.help)
        kwargs.setdefault("parameters", parameters_schema(action.write))
        super().__init__(**kwargs)
        text = " ".join(self.description.split())
        head = f"{self.name}{signature_text(action.write, returns=False)}"
        self._definition = f'def {head}:\n    """{text}"""'
        first = text.split(". ")[0].rstrip(".")
        self._line = f"- {self.name}({_without_types(action.write)}): {first}."

    def execute(self, *args: Any, **kwargs: Any) -> str:
        """Return the action string of a call; the function that `bind` returns also acts."""
        return self._declared[self.name].write(*args, **kwargs)

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for the code of one run: it acts and returns one line."""
        declared = self._declared[self.name]
        write = declared.write

        @functools.wraps(write)
        def act(*args: Any, **kwargs: Any) -> Any:
            _, _, written = write(*args, **kwargs).partition(" ")
            result = run.act(declared.parse(written))
            if isinstance(result, ErrorObservation):
                raise ToolError(result.text)
            return json.loads(result.text) if declared.returns_data else result.text

        act.__name__ = self.name
        return act

    def get_function_definition(self, short: bool) -> str:
        """Return the definition for prompts: one line if `short`, else with the whole help."""
        return self._line if short else self._definition


class ComputerWebTool(WebTool):
    """A browser function for an agent that does not know element ids."""

    _declared = {**ACTIONS, "upload": UploadToPage()}


def definitions(functions: Sequence[Any]) -> str:
    """Return the functions for a prompt: most in full, the less frequent ones in one line each.

    Args:
        functions: tools and sub-agents, in order.
    """
    brief = [f for f in functions if _is_brief(f)]
    full = [f.get_function_definition(False) for f in functions if f not in brief]
    lines = [f.get_function_definition(True) for f in brief]
    return "\n\n".join([*full, *(["Also:\n" + "\n".join(lines)] if lines else [])])


def _is_brief(function: Any) -> bool:
    if isinstance(function, WebTool):
        return ACTIONS[function.name].in_prompt == "line"
    return isinstance(function, AskHumanTool)


def _without_types(function: Callable[..., Any]) -> str:
    """Return the parameters without their types, which keeps the line short."""
    empty, signature = inspect.Parameter.empty, resolved_signature(function)
    bare = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))[1:-1]


class WebStopTool(Tool):
    """Ends the web agent's task with its answer."""

    name = "stop"
    terminal = True
    synonyms = {"output": "answer", "log": "summary"}
    checks_arguments = False  # every value is an answer

    def execute(self, answer: str, summary: str = "") -> dict[str, str]:
        """End the task.

        Args:
            answer: exactly what the task asks for.
            summary: how you found it (on which pages), or what prevented it.
        """
        return {"output": str(answer), "log": str(summary)}
