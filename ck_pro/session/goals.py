"""Goals, the task tree, and the progress state that planners write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ck_pro.events.event_parts import ProgressState
from ck_pro.exceptions import InputError, ParseError

TaskState = Literal["open", "in_progress", "completed", "verified", "abandoned"]
TASK_STATES: tuple[TaskState, ...] = get_args(TaskState)
_CLOSED = ("completed", "verified", "abandoned")

PROGRESS_KEYS = ("completed_list", "todo_list", "experience", "information")
"""Keys of a planner's reply: completed and open sub-tasks, lessons, findings."""


@dataclass(frozen=True)
class Goal:
    """A goal of an agent, in addition to its task.

    Attributes:
        name: the goal, or its short name.
        description: what it means; "" if the name says it.
        priority: goals with a lower number come first in the prompt.
    """

    name: str
    description: str = ""
    priority: int = 0

    def __str__(self) -> str:
        return f"{self.name}: {self.description}" if self.description else self.name


@dataclass
class Task:
    """A task and its sub-tasks; the root is the user's task. Ids are "0", "0.0", "0.1.2"."""

    goal: str
    id: str = "0"
    state: TaskState = "open"
    subtasks: list[Task] = field(default_factory=list)

    def add(self, goal: str, parent: str = "0") -> Task:
        """Add a sub-task to the task with id `parent`, and return it."""
        above = self.find(parent)
        made = Task(goal, id=f"{above.id}.{len(above.subtasks)}")
        above.subtasks.append(made)
        return made

    def modify(self, task_id: str, state: str) -> None:
        """Set a task's state.

        Closing a task ("completed", "verified", "abandoned") also closes its sub-tasks that are
        open or in progress. A task in progress puts the open tasks above it in progress.

        Raises:
            InputError: the tree has no such task, or the state is unknown.
        """
        if state not in TASK_STATES:
            raise InputError(f"no state '{state}'; known are: {', '.join(TASK_STATES)}")
        task = self.find(task_id)
        task.state = state
        if state in _CLOSED:
            for below in task:
                if below.state not in _CLOSED:
                    below.state = state
        elif state == "in_progress":
            for above in self:
                if above.state == "open" and task_id.startswith(f"{above.id}."):
                    above.state = state

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as JSON data."""
        below = [task.to_dict() for task in self.subtasks]
        return {"id": self.id, "goal": self.goal, "state": self.state, "subtasks": below}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """Return the tree that `to_dict` wrote."""
        below = [cls.from_dict(task) for task in data["subtasks"]]
        return cls(data["goal"], data["id"], data["state"], below)

    def text(self) -> str:
        """Return the sub-tasks as lines: id, state and goal."""
        lines = []
        for task in self:
            if task is not self:
                indent = "  " * (task.id.count(".") - 1)
                lines.append(f"{indent}- {task.id} [{task.state}] {task.goal}")
        return "\n".join(lines)

    def find(self, task_id: str) -> Task:
        """Return the task with this id.

        Raises:
            InputError: the tree has no such task.
        """
        for task in self:
            if task.id == task_id:
                return task
        raise InputError(f"no task '{task_id}'; known are: {', '.join(t.id for t in self)}")

    def __iter__(self) -> Iterator[Task]:
        yield self
        for below in self.subtasks:
            yield from below

    def progress(self) -> dict[str, list[str]]:
        """Return the progress lists, from the tree's leaves."""
        leaves = [t for t in self if not t.subtasks and t is not self]
        return {
            "completed_list": [t.goal for t in leaves if t.state in ("completed", "verified")],
            "todo_list": [t.goal for t in leaves if t.state not in _CLOSED],
        }

    @classmethod
    def from_progress(cls, goal: str, state: ProgressState) -> Task:
        """Build a flat tree from a planner's progress state."""
        root = cls(goal)
        for done in state.get("completed_list", ()):
            root.add(str(done)).state = "completed"
        for todo in state.get("todo_list", ()):
            root.add(str(todo))
        return root


def parse_progress(value: Any) -> ProgressState:
    """Check a planner's parsed reply, and convert it to the progress state.

    Args:
        value: a mapping with some of `PROGRESS_KEYS`; other keys stay unchanged. A string in place
            of a list becomes a list of one.

    Raises:
        ParseError: the value is not a mapping, has none of the keys, or an entry is not a list.
    """
    if not isinstance(value, Mapping):
        raise ParseError(f"the plan must be a dict, not {type(value).__name__}")
    state = {str(k): v for k, v in value.items()}
    if not state.keys() & {*PROGRESS_KEYS, "question"}:
        raise ParseError(f"the dict has none of the keys {', '.join(PROGRESS_KEYS)}")
    for key in PROGRESS_KEYS:
        entry = state.setdefault(key, [])
        if isinstance(entry, str):
            state[key] = [entry] if entry else []
        elif isinstance(entry, tuple | set | frozenset):
            state[key] = list(entry)
        elif not isinstance(entry, list):
            raise ParseError(f"'{key}' must be a list, not {type(entry).__name__}")
    try:
        plain: ProgressState = json.loads(json.dumps(state, allow_nan=False))
    except (TypeError, ValueError) as e:
        raise ParseError(f"the plan may contain only texts, numbers and lists: {e}") from None
    return plain
