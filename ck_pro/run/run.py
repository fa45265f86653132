"""`Run`: everything of one live run that is not history; the agent object holds none of it."""

from __future__ import annotations

import difflib
import functools
import inspect
import logging
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from ck_pro.agent_settings import AgentSettings
from ck_pro.approval import Approver, AutoApprover, Guard, MaskingApprover
from ck_pro.config import iter_nested
from ck_pro.environment import Environment
from ck_pro.events import Action, ComputerAction, ComputerObservation, EventKind, Observation
from ck_pro.events.journal_events import (
    AnsweredData,
    AskedQuestion,
    ErrorData,
    EventData,
    GivenAnswer,
    ResumedData,
    ScreenData,
    SessionData,
    StepData,
    UnreadableData,
)
from ck_pro.exceptions import Cancelled, EnvironmentFailure, InputError, LimitReached, ParseError
from ck_pro.executor import current_call, remove_folder
from ck_pro.journal import Journal
from ck_pro.journal.snapshots import FileSnapshots
from ck_pro.model import LLM, Budget
from ck_pro.run.cancellation import Cancellation, DelayedEvent
from ck_pro.run.code_execution import CodeRunner
from ck_pro.run.exposed_functions import Calls, JournaledEnvironment
from ck_pro.run.fingerprint import fingerprint_of
from ck_pro.run.history import History
from ck_pro.run.model_calls import ModelCalls
from ck_pro.run.prefix_cache import Prefixes
from ck_pro.run.resume import NOTICE, InterruptedSession
from ck_pro.session import AgentSession
from ck_pro.terminal import asking_for
from ck_pro.tools.human import Answer, Answers, Person

_log = logging.getLogger(__name__)
EventSink = Callable[[dict[str, Any]], None]
_CHILD_SECONDS = 30.0
_GRACE_SECONDS = 5.0


def check_given(journal: Any, budget: Any) -> None:
    """Raise InputError where a run is given something else than a journal and a budget."""
    if not isinstance(journal, Journal | None):
        raise InputError(
            f"journal: {journal!r} is none; open one: `with Journal(FOLDER) as journal`"
        )
    if not isinstance(budget, Budget | None):
        raise InputError(f"budget: {budget!r} is none; give Budget(max_steps=..., max_money=...)")


def check_extra_info(extra: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise InputError where a fact for `session.info` looks like a misspelled argument."""
    known = inspect.signature(function).parameters
    for name in extra:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            raise InputError(
                f"run(): unknown argument '{name}'; did you mean '{near[0]}'? "
                f"A fact of that name goes into info={{{name!r}: ...}}"
            )


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
    """One live run of one agent: what it may use, and what it records.

    Args:
        agent: the agent's configuration.
        session: the history that this run writes.
        parent: the run that called this one, for a sub-agent.
        workdir: where code and tools work; a temporary folder when None.
        journal, budget, cancel, on_event: of the whole tree; taken from `parent` where it is set.
        cut_off: where a run goes on that was cut off.
        answer: of a person, to the question for which that run ended.
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
        cut_off: InterruptedSession | None = None,
        answer: str = "",
    ):
        self.agent, self.session, self.parent = agent, session, parent
        self.model = agent.model
        self.cut_off = cut_off
        """Where to go on, for a run that is resumed."""
        self.answers: Answers = parent.answers if parent else _answers(answer, cut_off)
        """What a person answered before the tree of runs was resumed."""
        self.lease: Any = cut_off.lease if cut_off is not None else None
        """What the environment of a suspended run left, to be taken up again."""
        self.path: tuple[str, ...] = (*(parent.path if parent else ()), agent.name)
        self.journal: Journal = parent.journal if parent else journal or Journal()
        self.budget: Budget = Budget(parent=parent.budget) if parent else budget or Budget()
        if agent.max_seconds is not None:
            self.budget = Budget(max_seconds=agent.max_seconds, parent=self.budget)
        self.cancel: Cancellation = (
            Cancellation(parent.cancel, current_call()) if parent else Cancellation(cancel)
        )
        self.cancel_code = DelayedEvent(self.cancel, _GRACE_SECONDS)
        """Set when code must go too: a step in flight may finish after `cancel`, for a while."""
        self.on_event: EventSink | None = parent.on_event if parent else on_event
        self._lock: threading.RLock = parent._lock if parent else threading.RLock()
        given = workdir or (parent.workdir if parent else None)
        self._workdir = None if given is None else Path(given).resolve()
        self._remove_temporary: Callable[[], object] | None = None
        self._snapshots: FileSnapshots | None = None
        self.environment: Environment | None = None
        self.notices: list[str] = []
        """Lines that the model reads in the next prompt."""
        self.plan_notices: list[str] = []
        """Lines that the model reads in the next prompt of the plan phase."""
        inherited = parent.approver if parent else AutoApprover()
        own = agent.approver
        self.approver: Approver = MaskingApprover(own, self.journal.masked) if own else inherited
        self.person: Person | None = agent.person or (parent.person if parent else None)
        self.calls = Calls(self, cut_off.next_call if cut_off is not None else 0)
        self.run_code = CodeRunner(self)
        self.stops_for_person = False
        """A call of this run has stopped it for a person: its other sub-agents stop with it."""
        self._ended = threading.Event()
        self._without_steps = False
        self._children: list[Run] = []
        self.codes_ended = 0
        """How often code of this run has ended: calls of it that still run were left behind."""
        if parent is not None:
            with self._lock:
                parent._children.append(self)
                if parent.calls.left_behind():
                    self.cancel.set()
        self.call_model: ModelCalls = ModelCalls(
            self,
            parent.call_model.prefixes if parent is not None else Prefixes(),
            cut_off.edited if cut_off is not None else "",
        )
        if parent is None:
            models = [llm for _, llm in iter_nested(agent, LLM)]
            self.journal.protect(os.environ.get(llm.api_key_env, "") for llm in models)

    @property
    def workdir(self) -> Path:
        """The folder of code and files; a temporary one is made when first asked for."""
        if self._workdir is None:
            made = self._workdir = Path(tempfile.mkdtemp(prefix="ck-pro-")).resolve()
            # at the latest when nobody holds the run any more: a step by hand has no end
            self._remove_temporary = weakref.finalize(self, _remove, made, os.getpid())
        if not self._workdir.is_dir():  # code may remove it
            self._workdir.mkdir(parents=True, exist_ok=True)
        return self._workdir

    @functools.cached_property
    def history(self) -> History:
        """What the prompts show of the steps that are done."""
        return History(self.agent, self.session)

    @functools.cached_property
    def definitions(self) -> tuple[str, str]:
        """The functions of this run as its prompts tell them: in short, and in full."""
        functions = self.agent.functions()
        short = "\n".join(f.get_function_definition(True) for f in functions)
        return short, "\n\n".join(f.get_function_definition(False) for f in functions)

    # --- the log ---------------------------------------------------------------------------

    def record(
        self,
        kind: EventKind,
        data: EventData | None = None,
        *,
        phase: str | None = None,
        duration: float | None = None,
    ) -> None:
        """Journal one event of this run and apply it to the session, in one order for the tree.

        Raises:
            JournalError: see `Journal.append`.
        """
        session = self.session
        i = len(session.steps) - (kind != EventKind.STEP) if session.steps else 0
        with self._lock:
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

    def begin(self) -> None:
        """Record the start of the session, with its agent and task, unless the run resumes."""
        if self.cut_off is None:
            if self.parent is not None:
                self.parent.calls.tell_sub_session(self.session)
            self._record_session()
        self.emit("run_started", text=self.session.task)

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

    def begin_step(self) -> None:
        """Begin a step, if the limits allow one.

        Raises:
            Cancelled, LimitReached: see `check`.
        """
        self.check()
        self.budget.take_step()
        self._record_files()
        self.record(EventKind.STEP, StepData())

    def _record_files(self) -> None:
        """Record the files of the working directory, for a fork that begins with this step."""
        limit = self.agent.snapshot_mb
        if self.parent is not None or self.journal.folder is None or not limit:
            return
        if self._snapshots is None:
            begun = bool(self.session.steps)
            put = self.journal.put_blob
            self._snapshots = FileSnapshots(self.workdir, put, limit << 20, begun=begun)
        changed = self._snapshots.take()
        if changed is not None:
            self.record(EventKind.FILES, changed)

    def allow_sub_agent(self) -> None:
        """Return if a sub-agent may begin. Where only the steps are used up the first one may: it
        takes none and its result says so, and the code that called it can still give an answer.

        Raises:
            Cancelled, LimitReached: see `check`; also where a second one would begin without steps.
        """
        try:
            self.budget.check()
        except LimitReached as e:
            if e.reason != "steps" or self._without_steps:
                raise
            self._without_steps = True

    def unreadable(self, phase: str, problem: object) -> None:
        """Record that a model's reply could not be read, or only in part, and why."""
        self.record(EventKind.UNREADABLE, UnreadableData(error=str(problem)), phase=phase)
        self.emit("unreadable", phase=phase, text=str(problem))

    def fault(self, error: Exception) -> str:
        """Record a fault of the model's own; returns what it reads of it."""
        if isinstance(error, ParseError):
            self.unreadable("action", error)
        self.record(EventKind.ERROR, ErrorData(error=type(error).__name__))
        return f"{type(error).__name__}: {error}"

    def emit(self, kind: str, **facts: Any) -> None:
        """Tell whoever watches (a display): never part of the log."""
        if self.on_event is None:
            return
        root = self
        while root.parent is not None:
            root = root.parent
        used = root.budget.snapshot()
        event: dict[str, Any] = {"kind": kind, "path": list(self.path), "sid": self.session.id}
        event.update(step=len(self.session.steps) - 1, tokens=used["tokens"], money=used["money"])
        try:
            self.on_event({**event, **facts})
        except Exception:  # noqa: BLE001 - a display's fault must not end a run
            _log.exception("the display of this run failed and is not told any more")
            self.on_event = None

    # --- the environment -------------------------------------------------------------------

    def act(self, action: Action) -> Observation:
        """Execute an action in the environment: approved before, journaled before and after.

        Raises:
            GuardStopped: the approver stops the run.
            EnvironmentFailure: the run has no environment, or the environment failed.
        """
        if self.environment is None:
            raise EnvironmentFailure(f"this run has no environment for '{action.kind}' actions")
        self.check()
        journaled = JournaledEnvironment(self.environment, self.calls)
        observation = Guard(journaled, self.approver).execute(action)
        if isinstance(observation, ComputerObservation):
            self.record_screen(action, observation)
        return observation

    def record_screen(self, action: Action, observation: ComputerObservation) -> None:
        """Record the screen after an action; prompts show it with the call."""
        screen = cast(ScreenData, observation.to_dict())
        if isinstance(action, ComputerAction):
            checks = [c.model_dump(mode="json") for c in action.pending_safety_checks]
            screen["call_id"], screen["acknowledged_safety_checks"] = action.call_id, checks
        if not self.agent.store_io:
            del screen["image"]
        self.record(EventKind.SCREEN, screen)

    def suspend_environment(self) -> Any:
        """Disconnect from the environment; return its lease for the run that resumes."""
        environment, self.environment = self.environment, None
        return environment.suspend() if environment is not None else None

    # --- going on with a run that was cut off -------------------------------------------------

    def continued(self) -> None:
        """Record that the run goes on, and in which form its step under way does."""
        cut = self.cut_off
        assert cut is not None
        if cut.under_way and not cut.calls and not self.same_world():
            cut.reply = None  # it was decided before a world that is not there any more
        redo = cut.under_way and not cut.acted
        known = self.answers.of(self.session.id) if redo or not cut.under_way else []
        learned = " ".join(one.line() for one in known)
        data = ResumedData(redo=redo, learned=learned)
        if cut.answer is not None:
            data["answer"] = cut.answer
        self.record(EventKind.RESUMED, data)
        for one in known:
            one.shown = True
            self.record(EventKind.ANSWERED, AnsweredData(question=one.question))
        if cut.session.steps[0 if redo else -1 :]:
            self.notices.append(NOTICE)
        if learned and not self.agent.templates.get("plan"):
            self.notices.append(learned)  # its prompts show no progress state

    def same_world(self) -> bool:
        """Whether a resumed run has no environment, or the one that it had when it stopped."""
        return self.environment is None or self.environment.taken_up

    def ask(self, question: str) -> str | None:
        """Ask the person behind the run; None if there is none, or no answer."""
        self.check()
        answer = self.answers.take(self.session.id, question)
        if answer is not None:
            self.record(EventKind.ANSWERED, AnsweredData(question=question))
            return answer.answer
        if self.person is None:
            return None
        with asking_for(self.cancel, "/".join(self.path)):
            return self.person.answer(question)

    def drop_answers(self) -> None:
        """Show the model the answers that nothing took in the step that had asked."""
        for one in self.answers.drop(self.session.id):
            if not one.shown:
                self.record(EventKind.ANSWERED, AnsweredData(question=one.question))
                self.notices.append(one.line())

    # --- limits ----------------------------------------------------------------------------

    def check(self) -> None:
        """Return if the run may go on.

        Raises:
            Cancelled: it was told to stop.
            LimitReached: time, tokens or money of the tree are used up.
        """
        self.budget.check(steps=False)  # first: a limit may be why it was told to stop
        if self.cancel.is_set():
            raise Cancelled("the run was told to stop")

    # --- the end ---------------------------------------------------------------------------

    def end_children(self) -> None:
        """Stop the sub-agents that are still at work, and wait for their last records.

        No sub-agent outlives the step that called it: the step's code may have been killed, or
        have left a call behind in a thread.
        """
        with self._lock:
            self.codes_ended += 1
            living = [c for c in self._children if not c._ended.is_set()]
            self._children = []
        for child in living:
            child.cancel.set()
        end = time.monotonic() + _CHILD_SECONDS
        for child in living:
            if not child._ended.wait(max(0.0, end - time.monotonic())):
                _log.warning("%s did not stop within %g s", "/".join(child.path), _CHILD_SECONDS)

    def ended(self) -> None:
        """Tell the calling run that the last record is written."""
        self._ended.set()

    def stopped_with_caller(self) -> bool:
        """Whether a run that called this one, at any depth, has stopped for a person."""
        above = self.parent
        return above is not None and (above.stops_for_person or above.stopped_with_caller())

    def close(self) -> None:
        """Release the worker, the environment and a temporary folder; harmless when repeated.

        What cannot be released is logged: it must not cost the run its result.
        """
        self.end_children()
        environment, self.environment = self.environment, None
        for part in (self.run_code, environment):
            if part is not None:
                try:
                    part.close()
                except Exception:  # noqa: BLE001 - see above
                    _log.exception("%s: %s did not close", "/".join(self.path), type(part).__name__)
        if self._remove_temporary is not None:
            self._remove_temporary()


def _answers(text: str, cut: InterruptedSession | None) -> Answers:
    """The answers that a run has not used yet; `text` belongs to what it asked last."""
    if cut is None:
        return Answers()
    if text:
        asked = cut.asked or AskedQuestion(session="", question=cut.session.message)
        session = asked["session"] if asked["session"] in cut.others else cut.session.id
        cut.answer = GivenAnswer(session=session, question=asked["question"], answer=text)
        cut.answers.append(cut.answer)
    return Answers([Answer(a["session"], a["question"], a["answer"]) for a in cut.answers])


def _remove(folder: Path, made_by: int) -> None:
    if os.getpid() == made_by:  # a fork of that process has no right to it
        remove_folder(folder)
