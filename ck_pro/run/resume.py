"""Going on with a run that was cut off: what its journal tells of the step that was under way.

Steps that have their observation are kept as they are. Of the step under way:

- no reply of the model's recorded: the step is done again from its beginning;
- a reply recorded: its code is run again in a new worker. Calls that had ended are answered from
  the journal, a sub-agent's session that was under way goes on in its own middle, and a call that
  can be repeated is repeated (`Tool.on_resume`);
- unless what it did cannot be had again: it called a function of a world that is gone (a page), or
  its own code left something in the working directory. Then nothing is done twice: sub-agents and
  questions that were interrupted are finished, the step gets an observation that says what had been
  called and what came of it, and the model looks for itself.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.journal_events import (
    AskedQuestion,
    CallData,
    ForkedData,
    GivenAnswer,
    ModelCallData,
    ObservationData,
    ResumedData,
    SelectedData,
    StartedData,
    StatusData,
    StepData,
    SubSessionData,
    SuspendedData,
)
from ck_pro.exceptions import InputError
from ck_pro.journal import Journal, read_events
from ck_pro.model import Reply, Usage
from ck_pro.session import AgentSession, Status, StopReason, sessions_from_events

NOTICE = "The run was interrupted and resumed. Earlier variables are lost; files are kept."
_SHOWN = 500
_RESULT_SHOWN = 4000


@dataclass
class RecordedCall:
    """A call of a function in the step under way.

    Attributes:
        number: of the call, within its session.
        ended: whether it returned, or raised an error that its caller could read. A call that an
            interruption of the run ended (a stop for a person, a limit, a cancel) has not ended.
        finished: it ended while this process resumed its step.
        result: what it returned, where `answerable`.
        answerable: the result was recorded whole, or is a sub-agent's.
        error: what it raised, as `Type: message`; also where that interrupted it.
        began, over: when, in Unix seconds; `over` is infinite where no end was recorded.
        sessions: ids of the sessions, one per try, of the sub-agent that it called.
        selected: which of several tries was taken: the data of an event `selected`.
        shown: the result as text, shortened.
        code: which piece of its run's code called, as `Run.codes_ended` counts them.
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
    shown: str = ""
    code: int = 0
    finished: bool = False
    began: float = 0.0
    over: float = math.inf

    @property
    def key(self) -> str:
        """What makes two calls the same: name and arguments."""
        return call_key(self.name, self.arguments)

    def told(self) -> str:
        """The call as a line for the model."""
        given = ", ".join(f"{k}={v!r}" for k, v in self.arguments.items())
        came = ""
        if self.error:
            came = f" {'raised' if self.ended else 'was stopped by'} {self.error}"
        elif self.ended:
            came = f" returned {self.shown}"
        return (
            f"- {self.name}({given})"[:_SHOWN] + came[: _RESULT_SHOWN if self.finished else _SHOWN]
        )


def _times_below(folder: Path) -> Iterator[float | None]:
    """When each file and folder below a folder was written; None for what cannot be read."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry.stat(follow_symlinks=False).st_mtime
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:  # too deep, or closed
            yield None


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """The key by which a repeated call finds its record."""
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


@dataclass
class PriorUsage:
    """What a run had used when it was cut off, over all its agents; seconds of wall time."""

    steps: int = 0
    seconds: float = 0.0
    calls: list[tuple[Usage, float | None]] = field(default_factory=list)


@dataclass
class InterruptedSession:
    """One session that was cut off.

    Attributes:
        session: as its events tell it.
        under_way: whether its last step has no observation yet.
        reply: of the action phase of that step; None if it was not recorded.
        since: when the reply came, Unix seconds.
        calls: begun in that step, in order.
        next_call: the number of the next call.
        lease: what the environment left to be taken up again; None if it left nothing.
        interrupted: its end was an interruption that its caller shared: the call has no result.
        ended: when the session ended, Unix seconds; infinite where no end was recorded.
        stopped: the message of the approver's stop, if that ended an action of this session.
        edited: what the model shall be taken to have replied next, in a run that was forked.
        answers: of a main session: the user's answers (`session, question, answer`) that no session
            of the run has used, in order.
        answer: the one of these that the user gives now.
        given: of a main session: the answer that the last attempt to resume it was given, if that
            attempt was killed before the run ended.
        others: all sessions of the run by id, this one included.
    """

    session: AgentSession
    under_way: bool = False
    reply: Reply | None = None
    since: float = 0.0
    calls: list[RecordedCall] = field(default_factory=list)
    next_call: int = 0
    lease: Any = None
    interrupted: bool = False
    ended: float = math.inf
    stopped: str = ""
    edited: str = ""
    answers: list[GivenAnswer] = field(default_factory=list)
    answer: GivenAnswer | None = None
    given: GivenAnswer | None = None
    others: dict[str, InterruptedSession] = field(default_factory=dict)

    def take(self, event: JournalEvent) -> None:
        """Take one event of the session into account, in order."""
        handler = _HANDLERS.get(event["kind"])
        if handler is not None:
            handler(self, event, event["data"])

    def is_replayable(self, on_resume: Callable[[str], str | None], workdir: Path) -> bool:
        """Whether the code of the step under way may be run again.

        Args:
            on_resume: `Tool.on_resume` by name; "adopt" for a sub-agent; None: no such function.
            workdir: where the code works.
        """
        for call in self.calls:
            rule = on_resume(call.name)
            if rule in (None, "never") or (call.ended and not (call.answerable or call.error)):
                return False
        return not self._wrote(on_resume, workdir)

    @property
    def acted(self) -> bool:
        """Whether the step under way came to its actions. A run that stores no replies
        (`store_io`) tells it by its calls."""
        return self.reply is not None or bool(self.calls)

    @property
    def asked(self) -> AskedQuestion | None:
        """For what the run waits, see `AgentSession.asked`; also of a sub-agent whose caller was
        killed before it recorded its own end."""
        if self.session.asked is not None or self.session.status is not Status.IN_PROGRESS:
            return self.session.asked
        found = (one.session.asked for one in self.others.values())
        return next((asked for asked in found if asked is not None), None)

    def _wrote(self, on_resume: Callable[[str], str | None], workdir: Path) -> bool:
        """Whether the code of the step under way may have written into the working directory.

        Two kinds of files are not its own. Those of a sub-agent, while the code waited for it and
        for nothing else; and those of a person, written after the session had ended.
        """
        spans = sorted((c.began, c.over, on_resume(c.name) == "adopt") for c in self.calls)
        alone = all(a[1] <= b[0] for a, b in pairwise(spans))
        others = [(self.ended, math.inf)]
        others += [(began, over) for began, over, waits in spans if waits and alone]
        changed = _times_below(workdir)
        return any(
            when is None or (when > self.since and not any(a <= when <= b for a, b in others))
            for when in changed
        )

    def told(self) -> str:
        """The observation of a step that is not run again."""
        lines = [
            "The run was interrupted during this step and then resumed. What the code of this step "
            "printed and its variables are lost."
        ]
        done = [c.told() for c in self.calls if c.ended]
        begun = [c.told() for c in self.calls if not c.ended]
        if done:
            lines += ["These calls had ended:", *done]
        if begun:
            lines += [
                "These calls had not ended and may or may not have had their effect:",
                *begun,
            ]
        if self.stopped:
            lines.append(f"The next action was not done. It was {self.stopped}")
        lines.append("Look before you do anything again.")
        return "\n".join(lines)

    # --- the events of the step under way ---------------------------------------------------

    def _on_step(self, event: JournalEvent, data: StepData) -> None:
        self.under_way, self.reply, self.calls, self.stopped = True, None, [], ""

    def _on_model_call(self, event: JournalEvent, data: ModelCallData) -> None:
        if event["phase"] == "action" and "output" in data:
            self.edited = ""
            calls = data.get("tool_calls") or []
            self.reply = Reply(data["output"], tool_calls=calls, items=data.get("items") or [])
            self.since = event["time"]

    def _on_resumed(self, event: JournalEvent, data: ResumedData) -> None:
        if data.get("redo"):
            self.reply, self.calls = None, []
        self.given = data.get("answer") or self.given
        self.lease, self.interrupted, self.ended = None, False, math.inf
        for call in self.calls:
            if not call.ended:  # it may be at work again
                call.over = math.inf

    def _on_started(self, event: JournalEvent, data: StartedData) -> None:
        number = data.get("call", self.next_call)
        self.next_call = max(self.next_call, number + 1)
        call = RecordedCall(number, data["name"], data["arguments"], began=event["time"])
        self.calls.append(call)
        self.stopped = ""

    def _on_call(self, event: JournalEvent, data: CallData) -> None:
        for call in self.calls:
            if call.number == data.get("call"):
                call.ended, call.error = not data.get("interrupted"), data.get("error", "")
                call.over = event["time"]
                call.shown = data.get("value", "")
                call.answerable = "result" in data or bool(call.sessions)
                call.result = data.get("result")

    def _on_sub_session(self, event: JournalEvent, data: SubSessionData) -> None:
        for call in self.calls:
            if call.number == data.get("call"):
                call.sessions.append(data["session"])

    def _on_selected(self, event: JournalEvent, data: SelectedData) -> None:
        for call in self.calls:
            if call.number == data.get("call"):
                call.selected = data

    def _on_observation(self, event: JournalEvent, data: ObservationData) -> None:
        self.under_way = False

    def _on_status(self, event: JournalEvent, data: StatusData) -> None:
        self.interrupted, self.ended = bool(data.get("interrupted")), event["time"]
        self.lease, self.given = data.get("lease"), None
        asked = data.get("asked")
        stopped_by_guard = data.get("stop_reason") == StopReason.GUARD.value
        if stopped_by_guard and asked is not None and asked.get("session") == event["sid"]:
            self.stopped = data["message"]

    def _on_forked(self, event: JournalEvent, data: ForkedData) -> None:
        self.edited = data.get("reply") or ""

    def _on_suspended(self, event: JournalEvent, data: SuspendedData) -> None:
        self.lease = data.get("lease")


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
    EventKind.STATUS: InterruptedSession._on_status,
    EventKind.FORKED: InterruptedSession._on_forked,
}


def cut_off(events: Iterable[JournalEvent]) -> tuple[InterruptedSession | None, PriorUsage]:
    """The main session of a run that was cut off, and what the run had used.

    Args:
        events: all of its journal, in order.

    Returns:
        The main session's `InterruptedSession` with those of all others; None without a session.
    """
    kept = list(events)
    sessions = sessions_from_events(kept)
    found = {sid: InterruptedSession(session) for sid, session in sessions.items()}
    used, stretch = PriorUsage(), [0.0, 0.0]
    answers: list[GivenAnswer] = []
    for event in kept:
        found[event["sid"]].take(event)
        _note_answer(event, answers)
        _count(event, used)
        stretch = _timed(event, used, stretch)
    used.seconds += stretch[1] - stretch[0]
    for one in found.values():
        one.others = found
    main = next(iter(found.values()), None)
    if main is not None:
        main.answers = answers
    return main, used


def find_interrupted(
    session: AgentSession | None, journal: Journal | None
) -> tuple[InterruptedSession, PriorUsage]:
    """Return the interrupted run of a session, or else of a journal.

    Raises:
        InputError: neither of them has a run.
    """
    if session is not None:
        return InterruptedSession(session, lease=session.lease), PriorUsage()
    if journal is not None and journal.folder is not None:
        cut, used = cut_off(read_events(journal.folder))
        if cut is not None:
            return cut, used
    raise InputError("nothing to resume: give a journal that holds a run, or a session")


def _note_answer(event: JournalEvent, answers: list[GivenAnswer]) -> None:
    """Keep the answers up to date: one was given, or one was used."""
    if event["kind"] == EventKind.RESUMED and event["data"].get("answer"):
        answers.append(event["data"]["answer"])
    elif event["kind"] == EventKind.ANSWERED:
        key = (event["sid"], event["data"]["question"])
        used = next((a for a in answers if (a["session"], a["question"]) == key), None)
        if used is not None:
            answers.remove(used)


def _count(event: JournalEvent, used: PriorUsage) -> None:
    if event["kind"] == EventKind.STEP:
        used.steps += event["data"].get("taken", True)  # the one that every row has may be empty
    elif event["kind"] == EventKind.MODEL_CALL or (
        event["kind"] == EventKind.MODEL_FAILED and "usage" in event["data"]  # cut, and charged
    ):
        usage = event["data"].get("usage", {})
        known = {k: v for k, v in usage.items() if k != "total_tokens"}
        used.calls.append((Usage(**known), event["data"].get("cost")))


def _timed(event: JournalEvent, used: PriorUsage, stretch: list[float]) -> list[float]:
    """The stretch of time in which the run lived, from its beginning or its last resumption."""
    now = event["time"]
    if event["kind"] == EventKind.RESUMED and event.get("parent") is None:
        used.seconds += stretch[1] - stretch[0]
        return [now, now]
    return [stretch[0] or now, max(stretch[1], now)]
