"""`Environment`: what an agent acts on, besides its Python worker; `Holder` keeps some of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ck_pro import threads
from ck_pro.events import Action, ErrorObservation, Observation
from ck_pro.events.journal_events import PictureData

_log = logging.getLogger(__name__)
_RENEW_SECONDS = 20.0


class BoundTool(Protocol):
    """A tool of a run, as `Environment.execute_action` gets it."""

    name: str
    description: str

    def execute(self, **arguments: Any) -> Any:
        """Call the tool and return its result."""
        ...


class Environment:
    """A system that can be observed and acted on: a browser, a desktop, a game, an API.

    An agent gets one by its setting `environment`, or creates one per run in `init_run`. Several
    threads may call its methods, since code actions may use threads. Override what the system
    supports.

    Raises:
        EnvironmentFailure: from any method, when the environment itself fails. A failed action
            is an observation that says so.
    """

    taken_up: bool = False
    """Whether this environment continues that of a previous run, on the same page."""
    step_pictures: bool = False
    """Whether a run journals a `picture` at the start of each step and before each action."""

    def observe(self) -> Observation:
        """Return the current observation, without side effects; empty text for none."""
        return Observation()

    def execute(self, action: Action) -> Observation:
        """Execute one action other than a tool call, and return the observation."""
        return ErrorObservation(text=f"Error: no action of kind {action.kind!r} is possible here.")

    def execute_action(self, tool: BoundTool, arguments: Mapping[str, Any]) -> Any:
        """Execute one call of a tool, already checked and approved, and return its result.

        Override it to do the call elsewhere, to limit or count calls, or to add facts to results.

        Args:
            tool: the called tool; `tool.execute(**arguments)` runs it.
            arguments: the arguments by name.
        """
        return tool.execute(**arguments)

    def named(self, action: Action) -> Action:
        """Return the action with a description of its target, for approvers; no side effects.

        `execute` of the returned action fails if its target has changed since.
        """
        return action

    def picture(self, action: Action | None = None) -> PictureData | None:
        """Return a small picture of what the environment shows, for people; no side effects.

        Args:
            action: the action that follows, for `targets`.

        Returns:
            The picture; None if there is none, or if the action only reads.
        """
        return None

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

    def park(self) -> dict[str, Any] | None:
        """Disconnect as `suspend` does, for a later run of this process: it ends with the process.

        Returns:
            As `suspend`.
        """
        return self.suspend()

    def lease(self) -> dict[str, Any] | None:
        """Return what a new environment needs to reconnect if this process is killed.

        JSON-able; None if the environment ends with this process.
        """
        return None

    def hold(self, held: bool) -> bool:
        """Keep the environment while the run waits for a person, also if this process is killed.

        A run calls it with True when the wait starts and every 20 seconds, with False at its end.
        A lease that needs requests is renewed by it. See `lease`.

        Returns:
            Whether the environment is kept.
        """
        return False

    def state(self) -> dict[str, Any]:
        """Return JSON-able facts about the environment for the log, such as the page's URL."""
        return {}


@dataclass
class _Held:
    environment: Environment
    waits: int = 0


class Holder:
    """The environments that runs hold while they wait for a person. Thread-safe.

    A person may take hours, and a run that waits sends no requests. So a thread calls
    `Environment.hold` again and again until no wait is left.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, _Held] = {}
        self._changed = threading.Event()
        self._renewing = False

    @contextmanager
    def held(self, environments: Sequence[Environment]) -> Iterator[None]:
        """Hold some environments; one that another wait also needs stays held afterwards."""
        with self._lock:
            for environment in environments:
                one = self._held.setdefault(id(environment), _Held(environment))
                one.waits += 1
                _hold(environment, True)
            if self._held and not self._renewing:
                self._renewing = True
                threads.submit(self._renew)
        try:
            yield
        finally:
            with self._lock:
                for environment in environments:
                    one = self._held[id(environment)]
                    one.waits -= 1
                    if not one.waits:
                        del self._held[id(environment)]
                        _hold(environment, False)
                self._changed.set()

    def _renew(self) -> None:
        while True:
            self._changed.wait(_RENEW_SECONDS)
            with self._lock:
                if not self._held:
                    self._renewing = False
                    return
                if not self._changed.is_set():
                    for one in self._held.values():
                        _hold(one.environment, True)
                self._changed.clear()


def _hold(environment: Environment, held: bool) -> None:
    try:
        environment.hold(held)
    except Exception:  # noqa: BLE001 - the next action reports a lost browser
        _log.exception("%s could not be held", type(environment).__name__)
