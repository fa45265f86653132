"""Records of a session besides the loop's: tasks, typed actions, pictures; search in its memory."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ck_pro.events import Action, ComputerObservation, EventKind, Observation
from ck_pro.events.journal_events import ActedData, PictureData, TaskChangedData
from ck_pro.exceptions import InputError
from ck_pro.session.goals import TASK_STATES

if TYPE_CHECKING:
    from ck_pro.run.run import Run


_log = logging.getLogger(__name__)


def add_task(run: Run, goal: str, parent: str) -> str:
    """Record a new sub-task; see `RunContext.add_task`."""
    if not goal.strip():
        raise InputError("the goal is empty: describe the task")
    with run.lock:
        above = run.session.task_tree.find(parent)
        task_id = f"{above.id}.{len(above.subtasks)}"
        data = TaskChangedData(id=task_id, state="open", goal=goal.strip(), parent=parent)
        run.record(EventKind.TASK_CHANGED, data)
    return task_id


def modify_task(run: Run, task_id: str, state: str) -> None:
    """Record the new state of a task; see `RunContext.modify_task`."""
    with run.lock:
        run.session.task_tree.find(task_id)
        if state not in TASK_STATES:
            raise InputError(f"no state {state!r}; known are: {', '.join(TASK_STATES)}")
        run.record(EventKind.TASK_CHANGED, TaskChangedData(id=task_id, state=state))


def search_memory(run: Run, query: str) -> list[str]:
    """Return matching texts of the session, then of the agent's memory."""
    return [*run.session.search(query), *run.agent.search_memory(query)]


def record_acted(run: Run, action: Action, observation: Observation) -> None:
    """Record an action with its observation; the screenshot of a computer is recorded elsewhere."""
    if isinstance(observation, ComputerObservation):
        observation = observation.model_copy(update={"image": ""})
    data = ActedData(action=action.to_dict(), observation=observation.to_dict())
    run.record(EventKind.ACTED, data)


class StepPictures:
    """Record pictures of a run's environment, if the environment has them switched on.

    A picture that fails costs the run nothing: a warning is logged, once per run.

    Args:
        run: the run.
    """

    def __init__(self, run: Run):
        self._run = run
        self._warned = self._acted = False

    def record_last(self) -> None:
        """Record a picture at the end of the run, if an action may have changed the last one."""
        if self._acted:
            self.record()

    def record(self, action: Action | None = None, call: int | None = None) -> None:
        """Record a picture.

        Args:
            action: the action that follows; None at the start of a step.
            call: the number of its call.
        """
        environment, journal = self._run.environment, self._run.journal
        if environment is None or not environment.step_pictures or journal.folder is None:
            return
        self._acted = call is not None
        try:
            picture = environment.picture(action)
            if picture is None:
                return
            if call is not None:
                # the picture at the start of the step has the boxes of all elements
                facts = {k: v for k, v in picture.items() if k != "elements"}
                picture = PictureData(**facts, call=call)  # type: ignore[typeddict-item]
            self._run.record(EventKind.PICTURE, picture)
        except Exception as e:  # noqa: BLE001 - logged; a viewer's picture must not end the run
            if not self._warned:
                self._warned = True
                _log.warning("no step picture: %s: %s", type(e).__name__, e)
