"""`FakeEnvironment`: an environment with a list of texts as observations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ck_pro.environment import Environment
from ck_pro.events import Action, BrowserObservation, Observation


class FakeEnvironment(Environment):
    """An environment with a list of texts as observations.

    Args:
        observations: texts; the first is the initial observation. Each action moves to the next
            one, and stays at the last.
        respond: used instead of `observations`: a function from action to observation, or to an
            error to raise.

    Attributes:
        actions: what was executed, in order.
        closed: how many times it was closed.
    """

    def __init__(
        self,
        observations: Sequence[str] = ("nothing here",),
        respond: Callable[[Action], Observation] | None = None,
    ):
        self._observations, self._respond = list(observations), respond
        self._lock = threading.Lock()
        self._now: Observation = BrowserObservation(text=self._observations[0])
        self.actions: list[Action] = []
        self.closed = 0

    def observe(self) -> Observation:
        """Return the current observation."""
        return self._now

    def execute(self, action: Action) -> Observation:
        """Record the action and move to the next observation."""
        with self._lock:
            self.actions.append(action)
            if self._respond is not None:
                self._now = self._respond(action)
            else:
                at = min(len(self.actions), len(self._observations) - 1)
                self._now = BrowserObservation(text=self._observations[at])
            return self._now

    def close(self) -> None:
        """Count the call."""
        self.closed += 1
