"""`FakeEnvironment`: an environment with a list of texts as observations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ck_pro.environment import Environment
from ck_pro.events import Action, BrowserObservation, Observation
from ck_pro.events.journal_events import PictureData


class FakeEnvironment(Environment):
    """An environment with a list of texts as observations.

    Args:
        observations: texts; the first is the initial observation. Each action moves to the next
            one, and stays at the last.
        pictures: data URLs of the pictures that a run journals; each action moves to the next one,
            and stays at the last. Without them, the run journals none.
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
        pictures: Sequence[str] = (),
    ):
        self._shown, self.step_pictures = list(pictures), bool(pictures)
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

    def picture(self, action: Action | None = None) -> PictureData | None:
        """Return the current picture; an action has one target, which covers the whole picture."""
        if not self._shown:
            return None
        image = self._shown[min(len(self.actions), len(self._shown) - 1)]
        picture = PictureData(image=image, width=100, height=50, elements={"1": [0, 0, 100, 50]})
        return picture if action is None else {**picture, "targets": [[0, 0, 100, 50]]}

    def close(self) -> None:
        """Count the call."""
        self.closed += 1
