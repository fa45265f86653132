"""One attempt at a task: its folder, its journal, the agent's run, and the row it gives."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ck_main.output.row import EVAL_EVENT, TASK_EVENT, WRITTEN_EVENT, build_row, task_facts
from ck_main.runner.previous_attempt import PreviousAttempt
from ck_main.runner.task_folder import WORK_FOLDER, own_files, set_aside
from ck_main.tasks.dataset import Task
from ck_pro.exceptions import JournalError
from ck_pro.journal import Journal
from ck_pro.model import LLM, Budget, Reply
from ck_pro.run.resume import InterruptedSession, PriorUsage
from ck_pro.run.run import Run
from ck_pro.session import AgentSession, Status, StopReason

_log = logging.getLogger(__name__)


class Agent(Protocol):
    """What an attempt needs of an agent; `ck_pro.MultiStepAgent` is one."""

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
        on_event: Callable[[dict[str, Any]], None],
        info: Mapping[str, Any],
    ) -> Any:
        """Work on a task to its end, in the given session."""

    def resume(
        self,
        *,
        found: tuple[InterruptedSession, PriorUsage],
        answer: str,
        workdir: Path,
        journal: Journal,
        budget: Budget,
        cancel: threading.Event,
        on_event: Callable[[dict[str, Any]], None],
    ) -> AgentSession:
        """Go on with the run that a journal tells of; see `MultiStepAgent.resume`."""


class TaskJournal(Journal):
    """A journal that remembers the model calls that failed for good."""

    def __init__(self, folder: Path, **options: Any):
        super().__init__(folder, **options)
        self.failures: list[tuple[str, str]] = []
        """Name of the error's class, and what it said."""

    def append(self, kind: str, **facts: Any) -> dict[str, Any]:
        """See `Journal.append`."""
        event = super().append(kind, **facts)
        if kind == "model_failed":
            name, _, said = event["data"]["error"].partition(": ")
            self.failures.append((name, said))
        return event


@dataclass(frozen=True)
class Assignment:
    """What an attempt is to do.

    Args:
        task: the task, as its file has it.
        folder: the attempt's own, which its caller has claimed.
        question: what the agent is asked, if that is not the task's question.
        row_facts: what goes into the row beside the task's own facts.
        info: facts for the session's info: where to begin, the seed, earlier failures.
        afresh: whatever an earlier attempt left is moved aside, however far it came.
        begun: an earlier attempt is gone on with even if it had come to an end.
        answer: of a person, to the question for which that attempt ended.
        earlier: what that attempt left, if the caller has looked.
    """

    task: Task
    folder: Path
    question: str | None = None
    row_facts: Mapping[str, Any] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    afresh: bool = False
    begun: bool = False
    answer: str = ""
    earlier: PreviousAttempt | None = None


class Attempt:
    """One attempt at a task: enter it, `run`, then `finish` if it came to an end.

    Entering makes the folder and opens the journal and the session; nothing else does.

    Args:
        agent: works on it.
        assignment: what is to be done, and where.
        budget: limits of the attempt; its clock runs.
        cancel: set it to stop: the session stays in progress.
        on_event: told what happens, for a display.
        keep: settings of the journal: `fsync`, `compress`.

    Attributes:
        session: its main session; `session.status` says whether it ended.
        journal: open while the attempt is entered.
        work: where its code runs.
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
        on_event: Callable[[dict[str, Any]], None],
        keep: Mapping[str, Any] | None = None,
    ):
        self._keep = dict(keep or {})
        self.agent, self.assignment, self.budget = agent, assignment, budget
        self.cancel, self.on_event = cancel, on_event
        self.moved = ""
        """One line: why what was begun is begun anew, where that is a surprise."""
        self._found: tuple[InterruptedSession, PriorUsage] | None = None
        self._facts: dict[str, Any] = {}

    def __enter__(self) -> Attempt:
        self._prepare()
        return self

    def __exit__(self, *exc: object) -> None:
        self.journal.close()

    @property
    def resumed(self) -> bool:
        """Whether it goes on where an earlier one was cut off."""
        return self._found is not None

    def _prepare(self) -> None:
        """Make the folder with the task's file in it, the journal, and a session to go on with.

        An attempt at the same task that an end of the process cut off, or that was stopped, is gone
        on with; anything else that is there is moved aside.
        """
        task, folder = self.assignment.task, self.assignment.folder
        self.work = folder / WORK_FOLDER
        if self._continues():
            return
        aside = set_aside(folder, own_files(folder))
        if self.moved and aside is not None:
            self.moved += f"; begun anew, what was there is in {aside}"
        self.work.mkdir(parents=True)
        if task.file is not None:
            shutil.copyfile(task.file, self.work / task.file.name)
        self.journal = TaskJournal(folder, **self._keep)
        self.session = AgentSession(self.question, agent=self.agent.name)
        # the masked form: no secret reaches the row either
        event = self.journal.append(TASK_EVENT, sid=self.session.id, data=self._given_facts())
        self._facts = event["data"]

    def _given_facts(self) -> dict[str, Any]:
        return {**task_facts(self.assignment.task), **self.assignment.row_facts}

    def _continues(self) -> bool:
        """Take up what an earlier attempt left, if it is an unfinished one at the same task."""
        given = self.assignment
        earlier = given.earlier or PreviousAttempt(given.folder)
        if not given.afresh:
            self._found = earlier.unfinished(self._given_facts(), begun=given.begun)
        self.moved = earlier.refused
        if self._found is None:
            return False
        self._facts, self.session = earlier.facts or {}, self._found[0].session
        self.work.mkdir(parents=True, exist_ok=True)
        self.journal = TaskJournal(given.folder, **self._keep)
        return True

    @property
    def question(self) -> str:
        """What the agent is asked."""
        return self.assignment.question or self.assignment.task.question

    def run(self) -> None:
        """Have the agent work until its session ends, or `cancel` is set.

        Raises:
            JournalError: the journal cannot be written. KeyboardInterrupt: interrupted at once.
        """
        if self.session.status is Status.DONE:
            return  # all that it lacked when it was cut off was its row
        common: dict[str, Any] = {
            "workdir": self.work,
            "journal": self.journal,
            "budget": self.budget,
            "cancel": self.cancel,
            "on_event": self.on_event,
        }
        try:
            if self._found is not None:
                answer = self.assignment.answer
                self.session = self.agent.resume(found=self._found, answer=answer, **common)
                return
            self.agent.run(
                self.question,
                session=self.session,
                info=self.assignment.info,
                **common,
            )
        except JournalError:
            raise
        except Exception as e:  # noqa: BLE001 - one task's fault must not end the others
            _log.exception("task %s: the agent raised", self.assignment.task.id)
            end_broken(self.session, self.journal, e)

    def call_model(self, llm: LLM, messages: Sequence[dict[str, Any]], phase: str) -> Reply:
        """Ask a model about the attempt: counted, charged and logged as a call of its session.

        Args:
            llm: the model.
            messages: chat messages.
            phase: "tool:NAME"; the call is counted under that name.

        Raises:
            ModelError, LimitReached, Cancelled, JournalError: see `Run.call_model`.
        """
        asking = Run(
            self.agent,
            self.session,
            workdir=self.work,
            journal=self.journal,
            budget=self.budget,
            cancel=self.cancel,
            on_event=self.on_event,
        )
        try:
            return asking.call_model(llm, messages, phase)
        finally:
            asking.close()

    def finish(self, judged: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The row of the session, which ended. From here on a killed run loses nothing of it.

        Args:
            judged: what goes into the row's `eval` beside the score.
        """
        row = build_row(self._facts, self.session, judged)
        event = self.journal.append(EVAL_EVENT, sid=self.session.id, data=row["eval"])
        return {**row, "eval": event["data"]}

    def written(self) -> None:
        """Note that the row is in the output: if it is taken out again, the task is run again."""
        self.journal.append(WRITTEN_EVENT, sid=self.session.id)


def end_broken(session: AgentSession, journal: Journal, error: Exception) -> None:
    """Give a session that an error of ours cut off what every row has: a step and an end."""
    said = f"{type(error).__name__}: {error}"
    reason = StopReason.INTERNAL_ERROR
    ending: list[tuple[str, dict[str, Any]]] = []
    if "start_time" not in session.info:
        ending.append(("session", {"task": session.task, "agent": session.agent}))
    if not session.steps:
        ending.append(("step", {}))
    if session.final_results is None:
        ending.append(("end", {"final_results": {"output": "", "log": said}}))
    status = {"status": reason.status.value, "stop_reason": reason.value, "message": said}
    for kind, data in [*ending, ("status", status)]:
        session.apply(journal.append(kind, sid=session.id, data=data))
