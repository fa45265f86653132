"""`Run`: the resources and state of one live run; its history is in the session."""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from ck_pro.agent_settings import AgentSettings
from ck_pro.approval import Approver, AutoApprover, MaskingApprover, needs_review, review
from ck_pro.approval.questions import Questions, pending_question
from ck_pro.config import iter_nested
from ck_pro.environment import Environment
from ck_pro.events import Action, ComputerObservation, ErrorObservation, EventKind, Observation
from ck_pro.events.journal_events import (
    ErrorData,
    EventData,
    LeasedData,
    SessionData,
    StepData,
    UnreadableData,
)
from ck_pro.events.progress_events import ProgressFacts, ProgressKind
from ck_pro.exceptions import (
    Cancelled,
    ConfigError,
    ContentFiltered,
    EnvironmentFailure,
    InputError,
    LimitReached,
    ParseError,
)
from ck_pro.executor import current_call
from ck_pro.journal import Journal
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import LLM, Budget
from ck_pro.run import pictures, session_changes
from ck_pro.run.code_execution import CodeRunner
from ck_pro.run.exposed_functions import ExposedFunctions
from ck_pro.run.fingerprint import fingerprint_of
from ck_pro.run.history import History
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.kept import Kept
from ck_pro.run.model_calls import ModelCaller
from ck_pro.run.resume import prepare_answers
from ck_pro.run.tree import EventSink, RunTree
from ck_pro.run.user_replies import Approvals, UserReplies, prepare_approvals
from ck_pro.run.working_folder import TaskFile, WorkingFolder, given_files
from ck_pro.session import AgentSession
from ck_pro.terminal import asking_for, waiting_for_user
from ck_pro.threads import Cancellation, DelayedEvent
from ck_pro.tools.human import Answers, Person

_log = logging.getLogger(__name__)
_CHILD_SECONDS = 30.0
_GRACE_SECONDS = 5.0


def run_of(session: AgentSession) -> Run:
    """Return the run of a session.

    Raises:
        InputError: the session is not running.
    """
    run = session.run
    if not isinstance(run, Run):
        raise InputError(
            f"session {session.id} is not running: use agent.run(), or agent.decide() for one step"
        )
    return run


class Run:
    """One live run of one agent; implements `RunContext`.

    Args:
        agent: the configuration of the agent.
        session: the history that this run writes.
        parent: the calling run, for a sub-agent.
        workdir: directory for code and tools; a temporary one when None.
        journal, budget, cancel, on_event: shared by the whole tree of runs; a sub-agent uses those
            of `parent`.
        interrupted: the session to resume, for a resumed run.
        answer: the user's answer to the question for which that run ended.
        approve: whether the user approves the action for which that run stopped.

    Raises:
        InputError: `approve` is set, but no action waits for approval.
    """

    def __init__(
        self,
        agent: AgentSettings,
        session: AgentSession,
        *,
        parent: Run | None = None,
        workdir: Path | str | None = None,
        journal: Journal | None = None,
        budget: Budget | None = None,
        cancel: threading.Event | None = None,
        on_event: EventSink | None = None,
        interrupted: InterruptedSession | None = None,
        answer: str = "",
        approve: bool = False,
    ):
        self.agent, self.session, self.parent = agent, session, parent
        self.model = agent.model
        self.path: tuple[str, ...] = (*(parent.path if parent else ()), agent.name)
        self._tree: RunTree
        if parent is not None:
            self._tree = parent._tree
        else:
            answers, approvals = Answers(), Approvals()
            if interrupted is not None:
                answers = prepare_answers(answer, interrupted)
                approvals = prepare_approvals(approve, interrupted)
            self._tree = RunTree(self, journal or Journal(), on_event, answers, approvals)
            models = [llm for _, llm in iter_nested(agent, LLM)]
            self.journal.protect(os.environ.get(llm.api_key_env, "") for llm in models)
        self.replies = UserReplies(self, self._tree.answers, self._tree.approvals)
        self._set_limits(budget, cancel)
        self._set_reviewers()
        self.folder = WorkingFolder(workdir or (parent.workdir if parent else None))
        self.environment: Environment | None = None
        self.notices: list[str] = []
        """Lines for the next prompt."""
        self.plan_notices: list[str] = []
        """Lines for the next prompt of the plan phase."""
        self.interrupted = interrupted
        """The session to resume; None for a new run, and after the first resumed step."""
        self.lease: Any = interrupted.lease if interrupted else None
        """The lease of a suspended environment, to reconnect to it."""
        self.functions = ExposedFunctions(self, interrupted.next_call if interrupted else 0)
        self.pictures = pictures.StepPictures(self)
        self.run_code = CodeRunner(self)
        edited_reply = interrupted.edited_reply if interrupted else ""
        self.call_model: ModelCaller = ModelCaller(self, self._tree.prefixes, edited_reply)
        self.max_steps: int | None = None
        """Maximum number of steps of this run; None: the agent's setting."""
        self.continued: AgentSession | None = None
        """The ended session whose environment and worker this run uses."""
        self.continued_ids: frozenset[str] = frozenset()
        """Its id, and those of the sessions that it continued."""
        self.kept = Kept()
        """The environments and workers of the sub-agents that have ended."""
        self.was_resumed = interrupted is not None
        self.keeps_open = False
        """Whether environment and worker stay after a turn; see `MultiStepAgent.turn`."""
        self.is_open = False
        """Whether the environment was opened and `init_run` called."""
        self.waits_for_turn = False
        """Whether the last turn has ended and the next one may start."""
        self.turn_text = ""
        """The message of the user that starts the next turn."""
        self.questions = Questions()
        """What the calls of the step in progress ask the user."""
        self.stopped_for_user = False
        """Whether a call stopped this run for the user; its other sub-agents stop, too."""
        self.executions = 0
        """Number of finished code executions; calls of an earlier execution are orphaned."""
        self._ended = threading.Event()
        self._without_steps = False
        self._children: list[Run] = []
        if parent is not None:
            with self._tree.lock:
                parent._children.append(self)
                if parent.functions.is_orphaned():
                    self.cancel.set()

    def _set_limits(self, budget: Budget | None, cancel: threading.Event | None) -> None:
        parent, max_seconds = self.parent, self.agent.max_seconds
        self.budget: Budget = Budget(parent=parent.budget) if parent else budget or Budget()
        if max_seconds is not None:
            self.budget = Budget(max_seconds=max_seconds, parent=self.budget)
        self.cancel: Cancellation = (
            Cancellation(parent.cancel, current_call()) if parent else Cancellation(cancel)
        )
        self.cancel_code = DelayedEvent(self.cancel, _GRACE_SECONDS)
        """Set some seconds after `cancel`, so that the code of a step can finish."""

    def _set_reviewers(self) -> None:
        parent, approver = self.parent, self.agent.approver
        self._inherited: Approver = parent._inherited if parent else AutoApprover()
        if approver is not None:
            self._inherited = MaskingApprover(approver, self.journal.masked)
        self.approver = self.replies.approver(self._inherited)
        self.person: Person | None = self.agent.person or (parent.person if parent else None)

    @property
    def journal(self) -> Journal:
        """The journal of the tree of runs."""
        return self._tree.journal

    @property
    def workdir(self) -> Path:
        """The directory of code and files."""
        return self.folder.path

    @property
    def model_multimodal(self) -> LLM | None:
        """See `RunContext`."""
        found = self.agent.model_multimodal
        return self.parent.model_multimodal if found is None and self.parent is not None else found

    @functools.cached_property
    def task_files(self) -> list[TaskFile]:
        """The files of the task, which the whole tree of runs works on."""
        return given_files(self._tree.root.session.info)

    @functools.cached_property
    def history(self) -> History:
        """The finished steps as prompts show them."""
        return History(self.agent, self.session)

    @functools.cached_property
    def definitions(self) -> tuple[str, str]:
        """The definitions of the functions for prompts: short and long."""
        calls = isinstance(self.agent.language, FunctionCallingLanguage)
        functions = self.functions.listed if calls else self.functions.defined
        return functions.definitions(short=True), functions.definitions()

    @functools.cached_property
    def planning(self) -> str:
        """How the agent plans; see `AgentSettings.active_planning`."""
        return self.agent.active_planning

    @functools.cached_property
    def importable(self) -> list[str]:
        """The packages that prompts name."""
        return self.agent.importable()

    # --- the log ---------------------------------------------------------------------------

    def record(
        self,
        kind: EventKind,
        data: EventData | None = None,
        *,
        phase: str | None = None,
        duration: float | None = None,
    ) -> None:
        """Journal an event and apply it to the session; the tree of runs shares one order.

        Raises:
            JournalError: see `Journal.append`.
        """
        session = self.session
        i = len(session.steps) - (kind != EventKind.STEP) if session.steps else 0
        with self._tree.lock:
            event = self.journal.append(
                kind,
                sid=session.id,
                parent=self.parent.session.id if self.parent else None,
                i=i,
                phase=phase,
                data=data,
                duration=duration,
            )
            if self.parent is not None:
                self.parent.session.children.setdefault(session.id, session)
            session.apply(event)
        if self._tree.on_event is not None:
            self._tree.emit_recorded(self, kind, data or {}, phase or "")

    def renew(
        self,
        budget: Budget | None,
        cancel: threading.Event | None,
        on_event: EventSink | None,
    ) -> None:
        """Set the limits and the display of the next turn; the arguments are those of `Run`."""
        self._set_limits(budget, cancel)
        self._tree.on_event = on_event or self._tree.on_event
        self.questions = Questions()
        self.stopped_for_user = False

    def start(self) -> None:
        """Record the start of the session, unless the run resumes or takes a further turn."""
        if self.interrupted is None and not self.is_open:
            if self.parent is not None:
                self.parent.functions.record_child_session(self.session)
            self._record_session()
        self.emit(ProgressKind.RUN_STARTED, text=self.session.task)

    def _record_session(self) -> None:
        session, agent = self.session, self.agent
        data = SessionData(
            task=session.task,
            agent=agent.name,
            info=session.info,
            config=agent.to_dict(),
            path=list(self.path),
            workdir=str(self.workdir),
        )
        if self.parent is None:
            data = {**data, **fingerprint_of(agent)}
        self.record(EventKind.SESSION, data)

    def start_step(self) -> None:
        """Record the start of a step, if the limits allow one.

        Raises:
            Cancelled, LimitReached: see `check`.
        """
        self.check()
        self.budget.take_step()
        self._record_files()
        self.record(EventKind.STEP, StepData())

    def _record_files(self) -> None:
        """Record the files of the working directory, for a fork from this step."""
        if self.parent is None and self.journal.folder is not None and self.agent.snapshot_mb:
            resumed = bool(self.session.steps)
            changed = self.folder.store_files(self.journal, self.agent.snapshot_mb << 20, resumed)
            if changed is not None:
                self.record(EventKind.FILES, changed)

    def step_limit(self) -> int:
        """Return the number of the last step that the limits allow, from 1 in the current turn."""
        most = self.agent.max_steps if self.max_steps is None else self.max_steps
        left = self.budget.remaining_steps()
        done = len(self.session.steps) - self.session.turn_start
        return most if left is None else max(1, min(most, done + left))

    def check_sub_agent(self) -> None:
        """Return if a sub-agent may start.

        If only the steps are used up, one sub-agent may start: its result reports the limit, and
        the calling code can still answer.

        Raises:
            Cancelled, LimitReached: see `check`; or another sub-agent would start without steps.
        """
        try:
            self.budget.check()
        except LimitReached as e:
            if e.reason != "steps" or self._without_steps:
                raise
            self._without_steps = True

    def record_unreadable(self, phase: str, problem: object) -> None:
        """Record why a model's reply could not be parsed, or only in part."""
        self.record(EventKind.UNREADABLE, UnreadableData(error=str(problem)), phase=phase)

    def record_reply_error(self, error: ParseError | ContentFiltered) -> str:
        """Record that a reply has no usable action; return the error as text for the model."""
        if isinstance(error, ParseError):
            self.record_unreadable("action", error)
        self.record(EventKind.ERROR, ErrorData(error=type(error).__name__))
        return f"{type(error).__name__}: {error}"

    def emit(self, kind: ProgressKind, **facts: Unpack[ProgressFacts]) -> None:
        """Send an event to `on_event`, for a display; it is not journaled."""
        if self._tree.on_event is not None:
            self._tree.emit(self, kind, facts)

    # --- the environment -------------------------------------------------------------------

    def open_environment(self) -> None:
        """Get the environment of the agent's setting, if there is one.

        Raises:
            ConfigError: the setting's function returned something else.
        """
        given = self.agent.environment
        if given is None or self.environment is not None:
            return
        opened = given if isinstance(given, Environment) else given()
        if not isinstance(opened, Environment):
            raise ConfigError(
                f"{self.agent.name}.environment: the function returned {opened!r}, not an "
                "Environment"
            )
        self.environment = opened

    def take_environment(self) -> Environment | None:
        """Return the environment for its end; None if other runs share it."""
        environment, self.environment = self.environment, None
        shared = environment is not None and environment is self.agent.environment
        return None if shared else environment

    def act(self, action: Action) -> Observation:
        """Execute an action in the environment: approved before, journaled before and after.

        Raises:
            GuardStopped: the approver stops the run.
            EnvironmentFailure: the run has no environment, or the environment failed.
        """
        if self.environment is None:
            raise EnvironmentFailure(f"this run has no environment for '{action.kind}' actions")
        self.check()
        if needs_review(self.approver, action):
            with self.asking(), pending_question():
                reviewed = review(self.approver, self.environment, action)
            if isinstance(reviewed, ErrorObservation):
                return reviewed
            action = reviewed
            self.functions.require_current(getattr(action, "name", action.kind))
        observation = self.functions.act(self.environment, action)
        if isinstance(observation, ComputerObservation):
            pictures.record_screen(self, action, observation)
        return observation

    def show_picture(self, url: str, caption: str) -> bool:
        """See `RunContext`."""
        return pictures.show_picture(self, url, caption)

    def record_lease(self) -> None:
        """Record how a resumed run reconnects to the environment if this process is killed."""
        lease = self.environment.lease() if self.environment is not None else None
        if lease is not None:
            self.record(EventKind.LEASED, LeasedData(lease=lease))

    def suspend_environment(self) -> Any:
        """Disconnect from the environment; return its lease for the run that resumes."""
        environment = self.take_environment()
        return environment.suspend() if environment is not None else None

    # --- resume ----------------------------------------------------------------------------

    def has_same_environment(self) -> bool:
        """Whether a resumed run has no environment, or has reconnected to its own."""
        return self.environment is None or self.environment.taken_up

    def reconnected(self) -> bool:
        """Whether a resumed run has reconnected to its own environment."""
        return self.environment is not None and self.environment.taken_up

    def ask(self, question: str) -> str | None:
        """Return the user's answer to a question; None without a user or an answer."""
        self.check()
        answer = self.replies.take_answer(question)
        if answer is not None or self.person is None:
            return answer
        with pending_question() as pending, self.asking(), waiting_for_user():
            answer = self.person.answer(question)
            pending.is_open = answer is None  # the caller stops for the user
        return answer

    def asking(self) -> AbstractContextManager[None]:
        """Assign the questions that this thread asks the user to this run."""
        return asking_for(self.cancel, "/".join(self.path), self._held)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Keep the environments of this run and its callers, also if the process is killed."""
        runs: list[Run] = [self]
        while runs[-1].parent is not None:
            runs.append(runs[-1].parent)
        pairs = [(run, run.environment) for run in runs if run.environment is not None]
        with self._tree.holder.held([environment for _, environment in pairs]):
            for run, _ in pairs:
                run.record_lease()
            yield

    # --- the session: see `RunContext` -----------------------------------------------------

    @property
    def lock(self) -> threading.RLock:
        """The lock that orders the events of the tree of runs."""
        return self._tree.lock

    def tell(self, text: str) -> None:
        """See `RunContext`."""
        self.emit(ProgressKind.MESSAGE, text=text)

    def add_task(self, goal: str, parent: str = "0") -> str:
        """See `RunContext`."""
        return session_changes.add_task(self, goal, parent)

    def modify_task(self, task_id: str, state: str) -> None:
        """See `RunContext`."""
        session_changes.modify_task(self, task_id, state)

    def search_memory(self, query: str) -> list[str]:
        """See `RunContext`."""
        return session_changes.search_memory(self, query)

    # --- limits ----------------------------------------------------------------------------

    def check(self) -> None:
        """Return if the run may continue.

        Raises:
            Cancelled: the run was cancelled.
            LimitReached: the tree has used up its time, tokens or money.
        """
        self.budget.check(steps=False)  # first, because a limit may have set `cancel`
        if self.cancel.is_set():
            raise Cancelled("the run was cancelled")

    # --- the end ---------------------------------------------------------------------------

    def end_children(self) -> None:
        """Cancel the sub-agents that still run, and wait for their last records.

        They run on if the step's code was killed, or called them in a thread.
        """
        with self._tree.lock:
            self.executions += 1
            running = [child for child in self._children if not child._ended.is_set()]
            self._children = []
        for child in running:
            child.cancel.set()
        end = time.monotonic() + _CHILD_SECONDS
        for child in running:
            if not child._ended.wait(max(0.0, end - time.monotonic())):
                _log.warning("%s did not stop within %g s", "/".join(child.path), _CHILD_SECONDS)

    def mark_ended(self) -> None:
        """Mark the last record as written, for a caller that waits in `end_children`."""
        self._ended.set()

    def stopped_with_caller(self) -> bool:
        """Whether a caller of this run, at any depth, has stopped for the user."""
        caller = self.parent
        return caller is not None and (caller.stopped_for_user or caller.stopped_with_caller())

    def close(self) -> None:
        """Release the worker, the environment and a temporary directory.

        Errors are logged, so that they do not cost the run its result. Further calls do nothing.
        """
        self.end_children()
        self.kept.close()
        environment = self.take_environment()
        for part in (self.run_code, environment):
            if part is not None:
                try:
                    part.close()
                except Exception:  # noqa: BLE001 - logged, see above
                    _log.exception("%s: %s did not close", "/".join(self.path), type(part).__name__)
        self.folder.close()
