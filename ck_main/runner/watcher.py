"""Interface for observers of a run: displays, the status file, a node of a cluster."""

from __future__ import annotations

from typing import Protocol

from ck_main.output.row import Outcome
from ck_main.tasks.dataset import Task
from ck_pro.events.progress_events import ProgressEvent


class Watcher(Protocol):
    """Receives the runner's events, from several threads; see `ck_main.ui.display`."""

    def started(self, task: Task) -> None:
        """Handle the start of a task."""

    def event(self, task_id: str, event: ProgressEvent) -> None:
        """Handle an event of a task: a dict as `MultiStepAgent.run` passes to `on_event`."""

    def ended(self, outcome: Outcome) -> None:
        """Handle the end of a task whose row is in the output."""

    def note(self, text: str) -> None:
        """Display one line."""
