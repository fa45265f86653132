"""Goals, the task tree, and the progress state that planners write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ck_pro.events.event_parts import ProgressState
from ck_pro.exceptions import InputError, ParseError

TaskState = Literal["open", "completed", "abandoned"]

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

    def modify(self, task_id: str, state: TaskState) -> None:
        """Set a task's state; completing a task also completes its open sub-tasks."""
        task = self.find(task_id)
        task.state = state
        if state == "completed":
            for below in task.subtasks:
                if below.state == "open":
                    self.modify(below.id, state)

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
            "completed_list": [t.goal for t in leaves if t.state == "completed"],
            "todo_list": [t.goal for t in leaves if t.state == "open"],
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
