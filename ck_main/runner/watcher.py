"""Who is told how a run goes on: displays, the status for programs, a node of a cluster."""

from __future__ import annotations

from typing import Any, Protocol

from ck_main.output.row_file import Outcome
from ck_main.tasks.dataset import Task


class Watcher(Protocol):
    """What the runner tells, from several threads; `ck_main.ui.display` has those for people."""

    def started(self, task: Task) -> None:
        """A task begins."""

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        """Something happened in a task; the dicts of `MultiStepAgent.run`'s `on_event`."""

    def ended(self, outcome: Outcome) -> None:
        """A task ended and its row is in the output."""

    def note(self, text: str) -> None:
        """One line that a person should see."""
