"""The session of a new run, and conversations: several messages of the user in one session.

The turns of a conversation share one environment and one worker.
"""

from __future__ import annotations

import difflib
import inspect
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from ck_pro.agent_settings import AgentSettings
from ck_pro.events import EventKind
from ck_pro.events.journal_events import ObservationData, SuspendedData, TurnData
from ck_pro.exceptions import Cancelled, InputError, LimitReached, ModelError
from ck_pro.journal import Journal, is_journal, read_events
from ck_pro.model import Budget
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.results import jsonable
from ck_pro.run.resume import PriorUsage, read_interrupted_run
from ck_pro.run.run import Run, run_of
from ck_pro.run.tree import EventSink
from ck_pro.session import AgentSession
from ck_pro.session.memory import Memory

_MEMORY_CHARS = 120_000
"""Characters of earlier runs that a session keeps as its memory."""
_INTERRUPTED = "The user interrupted this step. Its calls may have had an effect."


class TurnTaking(Protocol):
    """The part of an agent that this module uses."""

    name: str

    def check(self) -> None:
        """Check functions and templates."""
        ...

    def end_run(self, session: AgentSession) -> None:
        """Clean up after the last turn."""
        ...


def open_turn(
    agent: AgentSettings,
    session: AgentSession | None,
    text: str,
    *,
    found: tuple[InterruptedSession, PriorUsage] | None,
    workdir: Path | str | None,
    journal: Journal | None,
    budget: Budget | None,
    cancel: threading.Event | None,
    on_event: EventSink | None,
    info: Mapping[str, Any] | None,
) -> AgentSession:
    """Return the session of the next turn, with a run that can take it.

    The arguments are those of `MultiStepAgent.turn`.

    Raises:
        InputError: see `MultiStepAgent.turn`.
    """
    check_types(journal, budget)
    run = session.run if session is not None else None
    if isinstance(run, Run):
        if not run.waits_for_turn:
            raise InputError(f"session {run.session.id} still works on its last turn")
        run.renew(budget, cancel, on_event)
        run.turn_text = text
        return run.session
    agent.check()
    answer = ""
    interrupted = found[0] if found else _recorded(session, journal)
    if interrupted is not None:
        session = interrupted.session
        if interrupted.asked and interrupted.asked["question"]:
            text, answer = "", text
    elif not text.strip():
        raise InputError("the first message is missing: give an instruction as text")
    else:
        session = prepare_session(session, text, agent.name, info or {})
        text = ""
    run = Run(
        agent,
        session,
        workdir=workdir,
        journal=journal,
        budget=budget,
        cancel=cancel,
        on_event=on_event,
        interrupted=interrupted,
        answer=answer,
    )
    run.keeps_open, run.turn_text = True, text
    session.run = run
    return session


def _recorded(session: AgentSession | None, journal: Journal | None) -> InterruptedSession | None:
    """Return the conversation in a journal, or else that of an ended session; None if it is new."""
    if journal is not None and journal.folder is not None and is_journal(journal.folder):
        recorded, _ = read_interrupted_run(read_events(journal.folder))
        if recorded is not None and "start_time" in recorded.session.info:
            return recorded
    if session is None or not session.steps:
        return None
    return InterruptedSession(session, lease=session.lease)


def record_turn(run: Run) -> None:
    """Record the message of the user that starts a turn, if there is one.

    A step that was interrupted before it ended gets an observation that says so.
    """
    text, run.turn_text = run.turn_text, ""
    if not text:
        return
    session, interrupted = run.session, run.interrupted
    if interrupted is not None and interrupted.in_progress and interrupted.has_acted:
        run.interrupted = None
        observation = interrupted.describe_for_model()
        run.record(EventKind.OBSERVATION, ObservationData(observation=observation))
    elif interrupted is None and session.finished_steps() < len(session.steps):
        run.record(EventKind.OBSERVATION, ObservationData(observation=_INTERRUPTED))
    run.record(EventKind.TURN, TurnData(text=text))


def keeps_resources(run: Run, error: BaseException | None) -> bool:
    """Whether a run keeps its environment and worker after a turn, for the next one.

    After a failed environment, or a stop for the user's decision, the next turn opens the run
    again.
    """
    kept = LimitReached | Cancelled | KeyboardInterrupt | ModelError
    return run.keeps_open and (error is None or isinstance(error, kept))


def end_session(agent: TurnTaking, session: AgentSession) -> None:
    """Release the environment and the worker of a conversation; see `MultiStepAgent`."""
    run = session.run
    if not isinstance(run, Run):
        return
    if not run.waits_for_turn:
        raise InputError(f"session {session.id} still works on its last turn")
    try:
        agent.end_run(session)
    finally:
        run.close()
        session.run = None


def check_types(journal: Any, budget: Any) -> None:
    """Raise InputError if an argument is not a journal or a budget."""
    if not isinstance(journal, Journal | None):
        raise InputError(
            f"journal: {journal!r} is not a Journal; open one: `with Journal(FOLDER) as journal`"
        )
    if not isinstance(budget, Budget | None):
        raise InputError(
            f"budget: {budget!r} is not a Budget; give Budget(max_steps=..., max_money=...)"
        )


def check_extra_info(extra: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raise InputError if a fact for `session.info` looks like a misspelled argument."""
    known = inspect.signature(function).parameters
    for name in extra:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            raise InputError(
                f"run(): unknown argument '{name}'; did you mean '{near[0]}'? "
                f"To pass a fact of that name, use info={{{name!r}: ...}}"
            )


def prepare_session(
    session: AgentSession | None,
    task: Any,
    agent: str,
    info: Mapping[str, Any],
    memory: Any = None,
) -> AgentSession:
    """Return the session of a new run.

    Args:
        session: a new session; created when None.
        task: the instruction.
        agent: name of the agent.
        info: facts for `session.info`.
        memory: sources of a `Memory`.

    Raises:
        InputError: the task is None, or the session is not new.
    """
    if task is None:
        raise InputError("the task is missing: give an instruction as text")
    session = session or AgentSession()
    if session.steps or session.run is not None:
        raise InputError("this session is not new: give a new one, or none")
    session.task, session.agent = str(task), agent
    session.info.update(jsonable(info))
    if memory is not None:
        sources = memory if isinstance(memory, list | tuple) else [memory]
        session.info["memory"] = Memory.of(*sources).latest(_MEMORY_CHARS)
    return session


def suspend_run(agent: TurnTaking, session: AgentSession) -> None:
    """Record the lease of a run's environment, and release its worker; see `MultiStepAgent`."""
    run = run_of(session)
    lease = run.suspend_environment()
    agent.end_run(session)
    run.record(EventKind.SUSPENDED, SuspendedData(lease=lease))
    run.close()
    run.mark_ended()
    session.run = None
