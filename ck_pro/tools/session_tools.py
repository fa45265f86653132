"""Tools for the session itself: its task tree, its memory, and messages to the user."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ck_pro.exceptions import InputError, ToolError
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool


class _SessionTool(Tool):
    """A tool that works only in a run: `call` does the work."""

    def call(self, run: RunContext, **arguments: Any) -> str:
        """Do the work of `execute` in a run."""
        raise NotImplementedError

    def bind(self, run: RunContext) -> Callable[..., str]:
        """Return the function for one run."""
        execute, call = self.execute, self.call
        signature = inspect.signature(execute)

        @functools.wraps(execute)
        def function(*args: Any, **kwargs: Any) -> str:
            try:
                return call(run, **signature.bind(*args, **kwargs).arguments)
            except InputError as e:
                raise ToolError(f"{self.name}: {e}") from None

        return function

    def _outside(self) -> ToolError:
        return ToolError(f"{self.name}: possible only in a run")


class AddTaskTool(_SessionTool):
    """Adds a sub-task to the task tree."""

    name = "add_task"

    def execute(self, goal: str, parent: str = "0") -> str:
        """Add a sub-task to the task tree; return its id.

        Args:
            goal: what to do, in a few words.
            parent: id of the task above it; "0" is the whole task.
        """
        raise self._outside()

    def call(self, run: RunContext, goal: str, parent: str = "0") -> str:  # type: ignore[override]
        """See `execute`."""
        return run.add_task(goal, parent)


class ModifyTaskTool(_SessionTool):
    """Changes the state of a task in the task tree."""

    name = "modify_task"

    def execute(self, task_id: str, state: str) -> str:
        """Set the state of a task: open, in_progress, completed, verified or abandoned.

        Args:
            task_id: id of the task, such as "0.1".
            state: the new state. Its open sub-tasks close with it.
        """
        raise self._outside()

    def call(self, run: RunContext, task_id: str, state: str) -> str:  # type: ignore[override]
        """See `execute`."""
        run.modify_task(task_id, state)
        return f"task {task_id} is {state}"


class SearchMemoryTool(_SessionTool):
    """Searches the steps of this session, and the agent's memory of earlier ones."""

    name = "search_memory"
    on_resume = "again"

    def execute(self, query: str) -> str:
        """Search the steps so far, also those that the prompt omits, and earlier sessions.

        Args:
            query: a few words.
        """
        raise self._outside()

    def call(self, run: RunContext, query: str) -> str:  # type: ignore[override]
        """See `execute`."""
        return "\n\n".join(run.search_memory(query)) or f"No memory matches {query!r}."


class SendMessageTool(_SessionTool):
    """Sends a message to the user; the run continues."""

    name = "send_message"

    def execute(self, text: str) -> str:
        """Send a message to the user, without waiting for an answer.

        Args:
            text: the message.
        """
        raise self._outside()

    def call(self, run: RunContext, text: str) -> str:  # type: ignore[override]
        """See `execute`."""
        run.tell(text)
        return "The message was sent."


def session_tools() -> list[Tool]:
    """Return the tools of the session, for an agent's `tools`."""
    return [AddTaskTool(), ModifyTaskTool(), SearchMemoryTool(), SendMessageTool()]
