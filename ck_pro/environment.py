"""`Environment`: what an agent acts on, besides its Python worker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ck_pro.events import Action, Observation


class Environment(ABC):
    """A system that can be observed and acted on: a browser, a desktop, a game.

    One environment belongs to one run: the agent's `init_run` creates it and `end_run` closes it.
    Several threads may call its methods, since code actions may use threads.

    Raises:
        EnvironmentFailure: from any method, when the environment itself fails. A failed action
            is an observation that says so.
    """

    taken_up: bool = False
    """Whether this environment continues one that a previous run suspended, unchanged."""

    @abstractmethod
    def observe(self) -> Observation:
        """Return the current observation, without side effects."""

    @abstractmethod
    def execute(self, action: Action) -> Observation:
        """Execute one action and return the observation."""

    def named(self, action: Action) -> Action:
        """Return the action with a description of its target, for approvers; no side effects.

        `execute` of the returned action fails if its target has changed since.
        """
        return action

    @abstractmethod
    def close(self) -> None:
        """Release all resources; later calls have no effect."""

    def suspend(self) -> dict[str, Any] | None:
        """Disconnect from the environment without ending it, for a run that pauses.

        Returns:
            What a new environment needs to reconnect (JSON-able); None if that is not possible
            and the environment was closed.
        """
        self.close()
        return None

    def state(self) -> dict[str, Any]:
        """Return JSON-able facts about the environment for the log, such as the page's URL."""
        return {}
