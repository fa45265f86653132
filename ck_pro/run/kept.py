"""What a calling run keeps of its ended sub-agents, for calls that continue them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ck_pro.agent_settings import AgentSettings
from ck_pro.executor import CodeExecutor
from ck_pro.session import AgentSession

if TYPE_CHECKING:
    from ck_pro.run.run import Run

_log = logging.getLogger(__name__)
_MAX_KEPT = 4
_SHOWN_CHARS = 200
_CONTINUED = "This continues an earlier task of yours, in the same environment. That task was: {}"
_LOST = " Its variables are lost."


@dataclass
class KeptResources:
    """The suspended environment and the worker of an ended run.

    Attributes:
        agent: the agent of that run; only its own runs can use them.
        sessions: ids of its session and of those that it continued.
        lease: the lease of the environment; None if it has ended.
        executor: the worker with its variables; None if there is none.
        discard: ends the environment of a lease.
    """

    agent: AgentSettings
    sessions: frozenset[str]
    lease: Any
    executor: CodeExecutor | None
    discard: Callable[[Any], None]

    def close(self) -> None:
        """End the environment and the worker; errors are logged."""
        try:
            if self.executor is not None:
                self.executor.close()
            if self.lease is not None:
                self.discard(self.lease)
        except Exception:  # noqa: BLE001 - they belong to a run that has ended
            _log.exception("%s: its resources did not close", self.agent.name)


class Kept:
    """The resources of the latest ended sub-agents of one run. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: list[KeptResources] = []
        self._taken: set[str] = set()

    def add(self, resources: KeptResources) -> None:
        """Keep resources; end the oldest ones beyond the limit."""
        with self._lock:
            self._all.append(resources)
            ended, self._all = self._all[:-_MAX_KEPT], self._all[-_MAX_KEPT:]
        for one in ended:
            one.close()

    def take(self, session_id: str, agent: AgentSettings) -> KeptResources | None:
        """Return the resources of a session of this agent, which are no longer kept."""
        with self._lock:
            self._taken.add(session_id)
            for index, one in enumerate(self._all):
                if session_id in one.sessions and one.agent is agent:
                    self._taken |= one.sessions
                    return self._all.pop(index)
        return None

    def was_taken(self, session_id: str) -> bool:
        """Whether the resources of a session were asked for in this process."""
        with self._lock:
            return session_id in self._taken

    def close(self) -> None:
        """End all resources."""
        with self._lock:
            ended, self._all = self._all, []
        for one in ended:
            one.close()


def keep_resources(child: Run, discard: Callable[[Any], None]) -> Any:
    """Keep the environment and worker of a sub-agent that has ended, until its caller ends.

    Args:
        child: the run of the sub-agent.
        discard: ends the environment of a lease.

    Returns:
        The lease of its environment.
    """
    assert child.parent is not None
    environment = child.take_environment()
    lease = environment.park() if environment is not None else None
    sessions = child.continued_ids | {child.session.id}
    executor = child.run_code.detach()
    child.parent.kept.add(KeptResources(child.agent, sessions, lease, executor, discard))
    return lease


def take_over(run: Run, session: AgentSession) -> None:
    """Use the environment and worker of an ended session of the same agent and caller.

    What has ended meanwhile is replaced by a new one.
    """
    run.continued, caller = session, run.parent
    if caller is not None:
        in_journal = caller.was_resumed and not caller.kept.was_taken(session.id)
        kept = caller.kept.take(session.id, run.agent)
        if kept is None:
            run.lease = session.lease if in_journal else None
        else:
            run.lease, run.continued_ids = kept.lease, kept.sessions
            if kept.executor is not None:
                run.run_code.adopt(kept.executor)
    known = bool(run.run_code.describe_names())
    task = " ".join(session.task.split())
    shown = task if len(task) <= _SHOWN_CHARS else f"{task[:_SHOWN_CHARS]}..."
    run.notices.append(_CONTINUED.format(shown) + ("" if known else _LOST))
