"""`Stepper`: an agent with the protocol `step(state) -> Action`, for an external loop.

It adapts `MultiStepAgent.decide`, the first half of a step. The external loop executes the actions
in its own environment and passes the observations back. (The protocol is that of OpenDevin.)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ck_pro.agent.action_agent import observation_of
from ck_pro.agent.agent import MultiStepAgent
from ck_pro.agent.run_end import normal_stop_reason, record_ending, stop_reason_for
from ck_pro.agent.typed_actions import is_typed
from ck_pro.events import (
    Action,
    ComputerObservation,
    EventKind,
    FinishAction,
    MessageAction,
    Observation,
    RejectAction,
    SuccessObservation,
    ThinkAction,
    ToolCall,
)
from ck_pro.events.journal_events import ObservationData
from ck_pro.exceptions import ContentFiltered, InputError, LimitReached, ParseError
from ck_pro.language import PLAN_FORM
from ck_pro.run.pictures import record_screen
from ck_pro.run.run import Run, run_of
from ck_pro.run.session_changes import record_acted
from ck_pro.session import AgentSession, StopReason
from ck_pro.session.observed import combine_observations


class Stepper:
    """One task of one agent with an external loop; use it with `with`.

    >>> from ck_pro.testing import FakeEnvironment, ScriptedLLM
    >>> agent = MultiStepAgent(model=ScriptedLLM(["It is 42."]), language="function_calls")
    >>> world = FakeEnvironment()
    >>> with Stepper(agent, "What is it?") as stepper:
    ...     action = stepper.step(stepper.state)
    ...     while not isinstance(action, FinishAction | RejectAction):
    ...         stepper.observe(world.execute(action))
    ...         action = stepper.step(stepper.state)
    >>> action.output, str(stepper.state.status)
    ('It is 42.', 'done')

    Args:
        agent: any agent; its plan phase does not run.
        task: the instruction.
        settings: `workdir`, `journal`, `budget`, `cancel`, `on_event`, as for `MultiStepAgent.run`.

    Attributes:
        state: the session: `history`, `updated_info` (the last step) and `root_task`.
    """

    def __init__(self, agent: MultiStepAgent, task: str, **settings: Any):
        self.agent = agent
        self.state = AgentSession(task, agent=agent.name)
        self._settings = settings
        self._queue: list[Action] = []  # decided, not yet returned by `step`
        self._observed: list[Any] = []  # observations of the current step so far
        self._pending: Action | None = None  # returned by `step`, without an observation
        self._last: Action | None = None  # the action that ended the task

    def __enter__(self) -> Stepper:
        self.agent.check()
        run = self.state.run = Run(self.agent, self.state, **self._settings)
        run.start()
        try:
            run.open_environment()
            self.agent.init_run(self.state)
        except BaseException as e:
            self._end(e)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(error)

    def step(self, state: AgentSession) -> Action:
        """Return the next action.

        If a reply is unusable, the model sees the error and replies again.
        If it only updates its plan, it is asked for an action. The last action is always a
        `FinishAction` or a `RejectAction`, also if a call of `stop` ended the task.

        Args:
            state: the attribute `state` of this stepper.

        Raises:
            InputError: the last action has no observation yet, or the task has ended.
            LimitReached: the agent's `max_steps` or a limit of the budget is reached.
            ModelError: the model call failed.
        """
        if state is not self.state or state.run is None:
            raise InputError("step: not the state of this stepper, or outside its `with` block")
        if self._pending is not None or self._last is not None:
            reason = "the task has ended" if self._last else "call observe() for the last one first"
            raise InputError(f"step: no next action: {reason}")
        action: Action | None = None
        while state.finish is None:
            if not self._queue:
                self._queue = self._decide()
                continue
            action = self._queue.pop(0)
            if not self._stays_inside(action):
                self._pending = action
                return action
            self._add_observation(self.agent.step_action(state, action))
        self._last = _last_action(action, state.finish)
        return self._last

    def observe(self, observation: Observation | str) -> None:
        """Pass the observation of the action that `step` returned last.

        Raises:
            InputError: no action is pending.
        """
        action, self._pending = self._pending, None
        if action is None:
            raise InputError("observe: no action is pending")
        run = run_of(self.state)
        if isinstance(observation, ComputerObservation):
            record_screen(run, action, observation)
        record_acted(run, action, observation_of(self.state, action, observation))
        self._add_observation(str(observation))

    def act(self) -> Any:
        """Let the agent execute the action that `step` returned last.

        Returns:
            The observation as in the step's row; `state.history[-1]` has it as a typed value.

        Raises:
            InputError: no action is pending.
        """
        action, self._pending = self._pending, None
        if action is None:
            raise InputError("act: no action is pending")
        seen = self.agent.step_action(self.state, action)
        if not is_typed(action):
            run = run_of(self.state)
            record_acted(run, action, observation_of(self.state, action, seen))
        self._add_observation(seen)
        return seen

    def message(self, text: str) -> None:
        """Add a message of the user to the history; the next prompt shows it."""
        run = run_of(self.state)
        run.notices.append(f"The user says: {text}")
        if not self.state.steps:
            return
        record_acted(run, MessageAction(content=text, source="user"), SuccessObservation())

    def search_memory(self, query: str) -> list[str]:
        """Return texts of the session and of the agent's memory that match, best match first."""
        return [*self.state.search(query), *self.agent.search_memory(query)]

    def _stays_inside(self, action: Action) -> bool:
        """Whether the agent executes an action itself: it ends the task, or has no effect."""
        if isinstance(action, ToolCall):
            plans = run_of(self.state).planning != "off" and action.name == PLAN_FORM.name
            return plans or action.name in run_of(self.state).functions.terminal
        return isinstance(action, FinishAction | RejectAction | ThinkAction)

    def _decide(self) -> list[Action]:
        """Begin a step and return its actions; none if the model's reply is unusable."""
        run = run_of(self.state)
        if len(self.state.steps) >= self.agent.max_steps:
            raise LimitReached("steps", f"{self.agent.name}: {self.agent.max_steps} steps are done")
        run.start_step()
        try:
            return self.agent.decide(self.state)
        except (ParseError, ContentFiltered) as e:
            self._add_observation(run.record_reply_error(e))
            return []

    def _add_observation(self, observed: Any) -> None:
        """Add the observation of one action; record the step's after the last action."""
        self._observed.append(observed)
        if self._queue and self.state.finish is None:
            return
        data = ObservationData(observation=combine_observations(self._observed))
        self._observed, self._queue = [], []
        run_of(self.state).record(EventKind.OBSERVATION, data)

    def _end(self, error: BaseException | None) -> None:
        state, run = self.state, run_of(self.state)
        reason, message = StopReason.CANCELLED, "the external loop left the `with` block"
        if error is not None:
            reason, message = stop_reason_for(error), str(error)
        elif state.finish is not None:
            reason, message = normal_stop_reason(state, self.agent.name, self.agent.max_steps)
            self.agent.finalize(state)
        try:
            self.agent.end_run(state)
        finally:
            run.close()
            record_ending(run, reason, message, error)


def _last_action(action: Action | None, finish: Mapping[str, Any]) -> Action:
    """Return the action that ended a task, as a `FinishAction` or a `RejectAction`.

    Args:
        action: the last action, if `step` executed it.
        finish: the session's `finish`.
    """
    if isinstance(action, FinishAction | RejectAction):
        return action
    if finish.get("rejected"):
        return RejectAction(reason=finish["log"])
    return FinishAction(output=finish["output"], log=finish["log"])
