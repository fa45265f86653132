"""`RunContext`: the interface of a live run for the rooms below `run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ck_pro.environment import Environment
from ck_pro.events import Action, Observation
from ck_pro.model import LLM, Reply


class RunContext(Protocol):
    """The parts of a live run that a session and tools use; see `Tool.bind`.

    `ck_pro.run.run.Run` implements it.

    Attributes:
        environment: what the run acts on besides its Python worker; None if it has none.
        notices: lines that the next prompt shows.
        model: the model of the run's agent.
    """

    environment: Environment | None
    notices: list[str]
    model: LLM

    @property
    def model_multimodal(self) -> LLM | None:
        """The model for pictures, of the run's agent or of its nearest caller with one."""
        ...

    @property
    def workdir(self) -> Path:
        """The working directory of the code and of tools."""
        ...

    def check(self) -> None:
        """Return if the run may continue; call it in tools that take long.

        Raises:
            RunEnding: the run must stop.
        """
        ...

    def ask(self, question: str) -> str | None:
        """Return the user's answer to a question; None without a user or an answer."""
        ...

    def tell(self, text: str) -> None:
        """Send a message to the user, through `on_event`."""
        ...

    def add_task(self, goal: str, parent: str = "0") -> str:
        """Add a sub-task to the task tree of the session; return its id.

        Raises:
            InputError: no task has the id `parent`, or the goal is empty.
        """
        ...

    def modify_task(self, task_id: str, state: str) -> None:
        """Set the state of a task.

        Raises:
            InputError: the id or the state is unknown.
        """
        ...

    def search_memory(self, query: str) -> list[str]:
        """Return texts of the session and of the agent's memory that match, best match first."""
        ...

    def act(self, action: Action) -> Observation:
        """Have an action approved, execute it in the environment and journal it.

        Raises:
            GuardStopped: the approver stops the run.
            EnvironmentFailure: the run has no environment, or the environment failed.
        """
        ...

    def show_picture(self, url: str, caption: str) -> bool:
        """Show a picture in the next prompt; return False if the run stores no prompts.

        Args:
            url: the picture as a data URL.
            caption: one line above the picture.
        """
        ...

    def call_model(
        self, llm: LLM, messages: Sequence[dict[str, Any]], phase: str, **call_kwargs: Any
    ) -> Reply:
        """Call a model; the call is logged and counts against the budget.

        Args:
            llm: the model.
            messages: chat messages.
            phase: "tool:NAME" for the call of a tool.
            call_kwargs: further parameters of the model.

        Raises:
            ModelError, LimitReached, Cancelled: see `LLM`.
        """
        ...
