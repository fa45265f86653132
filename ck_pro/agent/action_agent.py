"""`ActionAgent`: an agent whose `step(state)` returns the next action."""

from __future__ import annotations

import contextvars
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.agent.agent import MultiStepAgent
from ck_pro.agent.typed_actions import is_typed
from ck_pro.approval import describe
from ck_pro.events import Action, CodeAction, EventKind, Observation, TextObservation, ThinkAction
from ck_pro.events.journal_events import ActionData
from ck_pro.events.observations import CodeObservation
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.model import Reply
from ck_pro.run.run import Run, run_of
from ck_pro.run.session_changes import record_acted
from ck_pro.session import AgentSession
from ck_pro.session.observed import combine_observations, observation_text
from ck_pro.session.rows import Step

_current: contextvars.ContextVar[Run | None] = contextvars.ContextVar("current", default=None)
"""The run whose agent decides in this context."""


class ActionAgent(MultiStepAgent):
    """An agent that decides in Python: a subclass defines `step(state) -> Action`.

    The loop executes the action, journals it with its observation and calls `step` again, until it
    returns a `FinishAction` or a `RejectAction`, or a limit is reached. (The protocol is that of
    OpenDevin.)

    >>> from ck_pro.events import AddTaskAction, FinishAction
    >>> class Planner(ActionAgent):
    ...     def step(self, state):
    ...         if not state.history:
    ...             return AddTaskAction(goal="look")
    ...         return FinishAction(output=state.root_task.subtasks[0].goal)
    >>> Planner().run("t").final_results["output"]
    'look'
    """

    def step(self, state: AgentSession) -> Action:  # type: ignore[override]
        """Return the next action.

        Args:
            state: the session. `history` has all actions with their observations, `updated_info`
                those of the last step, `root_task` the task tree, and `task` the instruction.
        """
        raise ConfigError(f"{type(self).__name__} defines no step(state)")

    def llm(self, messages: Sequence[dict[str, Any]] | str, **call_kwargs: Any) -> Reply:
        """Call the agent's model in `step`; the call is journaled and counts against the budget.

        Args:
            messages: chat messages; a str is one user message.
            call_kwargs: further parameters of the model.

        Raises:
            InputError: no step of this agent is in progress in this thread.
            ModelError, LimitReached, Cancelled: see `LLM`.
        """
        run = _current.get()
        if run is None or run.agent is not self:
            raise InputError(f"{self.name}.llm: call it in step(state)")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return run.call_model(self.model, list(messages), "action", **call_kwargs)

    def decide(
        self, session: AgentSession, kwargs: Mapping[str, Any] | None = None
    ) -> list[Action]:
        """Return the action that `step` chooses, and record it."""
        run = run_of(session)
        token = _current.set(run)
        try:
            action = self.step(session)
        finally:
            _current.reset(token)
        if not isinstance(action, Action):
            raise ConfigError(
                f"{type(self).__name__}.step returned {type(action).__name__}; return an Action"
            )
        code = action.code if isinstance(action, CodeAction) else describe(action)
        thought = action.thought if isinstance(action, CodeAction | ThinkAction) else ""
        run.record(EventKind.ACTION, ActionData(thought=thought, code=code), phase="action")
        return [action]

    def act(self, session: AgentSession, actions: Sequence[Action]) -> Any:
        """Execute the actions, and record each with its observation."""
        observed = []
        for action in actions:
            seen = self.step_action(session, action)
            if not is_typed(action):  # `carry_out` has recorded the others
                record_acted(run_of(session), action, observation_of(session, action, seen))
            observed.append(seen)
        return combine_observations(observed)

    def _take_step(self, session: AgentSession) -> Step:
        return MultiStepAgent.step(self, session, session.state)


def observation_of(session: AgentSession, action: Action, seen: Any) -> Observation:
    """Return the part of a step's observation that an action caused, as a typed observation."""
    if isinstance(seen, Observation):
        return seen
    text = observation_text(seen)
    if isinstance(action, CodeAction):
        return CodeObservation(text=text, error=session.steps[-1]["action"].get("error", ""))
    return TextObservation(text=text)
