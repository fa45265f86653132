"""`Agent`: an agent from goals, actions, memory and environment (GAME)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ck_pro.agent.agent import MultiStepAgent
from ck_pro.environment import Environment
from ck_pro.language import AgentLanguage
from ck_pro.model import LLM
from ck_pro.session.goals import Goal


class Agent(MultiStepAgent):
    """A `MultiStepAgent` from goals, actions and an environment.

    Only the constructor differs: the loop, the journal, limits, resume and exports are those of
    every agent.

    Args:
        goals: goals besides the task, as `Goal` objects or texts.
        language: the form of prompts and replies, or its name.
        actions: a `ToolRegistry`, or a list of tools and functions; `tools` of other agents. A
            terminal action ends the run. Without one, a reply without a call ends it.
        generate_response: the model: a function from chat messages to the reply (see `LLM.of`), an
            `LLM`, or its `call_target`.
        environment: the `Environment` through which the calls of actions pass.
        settings: further settings of `MultiStepAgent`.
    """

    def __init__(
        self,
        goals: Iterable[Goal | str] | None = None,
        language: AgentLanguage | str = "function_calls",
        actions: Iterable[Any] | None = None,
        generate_response: Callable[..., Any] | LLM | str | None = None,
        environment: Environment | Callable[[], Environment] | None = None,
        **settings: Any,
    ):
        given = {"language": language, "environment": environment, **settings}
        if goals is not None:
            given["goals"] = goals if isinstance(goals, list) else list(goals)
        if actions is not None:
            given["tools"] = actions
        if generate_response is not None:
            if not isinstance(generate_response, LLM | str):
                generate_response = LLM.of(generate_response)
            given["model"] = generate_response
        super().__init__(**given)
