"""What the person at the seat handed over: to which model, and for which agent or run."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ck_pro.exceptions import InputError, ModelError
from ck_pro.model.backends.backend import HandedOver
from ck_pro.model.backends.targets import without_secrets
from ck_pro.model.types import CallContext

SCOPES = ("agent", "run")
_TASK_CHARS = 200
_STORED_FAILURES = 100


def run_of(context: CallContext) -> str:
    """Return the name of a run: the agents of one task have the same."""
    return hashlib.sha256((context.workdir or context.sid).encode()).hexdigest()[:12]


@dataclass(eq=False)
class HandOver:
    """The later calls of one agent or one run, which a model completes.

    Attributes:
        id: name in addresses.
        scope: "agent" (one session) or "run" (all agents of one task).
        key: id of the session, or name of the run.
        target: the `call_target`.
        agent, task: of the caller, to show.
        completed: number of calls that the model completed.
        end: removes it after the failure of the first call; stores the failure.
    """

    id: str
    scope: str
    key: str
    target: str
    agent: str
    task: str
    end: Callable[[HandOver, CallContext, ModelError], None]
    changed: Callable[[], None]
    completed: int = 0

    def covers(self, context: CallContext) -> bool:
        """Whether it includes the calls of this caller."""
        return self.key == (context.sid if self.scope == "agent" else run_of(context))

    def signal(self, context: CallContext) -> HandedOver:
        """Return what `LLM` needs to call the model.

        A call comes back to the person if the model has not completed any call yet.
        """

        def ended(error: ModelError | None) -> bool:
            if error is None:
                self.completed += 1
                self.changed()
                return False
            if self.completed:
                return False
            self.end(self, context, error)
            return True

        return HandedOver(self.target, ended)

    def facts(self) -> dict[str, Any]:
        """Return what the page shows, as JSON data."""
        names = ("id", "scope", "agent", "task", "completed")
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "target": without_secrets(self.target)}


class HandOvers:
    """What was handed over in this process. Thread-safe.

    Args:
        changed: called after each change.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = threading.Lock()
        self._all: list[HandOver] = []
        self._failures: dict[tuple[str, str, int], str] = {}

    def add(self, context: CallContext, scope: str, target: str) -> HandOver:
        """Hand the later calls of a caller over; this replaces an earlier one of the same scope."""
        key = context.sid if scope == "agent" else run_of(context)
        facts = (context.agent, context.task[:_TASK_CHARS])
        more = (self._end, self._changed)
        handed = HandOver(secrets.token_hex(6), scope, key, target, *facts, *more)
        with self._lock:
            self._all = [one for one in self._all if (one.scope, one.key) != (scope, key)]
            self._all.append(handed)
        self._changed()
        return handed

    def find(self, context: CallContext) -> HandOver | None:
        """Return what covers a caller; that of the agent goes before that of the run."""
        with self._lock:
            found = [one for one in self._all if one.covers(context)]
        return min(found, key=lambda one: SCOPES.index(one.scope), default=None)

    def check(self, context: CallContext) -> None:
        """Raise HandedOver if a model completes the calls of a caller."""
        found = self.find(context)
        if found is not None:
            raise found.signal(context)

    def all(self) -> list[HandOver]:
        """Return what is handed over, oldest first."""
        with self._lock:
            return [*self._all]

    def take_back(self, name: str) -> None:
        """Let later calls wait for the person again.

        Raises:
            InputError: there is none of this id.
        """
        with self._lock:
            left = [one for one in self._all if one.id != name]
            if len(left) == len(self._all):
                raise InputError("it was taken back already")
            self._all = left
        self._changed()

    def failure_of(self, context: CallContext) -> str:
        """Return why a call came back to the person, once; "" if it did not."""
        with self._lock:
            return self._failures.pop(_place(context), "")

    def _end(self, handed: HandOver, context: CallContext, error: ModelError) -> None:
        with self._lock:
            self._all = [one for one in self._all if one is not handed]
            self._failures[_place(context)] = f"{without_secrets(handed.target)} failed: {error}"
            for place in list(self._failures)[:-_STORED_FAILURES]:
                del self._failures[place]
        self._changed()


def _place(context: CallContext) -> tuple[str, str, int]:
    return (context.sid, context.phase, context.step)
