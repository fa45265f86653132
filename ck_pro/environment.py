"""`Environment`: the world an agent acts in, apart from its own Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ck_pro.events import Action, Observation


class Environment(ABC):
    """A world that can be looked at and acted on: a browser, a desktop, a game.

    One environment belongs to one run; the agent's `init_run` makes it and `end_run` closes it.
    Methods may be called from several threads, since code actions may use threads.

    Raises:
        EnvironmentFailure: from any method, when the world itself broke. An action that merely
            failed is an observation that says so.
    """

    taken_up: bool = False
    """Whether this is a world that an earlier run left (`suspend`), as it was."""

    @abstractmethod
    def observe(self) -> Observation:
        """What can be seen now. Changes nothing."""

    @abstractmethod
    def execute(self, action: Action) -> Observation:
        """Do one thing and tell what came of it."""

    def named(self, action: Action) -> Action:
        """The action with what it would reach said in it, for approvers. Changes nothing.

        `execute` of that action fails if it would reach something else by then.
        """
        return action

    @abstractmethod
    def close(self) -> None:
        """Release everything; harmless when repeated."""

    def suspend(self) -> dict[str, Any] | None:
        """Let go of the world without ending it, for a run that pauses.

        Returns:
            What a new environment needs to take it up again (JSON-able); None where that cannot be
            done: the world was closed.
        """
        self.close()
        return None

    def state(self) -> dict[str, Any]:
        """JSON-able facts about the world for the log (such as the page's address)."""
        return {}
