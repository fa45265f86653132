"""`CallableAgent`: an agent as a function that another agent's code calls."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from ck_pro.agent.settings import AgentSettings
from ck_pro.run.results import AgentResult
from ck_pro.run.run import Run
from ck_pro.run.sampling import Sampling, sampled
from ck_pro.session import AgentSession
from ck_pro.tool import definition_text, parameters_schema, signature_text


class CallableAgent(AgentSettings, ABC):
    """The protocol of sub-agents, over `run`."""

    sampling: Sampling = Sampling()
    """How often it is run when another agent calls it, and which of the results that one gets."""

    @abstractmethod
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Work on a task to its end and return the session; see `MultiStepAgent.run`."""

    def __call__(self, task: str, **kwargs: Any) -> AgentResult:
        """Work on a task and return its result.

        Args:
            task: the instruction; all that the agent gets to know.
            kwargs: as for `run`.

        Returns:
            `output` (the answer, "" when there is none) and `log` (how it went, or why it failed).
        """
        parent = kwargs.get("parent")
        if parent is None or self.sampling.tries == 1:
            return AgentResult.of(self.run(task, **kwargs))

        def try_(number: int) -> AgentSession:
            info = {**(kwargs.get("info") or {}), "try": {"number": number}}
            session: AgentSession = self.run(task, **{**kwargs, "info": info})
            return session

        return sampled(self.sampling, task, parent, try_)

    def bind(self, run: Run | None) -> Callable[..., AgentResult]:
        """This agent as a function for the code of `run`, with the arguments of its `__call__`."""
        if type(self).__call__ is not CallableAgent.__call__:
            return self._bind_own(run)

        def function(task: str) -> AgentResult:
            return self(task, parent=run)

        function.__name__ = self.name
        function.__doc__ = self.description
        return function

    def _bind_own(self, run: Run | None) -> Callable[..., AgentResult]:
        """`bind` for a subclass that has a `__call__` of its own."""
        call: Callable[..., AgentResult] = self
        try:
            given = inspect.signature(call, eval_str=True).parameters
        except (NameError, AttributeError):  # annotations that only type checkers can resolve
            given = inspect.signature(call).parameters
        shown = [p for p in given.values() if p.kind is not p.VAR_KEYWORD and p.name != "parent"]
        passed: dict[str, Any] = {"parent": run} if len(shown) < len(given) else {}

        def function(*args: Any, **kwargs: Any) -> AgentResult:
            return call(*args, **kwargs, **passed)

        function.__name__ = self.name
        function.__doc__ = self.description
        function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        function.__annotations__ = {
            p.name: p.annotation for p in shown if p.annotation is not p.empty
        }
        return function

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments that this agent takes as a function."""
        return parameters_schema(self.bind(None))

    def get_function_definition(self, short: bool) -> str:
        """The agent as prompts show it to another: one line when `short`, else with more."""
        head = f"{self.name}{signature_text(self.bind(None), returns=False)}"
        returns = "Returns a result with 'output' (the answer) and 'log' (how it was found)."
        return definition_text(head, f"{self.description.strip()}\n\n{returns}", short)
