"""One attempt at a task: its folder, its journal, the agent's run, and its row."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from ck_main.output.row import build_row, task_facts
from ck_main.output.row_schema import Eval, Judgement, OutputRow, TaskFacts
from ck_main.runner.task_folder import PreviousAttempt, attempt_files, set_aside
from ck_main.scoring.scoring import Scoring
from ck_main.tasks.dataset import Task
from ck_pro.agent_settings import AgentSettings
from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.event_parts import FinalResults
from ck_pro.events.journal_events import EndData, EventData, SessionData, StatusData, StepData
from ck_pro.events.progress_events import ProgressEvent
from ck_pro.exceptions import (
    ContentFiltered,
    JournalError,
    ManualAbort,
    ModelTimeout,
    ModelUnavailable,
    ReplayError,
)
from ck_pro.journal import WORK_FOLDER, Journal
from ck_pro.model import LLM, Budget, Reply
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import PriorUsage
from ck_pro.run.run import Run
from ck_pro.run.working_folder import FILES, TaskFile, describe_files, place_files
from ck_pro.session import AgentSession, Status, StopReason

_log = logging.getLogger(__name__)
# failures of one task, not of a service: a recording that does not match, a filtered prompt
_TASK_FAILURES = frozenset(e.__name__ for e in (ReplayError, ContentFiltered))
_UNREACHABLE = frozenset(e.__name__ for e in (ModelUnavailable, ModelTimeout))
_ENVIRONMENT_LOST = frozenset({StopReason.ENVIRONMENT_FAILURE, StopReason.LEASE_EXPIRED})
# stop reasons that a retry may avoid
_TRANSIENT = _ENVIRONMENT_LOST | {StopReason.INTERNAL_ERROR}


class Agent(Protocol):
    """The agent interface that an attempt uses; `ck_pro.MultiStepAgent` implements it."""

    name: str

    def run(
        self,
        task: str,
        *,
        session: AgentSession,
        workdir: Path,
        journal: Journal,
        budget: Budget,
        cancel: threading.Event,
        on_event: Callable[[ProgressEvent], None],
        info: Mapping[str, Any],
    ) -> Any:
        """Run a task to its end in the given session."""

    def resume(
        self,
        *,
        found: tuple[InterruptedSession, PriorUsage],
        answer: str,
        approve: bool,
        workdir: Path,
        journal: Journal,
        budget: Budget,
        cancel: threading.Event,
        on_event: Callable[[ProgressEvent], None],
    ) -> AgentSession:
        """Resume an interrupted run from its journal; see `MultiStepAgent.resume`."""


class TaskJournal(Journal):
    """A journal that collects the model calls that failed after all retries."""

    def __init__(self, folder: Path, **options: Any):
        super().__init__(folder, listener=self._collect, **options)
        self.failures: list[tuple[str, str]] = []
        """Class name and message of each error."""

    def _collect(self, event: JournalEvent) -> None:
        if event["kind"] == EventKind.MODEL_FAILED:
            name, _, message = event["data"]["error"].partition(": ")
            self.failures.append((name, message))


@dataclass(frozen=True)
class Assignment:
    """The input of one attempt.

    Args:
        task: the task from the task file.
        folder: folder of the attempt, locked by the caller.
        question: prompt for the agent; default: the question of the task.
        row_facts: row fields beside those of the task.
        info: fields for the session's info: start page, seed, earlier failures.
        start_over: move the files of a previous attempt to `attempt-N/` and start again.
        resume_completed: resume a previous attempt even if it has a complete row.
        answer: human answer to the question that ended the previous attempt.
        approve: whether the user approves the action that stopped the previous attempt.
        conversation: resume a session also if it is done: the user may send a further message.
        earlier: the previous attempt, if the caller has already read it.
    """

    task: Task
    folder: Path
    question: str | None = None
    row_facts: Mapping[str, object] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    start_over: bool = False
    resume_completed: bool = False
    answer: str = ""
    approve: bool = False
    conversation: bool = False
    earlier: PreviousAttempt | None = None


class Attempt:
    """One attempt at a task: enter the context, `run`, then `finish` if it ended.

    Entering the context creates the folder and opens the journal and the session.

    Args:
        agent: agent that solves the task.
        assignment: the task and its folder.
        budget: limits of the attempt; its clock is running.
        cancel: event that stops the attempt; the session then stays in progress.
        on_event: called with each event, for a display.
        keep: settings of the journal: `fsync`, `compress`.
        scoring: scores the answer; see `build_row`.

    Attributes:
        session: the main session; `session.status` shows whether it ended.
        journal: the journal, open while the context is entered.
        work: working directory of the task's code.
    """

    session: AgentSession
    journal: TaskJournal
    work: Path

    def __init__(
        self,
        agent: Agent,
        assignment: Assignment,
        *,
        budget: Budget,
        cancel: threading.Event,
        on_event: Callable[[ProgressEvent], None],
        keep: Mapping[str, Any] | None = None,
        scoring: Scoring | None = None,
    ):
        self._scoring = scoring
        self._keep = dict(keep or {})
        self.agent, self.assignment, self.budget = agent, assignment, budget
        self.cancel, self.on_event = cancel, on_event
        self.moved = ""
        """One line that explains why a previous attempt was not resumed; "" if not needed."""
        self._found: tuple[InterruptedSession, PriorUsage] | None = None
        self._facts = cast(TaskFacts, {**task_facts(assignment.task), **assignment.row_facts})
        """Facts about the task for its row; once the journal is open, as that stores them."""
        self._files: dict[str, list[TaskFile]] = {}
        """The task's files, for `session.info`."""

    def __enter__(self) -> Attempt:
        self._prepare()
        return self

    def __exit__(self, *exc: object) -> None:
        self.journal.close()

    @property
    def resumed(self) -> bool:
        """Whether this attempt resumes an interrupted one."""
        return self._found is not None

    def _prepare(self) -> None:
        """Create the folder with the task's files, the journal and the session.

        An interrupted or stopped attempt at the same task is resumed. Any other files are moved
        aside.
        """
        task, folder = self.assignment.task, self.assignment.folder
        self.work = folder / WORK_FOLDER
        if self._resume_previous():
            return
        aside = set_aside(folder, attempt_files(folder))
        if self.moved and aside is not None:
            self.moved += f"; starting over, the old files are in {aside}"
        self.work.mkdir(parents=True)
        if task.files:
            place_files(self.work, task.files)
            self._files = {FILES: describe_files(task.files)}
        self.journal = TaskJournal(folder, **self._keep)
        self.session = AgentSession(self.question, agent=self.agent.name)
        # the journal's masked form keeps secrets out of the row
        event = self.journal.append(EventKind.TASK, sid=self.session.id, data=self._facts)
        self._facts = event["data"]

    def _resume_previous(self) -> bool:
        """Resume a previous attempt if it is unfinished and at the same task."""
        given = self.assignment
        earlier = given.earlier or PreviousAttempt(given.folder)
        if not given.start_over:
            self._found = earlier.unfinished(self._facts, completed=given.resume_completed)
        self.moved = earlier.refused
        if self._found is None:
            return False
        assert earlier.facts is not None  # `unfinished` has checked it
        self._facts, self.session = earlier.facts, self._found[0].session
        self.work.mkdir(parents=True, exist_ok=True)
        self.journal = TaskJournal(given.folder, **self._keep)
        return True

    @property
    def question(self) -> str:
        """The question for the agent."""
        return self.assignment.question or self.assignment.task.question

    def run(self) -> None:
        """Run the agent until its session ends or `cancel` is set.

        Raises:
            JournalError: the journal cannot be written.
            KeyboardInterrupt: the user interrupted the process.
        """
        if self.session.status is Status.DONE and not self.assignment.conversation:
            return  # interrupted just before its row was written
        common: dict[str, Any] = {
            "workdir": self.work,
            "journal": self.journal,
            "budget": self.budget,
            "cancel": self.cancel,
            "on_event": self.on_event,
        }
        try:
            if self._found is not None:
                given = self.assignment
                self.session = self.agent.resume(
                    found=self._found, answer=given.answer, approve=given.approve, **common
                )
                return
            ended = self.agent.run(
                self.question,
                session=self.session,
                info={**self.assignment.info, **self._files},
                **common,
            )
            if isinstance(ended, AgentSession):  # a conversation may have reopened its session
                self.session = ended
        except JournalError:
            raise
        except Exception as e:  # noqa: BLE001 - a failure of one task must not stop the others
            _log.exception("task %s: the agent raised", self.assignment.task.id)
            record_internal_error(self.session, self.journal, e)

    def call_model(self, llm: LLM, messages: Sequence[dict[str, Any]], phase: str) -> Reply:
        """Call a model about the attempt; the call is budgeted and logged in its session.

        Args:
            llm: the model.
            messages: chat messages.
            phase: "tool:NAME"; the call is counted under this name.

        Raises:
            ModelError, LimitReached, Cancelled, JournalError: see `Run.call_model`.
        """
        run = Run(
            cast(AgentSettings, self.agent),  # `Agent` names only what an attempt uses
            self.session,
            workdir=self.work,
            journal=self.journal,
            budget=self.budget,
            cancel=self.cancel,
            on_event=self.on_event,
        )
        try:
            return run.call_model(llm, messages, phase)
        finally:
            run.close()

    # --- failures --------------------------------------------------------------------------

    def transient_failure(self) -> str | None:
        """Describe the infrastructure failure that ended the session if a retry may help."""
        reason = self.session.stop_reason
        unreachable = any(name in _UNREACHABLE for name, _ in self.journal.failures)
        lost = reason is StopReason.MODEL_FAILURE and unreachable
        if reason not in _TRANSIENT and not lost:
            return None
        return f"{reason}: {' '.join(self.session.message.split())[:200]}"

    def manual_abort(self) -> ManualAbort | None:
        """Return the error if the human who plays the model aborted; no retry is possible then."""
        failures = self.journal.failures
        return next((ManualAbort(s) for n, s in failures if n == ManualAbort.__name__), None)

    def may_be_outage(self) -> bool:
        """Whether a service failed in the session or its children, so that it should be probed."""
        names = {name for name, _ in self.journal.failures}
        reasons = set(_stop_reasons(self.session))
        unclear = StopReason.MODEL_FAILURE in reasons and not names
        return bool(_ENVIRONMENT_LOST & reasons) or unclear or bool(names - _TASK_FAILURES)

    # --- the row ---------------------------------------------------------------------------

    def row(self, judged: Judgement | None = None) -> OutputRow:
        """Build the row of the ended session; see `build_row`."""
        return build_row(self._facts, self.session, judged, self._scoring)

    def finish(self, judged: Judgement | None = None) -> OutputRow:
        """Build the row of the ended session and log its score.

        If the process is killed after this, the row can be rebuilt from the journal.

        Args:
            judged: fields for the row's `eval` beside the score.
        """
        row = self.row(judged)
        event = self.journal.append(EventKind.EVAL, sid=self.session.id, data=row["eval"])
        row["eval"] = cast(Eval, event["data"])
        return row

    def written(self) -> None:
        """Log that the row is in the output; if it is removed later, the task runs again."""
        self.journal.append(EventKind.ROW, sid=self.session.id)


def _stop_reasons(session: AgentSession) -> Iterator[StopReason | None]:
    yield session.stop_reason
    for child in session.children.values():
        yield from _stop_reasons(child)


def record_internal_error(session: AgentSession, journal: Journal, error: Exception) -> None:
    """Complete a session that an internal error ended, so that its row has all fields."""
    message = f"{type(error).__name__}: {error}"
    reason = StopReason.INTERNAL_ERROR
    ending: list[tuple[EventKind, EventData]] = []
    if "start_time" not in session.info:
        started = SessionData(task=session.task, agent=session.agent)
        ending.append((EventKind.SESSION, started))
    if not session.steps:
        ending.append((EventKind.STEP, StepData()))
    if session.final_results is None:
        results = FinalResults(output="", log=message)
        ending.append((EventKind.END, EndData(final_results=results)))
    status = StatusData(status=reason.status.value, stop_reason=reason.value, message=message)
    for kind, data in [*ending, (EventKind.STATUS, status)]:
        session.apply(journal.append(kind, sid=session.id, data=data))
