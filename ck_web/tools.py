"""The web agent's functions as tools: what its code calls, and what its prompts tell of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ck_pro.events import ErrorObservation
from ck_pro.exceptions import ToolError
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool, parameters_schema
from ck_pro.tools.human import AskHumanTool
from ck_web.actions import FURTHER_WEB_ACTIONS, PREDEFINED_WEB_ACTIONS, parse_action
from ck_web.actions import write as writers


class WebTool(Tool):
    """One browser function for the agent's code; its name is one of `PREDEFINED_WEB_ACTIONS`.

    Calling it writes an action string, which is parsed and done in the run's browser at once.
    """

    on_resume = "never"  # a resumed run has another page
    acts_by_run = True
    """Its actions are approved together with what they reach."""

    _writers: ClassVar[Mapping[str, Callable[..., str]]] = PREDEFINED_WEB_ACTIONS

    def __init__(self, **kwargs: Any) -> None:
        write = self._writers[kwargs["name"]]
        kwargs.setdefault("description", inspect.getdoc(write))
        kwargs.setdefault("parameters", parameters_schema(write))
        super().__init__(**kwargs)

    def execute(self, *args: Any, **kwargs: Any) -> str:
        """The action string of a call; `bind` makes the function that also acts."""
        return self._writers[self.name](*args, **kwargs)

    def bind(self, run: RunContext) -> Callable[..., str]:
        """The function for the code of one run: acts, and returns one line of what came of it."""
        write = self._writers[self.name]

        @functools.wraps(write)
        def act(*args: Any, **kwargs: Any) -> str:
            done = run.act(parse_action(write(*args, **kwargs)))
            if isinstance(done, ErrorObservation):
                raise ToolError(done.text)
            return done.text

        act.__name__ = self.name
        return act

    def get_function_definition(self, short: bool) -> str:
        """The function as prompts show it: one line when `short`, else with all it says."""
        signature = inspect.signature(self._writers[self.name], eval_str=True)
        text = " ".join(self.description.split())
        if short:
            return f"- {self.name}({_bare(signature)}): {text.split('. ')[0].rstrip('.')}."
        head = f"{self.name}{signature.replace(return_annotation=signature.empty)}"
        return f'def {head}:\n    """{text}"""'


class ComputerWebTool(WebTool):
    """A browser function for an agent that sees no element ids."""

    _writers = {**PREDEFINED_WEB_ACTIONS, "upload": writers.upload_chosen}


_FURTHER = (*FURTHER_WEB_ACTIONS, AskHumanTool.name)


def _bare(signature: inspect.Signature) -> str:
    """The parameters without their types: a line that many more follow is to be short."""
    empty = inspect.Parameter.empty
    bare = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))[1:-1]


def definitions(functions: Sequence[Any]) -> str:
    """The functions for a prompt: those that every task needs in full, the further ones by a line.

    Args:
        functions: tools and sub-agents, in order.
    """
    further = [f for f in functions if isinstance(f, WebTool | AskHumanTool) and f.name in _FURTHER]
    full = [f.get_function_definition(False) for f in functions if f not in further]
    lines = [f.get_function_definition(True) for f in further]
    return "\n\n".join([*full, *(["Also:\n" + "\n".join(lines)] if lines else [])])


class WebStopTool(Tool):
    """Ends the web agent's task with its answer."""

    name = "stop"
    terminal = True

    def execute(self, answer: str, summary: str = "") -> dict[str, str]:
        """End the task.

        Args:
            answer: exactly what the task asks for; "" if it could not be found.
            summary: how it was found (on which pages), or what prevented it.
        """
        return {"output": str(answer), "log": str(summary)}


WEB_FUNCTIONS = tuple(n for n in PREDEFINED_WEB_ACTIONS if n not in ("stop", "nop"))
"""Names of the functions that act in the browser."""
