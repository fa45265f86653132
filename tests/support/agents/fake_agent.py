"""An agent without a model, for the tests of what is around agents."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ck_main.output.row import Outcome
from ck_main.tasks.dataset import Task, safe_name
from ck_pro.config import KwargsInitializable
from ck_pro.events import EventKind
from ck_pro.journal import Journal
from ck_pro.model import LLM, Budget, Usage
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import PriorUsage
from ck_pro.session import AgentSession, StopReason

Behaviour = Callable[["Call"], Any]


class Call:
    """One call of `FakeAgent.run`, as the behaviour of a test sees it."""

    def __init__(
        self,
        task: str,
        session: AgentSession,
        workdir: Path,
        journal: Journal,
        budget: Budget,
        cancel: threading.Event,
        on_event: Callable[[dict[str, Any]], None],
        info: Mapping[str, Any] | None = None,
    ):
        self.task, self.session, self.workdir, self.journal = task, session, workdir, journal
        self.budget, self.cancel, self.on_event = budget, cancel, on_event
        self.info = info

    def record(self, kind: str, data: dict[str, Any], phase: str | None = None) -> None:
        """Journal an event and apply it, as a run does."""
        event = self.journal.append(
            EventKind(kind), sid=self.session.id, i=0, phase=phase, data=data
        )
        self.session.apply(event)

    def emit(self, kind: str, **facts: Any) -> None:
        event = {"kind": kind, "path": ["fake"], "sid": self.session.id, "step": 0}
        self.on_event({**event, "tokens": 7, "money": 0.25, **facts})

    def end(self, reason: StopReason, output: str = "", message: str = "") -> None:
        self.record("end", {"final_results": {"output": output, "log": ""}})
        status = {"status": reason.status.value, "stop_reason": reason.value, "message": message}
        self.record("status", status)


class FakeAgent(KwargsInitializable):
    """Answers by a plain function of the task: the answer, or an exception to raise."""

    name: str = "fake"
    model: LLM = LLM(call_target="replay:none.jsonl", backend=None)
    behaviour: Any = None
    approver: Any = None
    person: Any = None
    store_io: bool = True
    max_seconds: float | None = None

    def run(self, task: str, **kwargs: Any) -> AgentSession:
        call = Call(task, **kwargs)
        facts = {"task": task, "agent": self.name, "info": dict(call.info or {})}
        call.record("session", facts)
        return self._work(call)

    def resume(
        self,
        *,
        found: tuple[InterruptedSession, PriorUsage],
        answer: str = "",
        approve: bool = False,
        **kwargs: Any,
    ) -> AgentSession:
        session = found[0].session
        call = Call(session.task, session=session, **kwargs)
        call.record("resumed", {"redo": False, "learned": ""})
        return self._work(call)

    def _work(self, call: Call) -> AgentSession:
        call.record("step", {})
        call.budget.charge_step()
        call.emit("step_started")
        usage = Usage(5, 0, 2)
        call.budget.charge(usage, 0.25)
        counts = usage.to_dict() | {"total_tokens": 7}
        call.record("model_call", {"model": "fake", "usage": counts}, "action")
        found = self.behaviour(call) if self.behaviour else call.task.upper()
        if isinstance(found, StopReason):
            call.end(found, message=f"it was {found}")
        else:
            call.end(StopReason.FINISHED, str(found))
        return call.session


class Watching:
    """A watcher that stores what the runner reports."""

    def __init__(self) -> None:
        self.started_ids: list[str] = []
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.outcomes: list[Outcome] = []
        self.notes: list[str] = []

    def started(self, task: Task) -> None:
        self.started_ids.append(task.id)

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        self.events.append((task_id, event))

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def note(self, text: str) -> None:
        self.notes.append(text)


def make_task(name: str, question: str = "q", **more: Any) -> Task:
    return Task(name, question, safe_name(name), original={"question": question}, **more)
