"""Records of a session besides the loop's: tasks and typed actions; search in its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ck_pro.events import Action, ComputerObservation, EventKind, Observation
from ck_pro.events.journal_events import ActedData, TaskChangedData
from ck_pro.exceptions import InputError
from ck_pro.session.goals import TASK_STATES

if TYPE_CHECKING:
    from ck_pro.run.run import Run


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
