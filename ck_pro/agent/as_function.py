"""An agent as a function that another agent's code calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from ck_pro.agent_settings import Sampling
from ck_pro.arguments import signature_text
from ck_pro.run.results import AgentResult
from ck_pro.run.run import Run
from ck_pro.run.sampling import sampled
from ck_pro.run_context import RunContext
from ck_pro.session import AgentSession
from ck_pro.tool import definition_text


class CallableAgent(Protocol):
    """The part of an agent that this module uses."""

    name: str
    description: str
    sampling: Sampling

    def run(self, task: str, **kwargs: Any) -> Any:
        """Work on a task and return the session."""
        ...

    def __call__(self, task: str, **kwargs: Any) -> AgentResult:
        """Work on a task and return the result."""
        ...


def call_agent(agent: CallableAgent, task: str, **kwargs: Any) -> AgentResult:
    """Run an agent on a task; several times if another agent calls it and its settings say so.

    Args:
        agent: the agent.
        task: the instruction.
        kwargs: arguments of `MultiStepAgent.run`.
    """
    parent: Run | None = kwargs.get("parent")
    if parent is None or agent.sampling.tries == 1:
        return AgentResult.of(agent.run(task, **kwargs))

    def attempt(number: int) -> AgentSession:
        info = {**(kwargs.get("info") or {}), "try": {"number": number}}
        session: AgentSession = agent.run(task, **{**kwargs, "info": info})
        return session

    return sampled(agent.sampling, task, parent, attempt)


def bind_agent(agent: CallableAgent, run: RunContext | None) -> Callable[..., AgentResult]:
    """Return an agent as a function for the code of `run`.

    The function takes the arguments of the agent's `__call__`, except `parent` and `**kwargs`.
    """
    call: Callable[..., AgentResult] = agent
    try:
        accepted = inspect.signature(agent, eval_str=True).parameters
    except (NameError, AttributeError):  # only type checkers can resolve its annotations
        accepted = inspect.signature(agent).parameters
    shown = [p for p in accepted.values() if p.kind is not p.VAR_KEYWORD and p.name != "parent"]
    passed: dict[str, Any] = {"parent": run} if len(shown) < len(accepted) else {}

    def function(*args: Any, **kwargs: Any) -> AgentResult:
        return call(*args, **kwargs, **passed)

    function.__name__ = agent.name
    function.__doc__ = agent.description
    function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in shown if p.annotation is not p.empty}
    return function


def agent_definition(agent: CallableAgent, short: bool) -> str:
    """Return the definition of an agent for another agent's prompt: one line if `short`."""
    head = f"{agent.name}{signature_text(bind_agent(agent, None), returns=False)}"
    returns = "Returns a result with 'output' (the answer) and 'log' (how it was found)."
    return definition_text(head, f"{agent.description.strip()}\n\n{returns}", short)
