"""`InterruptedSession`: a session with the state of its step in progress, rebuilt from events."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.event_parts import AskedQuestion, GivenAnswer, GivenApproval
from ck_pro.events.journal_events import (
    CallData,
    ForkedData,
    LeasedData,
    ModelCallData,
    ObservationData,
    ResumedData,
    SelectedData,
    StartedData,
    StatusData,
    StepData,
    SubSessionData,
    SuspendedData,
    UserActedData,
)
from ck_pro.model import Reply
from ck_pro.session import AgentSession, Status, StopReason

_SHOWN = 500
_RESULT_SHOWN = 4000


@dataclass
class RecordedCall:
    """A function call of the step in progress.

    Attributes:
        number: number of the call in its session.
        ended: whether it returned, or raised an error that its caller could catch. A call that an
            interruption of the run ended (a stop for the user, a limit, a cancel) has not ended.
        ended_on_resume: whether it ended while this process resumed its step.
        result: its return value, if `answerable`.
        answerable: whether the record has the complete result, or the call ran a sub-agent.
        error: the error that it raised, as `Type: message`; also one that interrupted it.
        started_at, ended_at: Unix seconds; `ended_at` is infinite if no end was recorded.
        sessions: ids of the sub-agent's sessions, one per try.
        selected: which of several tries was selected.
        result_text: the result as text, shortened.
        execution: number of the code execution that made the call; see `Run.executions`.
    """

    number: int
    name: str
    arguments: dict[str, Any]
    ended: bool = False
    result: Any = None
    answerable: bool = False
    error: str = ""
    sessions: list[str] = field(default_factory=list)
    selected: SelectedData | None = None
    result_text: str = ""
    execution: int = 0
    ended_on_resume: bool = False
    started_at: float = 0.0
    ended_at: float = math.inf

    @property
    def key(self) -> str:
        """Key of equal calls: name and arguments."""
        return call_key(self.name, self.arguments)

    def describe_for_model(self) -> str:
        """Return the call and its outcome as one line."""
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.arguments.items())
        outcome = ""
        if self.error:
            outcome = f" {'raised' if self.ended else 'was stopped by'} {self.error}"
        elif self.ended:
            outcome = f" returned {self.result_text}"
        shown = _RESULT_SHOWN if self.ended_on_resume else _SHOWN
        return f"- {self.name}({arguments})"[:_SHOWN] + outcome[:shown]


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the key by which a repeated call finds its record."""
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


@dataclass
class InterruptedSession:
    """A session of an interrupted run.

    Attributes:
        session: the session, rebuilt from its events.
        in_progress: whether its last step has no observation yet.
        reply: the action reply of that step; None if it was not recorded.
        replied_at: time of the reply, in Unix seconds.
        calls: the calls of that step, in order.
        next_call: number of the next call.
        lease: lease of the environment of a suspended or killed run; None if there is none.
        user_actions: what the user did in the browser since the model's last prompt.
        interrupted: whether an interruption ended the session together with its caller, so that
            the call has no result.
        ended_at: end of the session, in Unix seconds; infinite if no end was recorded.
        guard_message: message of the approver's stop, if it stopped an action of this session.
        edited_reply: replaces the next action reply of a forked run; "" for none.
        unused_answers: of the main session: the user's answers that no session used yet, in order.
        new_answer: of the main session: the answer that the user gives now.
        last_answer: of the main session: the answer that the user gave to the previous resume, if
            that process was killed before the run ended.
        approvals: of the main session: the user's approvals that no session used yet.
        new_approval: of the main session: the approval that the user gives now.
        sessions: all sessions of the run by id, including this one.
    """

    session: AgentSession
    in_progress: bool = False
    reply: Reply | None = None
    replied_at: float = 0.0
    calls: list[RecordedCall] = field(default_factory=list)
    next_call: int = 0
    lease: Any = None
    user_actions: list[str] = field(default_factory=list)
    interrupted: bool = False
    ended_at: float = math.inf
    guard_message: str = ""
    edited_reply: str = ""
    unused_answers: list[GivenAnswer] = field(default_factory=list)
    new_answer: GivenAnswer | None = None
    last_answer: GivenAnswer | None = None
    approvals: list[GivenApproval] = field(default_factory=list)
    new_approval: GivenApproval | None = None
    sessions: dict[str, InterruptedSession] = field(default_factory=dict)

    def apply(self, event: JournalEvent) -> None:
        """Apply one event of the session; events come in order."""
        handler = _HANDLERS.get(event["kind"])
        if handler is not None:
            handler(self, event, event["data"])

    @property
    def has_acted(self) -> bool:
        """Whether the step in progress may have started its actions.

        A run that stores no replies (`store_io`) shows it by its calls.
        """
        return self.reply is not None or bool(self.calls)

    @property
    def asked(self) -> AskedQuestion | None:
        """The question that the run waits for; see `AgentSession.asked`.

        It may come from a sub-agent whose caller was killed before it recorded its own end.
        """
        if self.session.asked is not None or self.session.status is not Status.IN_PROGRESS:
            return self.session.asked
        questions = (one.session.asked for one in self.sessions.values())
        return next((asked for asked in questions if asked is not None), None)

    def is_replayable(self, on_resume: Callable[[str], str | None], workdir: Path) -> bool:
        """Whether the code of the step in progress may run again.

        Args:
            on_resume: returns `Tool.on_resume` by name; "adopt" for a sub-agent, None for an
                unknown function.
            workdir: the working directory of the code.
        """
        for call in self.calls:
            rule = on_resume(call.name)
            if rule in (None, "never") or (call.ended and not (call.answerable or call.error)):
                return False
        return not self._may_have_written(on_resume, workdir)

    def _may_have_written(self, on_resume: Callable[[str], str | None], workdir: Path) -> bool:
        """Whether the code of the step may have written into the working directory.

        Files of other origin do not count: those written while the code waited only for a
        sub-agent, and those that the user wrote after the end of the session.
        """
        spans = sorted((c.started_at, c.ended_at, on_resume(c.name) == "adopt") for c in self.calls)
        sequential = all(a[1] <= b[0] for a, b in pairwise(spans))
        foreign = [(self.ended_at, math.inf)]
        foreign += [(start, end) for start, end, is_agent in spans if is_agent and sequential]
        return any(
            time is None or (time > self.replied_at and not any(a <= time <= b for a, b in foreign))
            for time in _modification_times(workdir)
        )

    def describe_for_model(self) -> str:
        """Return the observation of a step whose code does not run again."""
        lines = [
            "The run was interrupted during this step and then resumed. The step's output and "
            "variables are lost."
        ]
        completed = [c.describe_for_model() for c in self.calls if c.ended]
        pending = [c.describe_for_model() for c in self.calls if not c.ended]
        if completed:
            lines += ["These calls completed:", *completed]
        if pending:
            lines += ["These calls did not complete, but may have had an effect:", *pending]
        if self.guard_message:
            lines.append(f"The next action did not run. It was {self.guard_message}")
        lines.append("Check the current state before you repeat anything.")
        return "\n".join(lines)

    # --- handlers of events ----------------------------------------------------------------

    def _on_step(self, event: JournalEvent, data: StepData) -> None:
        self.in_progress, self.reply, self.calls, self.guard_message = True, None, [], ""

    def _on_model_call(self, event: JournalEvent, data: ModelCallData) -> None:
        self.user_actions = []
        if event["phase"] == "action" and "output" in data:
            self.edited_reply = ""
            calls = data.get("tool_calls") or []
            self.reply = Reply(data["output"], tool_calls=calls, items=data.get("items") or [])
            self.replied_at = event["time"]

    def _on_resumed(self, event: JournalEvent, data: ResumedData) -> None:
        if data.get("redo"):
            self.reply, self.calls = None, []
        self.last_answer = data.get("answer") or self.last_answer
        self.interrupted, self.ended_at = False, math.inf
        for call in self.calls:
            if not call.ended:  # it may run again
                call.ended_at = math.inf

    def _on_started(self, event: JournalEvent, data: StartedData) -> None:
        number = data.get("call", self.next_call)
        self.next_call = max(self.next_call, number + 1)
        call = RecordedCall(number, data["name"], data["arguments"], started_at=event["time"])
        self.calls.append(call)
        self.guard_message = ""

    def _on_call(self, event: JournalEvent, data: CallData) -> None:
        for call in self._calls_of(data):
            call.ended, call.error = not data.get("interrupted"), data.get("error", "")
            call.ended_at = event["time"]
            call.result_text = data.get("value", "")
            call.answerable = "result" in data or bool(call.sessions)
            call.result = data.get("result")

    def _on_sub_session(self, event: JournalEvent, data: SubSessionData) -> None:
        for call in self._calls_of(data):
            call.sessions.append(data["session"])

    def _on_selected(self, event: JournalEvent, data: SelectedData) -> None:
        for call in self._calls_of(data):
            call.selected = data

    def _calls_of(self, data: CallData | SubSessionData | SelectedData) -> list[RecordedCall]:
        return [call for call in self.calls if call.number == data.get("call")]

    def _on_observation(self, event: JournalEvent, data: ObservationData) -> None:
        self.in_progress = False

    def _on_status(self, event: JournalEvent, data: StatusData) -> None:
        self.interrupted, self.ended_at = bool(data.get("interrupted")), event["time"]
        self.lease, self.last_answer = data.get("lease"), None
        asked = data.get("asked")
        stopped_by_guard = data.get("stop_reason") == StopReason.GUARD.value
        if stopped_by_guard and asked is not None and asked.get("session") == event["sid"]:
            self.guard_message = data["message"]

    def _on_forked(self, event: JournalEvent, data: ForkedData) -> None:
        self.edited_reply = data.get("reply") or ""
        self.lease = None  # the environment belongs to the original run

    def _on_suspended(self, event: JournalEvent, data: SuspendedData | LeasedData) -> None:
        self.lease = data.get("lease")

    def _on_user_acted(self, event: JournalEvent, data: UserActedData) -> None:
        self.user_actions.append(data["action"])


_HANDLERS: Mapping[str, Callable[..., None]] = {
    EventKind.STEP: InterruptedSession._on_step,
    EventKind.MODEL_CALL: InterruptedSession._on_model_call,
    EventKind.RESUMED: InterruptedSession._on_resumed,
    EventKind.STARTED: InterruptedSession._on_started,
    EventKind.CALL: InterruptedSession._on_call,
    EventKind.SUB_SESSION: InterruptedSession._on_sub_session,
    EventKind.SELECTED: InterruptedSession._on_selected,
    EventKind.OBSERVATION: InterruptedSession._on_observation,
    EventKind.SUSPENDED: InterruptedSession._on_suspended,
    EventKind.LEASED: InterruptedSession._on_suspended,
    EventKind.USER_ACTED: InterruptedSession._on_user_acted,
    EventKind.STATUS: InterruptedSession._on_status,
    EventKind.FORKED: InterruptedSession._on_forked,
}


def _modification_times(folder: Path) -> Iterator[float | None]:
    """Yield the modification times below a folder; None for an unreadable folder."""
    folders = [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    yield entry.stat(follow_symlinks=False).st_mtime
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:  # nested too deeply, or no permission
            yield None
