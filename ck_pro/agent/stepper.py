"""`Stepper`: an agent by the protocol `step(state) -> Action`, for whoever runs the loop.

It is an adapter over `MultiStepAgent.decide`, the first half of a step: the driver carries actions
out, in its own world, and tells what came of them. (The protocol is that of OpenDevin's agents.)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from ck_pro.agent.agent import MultiStepAgent
from ck_pro.agent.stop_reasons import normal_stop_reason, record_ending, stop_reason_for
from ck_pro.events import (
    Action,
    ComputerObservation,
    EventKind,
    FinishAction,
    Observation,
    RejectAction,
    ToolCall,
)
from ck_pro.events.journal_events import ObservationData
from ck_pro.exceptions import ContentFiltered, InputError, LimitReached, ParseError
from ck_pro.run.run import Run, run_of
from ck_pro.session import AgentSession, StopReason
from ck_pro.session.observed import observation_text, several_observed


class Stepper:
    """One task of one agent, whose loop is run from outside; use it with `with`.

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
        agent: any agent; its plan phase is not used.
        task: the instruction.
        settings: `workdir`, `journal`, `budget`, `cancel`, `on_event`, as for `MultiStepAgent.run`.

    Attributes:
        state: the session: `steps` is the history, `task_tree` the root task.
    """

    def __init__(self, agent: MultiStepAgent, task: str, **settings: Any):
        self.agent = agent
        self.state = AgentSession(task, agent=agent.name)
        self._settings = settings
        self._next: list[Action] = []  # decided, not handed out yet
        self._told: list[Any] = []  # what came of the step's actions so far
        self._waiting: Action | None = None  # handed out, without an observation
        self._last: Action | None = None  # handed out, at the end of the task

    def __enter__(self) -> Stepper:
        self.agent.check()
        run = self.state.run = Run(self.agent, self.state, **self._settings)
        run.begin()
        try:
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
        """The next action. The model reads its own errors, and is asked again.

        The last action is a `FinishAction` or a `RejectAction`, whatever ended the task: also a
        call of `stop`, or code that called it by `act`.

        Args:
            state: this stepper's own.

        Raises:
            InputError: the last action has no observation yet, or the task has ended.
            LimitReached: the agent's `max_steps`, or a limit of the budget.
            ModelError: the model cannot be asked.
        """
        if state is not self.state or state.run is None:
            raise InputError("step: not the state of this stepper, or not within its `with`")
        if self._waiting is not None or self._last is not None:
            asked = "the task has ended" if self._last else "observe() what came of the last one"
            raise InputError(f"step: there is no next action: {asked}")
        action: Action | None = None
        while state.finish is None:
            if not self._next:
                self._next = self._decided()
                continue
            action = self._next.pop(0)
            if not self._ends(action):
                self._waiting = action
                return action
            self._tell(self.agent.step_action(state, action))
        self._last = _last_action(action, state.finish)
        return self._last

    def observe(self, observation: Observation | str) -> None:
        """Tell what came of the action that `step` gave last.

        Raises:
            InputError: there is none that waits for it.
        """
        action, self._waiting = self._waiting, None
        if action is None:
            raise InputError("observe: no action waits for an observation")
        if isinstance(observation, ComputerObservation):
            run_of(self.state).record_screen(action, observation)
        self._tell(str(observation))

    def act(self) -> Any:
        """Have the agent itself carry out the action that `step` gave last, by its own functions.

        Returns:
            What came of it, as it stands in the step's row.

        Raises:
            InputError: there is none that waits.
        """
        action, self._waiting = self._waiting, None
        if action is None:
            raise InputError("act: no action waits to be carried out")
        seen = self.agent.step_action(self.state, action)
        self._tell(seen)
        return seen

    def search_memory(self, query: str) -> list[str]:
        """Earlier steps that hold words of the query, the best first."""
        return self.state.search(query)

    def _ends(self, action: Action) -> bool:
        """Whether an action ends the task: the agent itself carries it out."""
        if isinstance(action, ToolCall):
            return action.name in run_of(self.state).calls.terminal
        return isinstance(action, FinishAction | RejectAction)

    def _decided(self) -> list[Action]:
        """The actions of a new step; none if the model's reply was of no use."""
        run = run_of(self.state)
        if len(self.state.steps) >= self.agent.max_steps:
            raise LimitReached("steps", f"{self.agent.name}: {self.agent.max_steps} steps are done")
        run.begin_step()
        try:
            return self.agent.decide(self.state)
        except (ParseError, ContentFiltered) as e:
            self._tell(run.fault(e))
            return []

    def _tell(self, seen: Any) -> None:
        """One action is done; the step has its observation when all of them are."""
        self._told.append(seen)
        if self._next and self.state.finish is None:
            return
        told, self._told, self._next = self._told, [], []
        observation = several_observed(told)
        data = ObservationData(observation=observation)
        run_of(self.state).record(EventKind.OBSERVATION, data)
        run_of(self.state).emit("step_ended", text=observation_text(observation)[:200])

    def _end(self, error: BaseException | None) -> None:
        state, run = self.state, run_of(self.state)
        reason, message = StopReason.CANCELLED, "its driver left it"
        if error is not None:
            reason, message = stop_reason_for(error), str(error)
        elif state.finish is not None:
            reason, message = normal_stop_reason(state, self.agent.name, self.agent.max_steps)
            self.agent.finalize(state)
        try:
            self.agent.end_run(state)
        finally:
            run.close()
            record_ending(state, reason, message, error)


def _last_action(action: Action | None, finish: Mapping[str, Any]) -> Action:
    """The action that ended a task, as its driver expects it.

    Args:
        action: the action that was carried out last, if `step` did it.
        finish: what it left in the session.
    """
    if isinstance(action, FinishAction | RejectAction):
        return action
    if finish.get("rejected"):
        return RejectAction(reason=finish["log"])
    return FinishAction(output=finish["output"], log=finish["log"])
