"""Why a run ended, and the last records that say so."""

from __future__ import annotations

import logging
from typing import Any

from ck_pro.events import EventKind
from ck_pro.events.journal_events import (
    AskedQuestion,
    EndData,
    FinalResults,
    StatusData,
    StepData,
)
from ck_pro.exceptions import (
    AnswerNeeded,
    AwaitingHuman,
    Cancelled,
    EnvironmentFailure,
    ExecutorError,
    GuardStopped,
    HumanNeeded,
    JournalError,
    LeaseExpired,
    LimitReached,
    ManualAbort,
    ModelError,
    PageRefused,
    ReplayError,
    RunEnding,
)
from ck_pro.run.run import Run, run_of
from ck_pro.session import AgentSession, StopReason

_log = logging.getLogger(__name__)


def stop_reason_for(error: BaseException) -> StopReason:
    """The reason for which an error ends a run."""
    match error:
        case LimitReached(reason=reason):
            return StopReason(reason)
        case GuardStopped():
            return StopReason.GUARD
        case HumanNeeded():
            return StopReason.HUMAN
        case AnswerNeeded():
            return StopReason.AMBIGUITY
        case PageRefused():
            return StopReason.PAGE_REFUSED
        case ModelError():
            return StopReason.MODEL_FAILURE
        case RunEnding() | KeyboardInterrupt() | GeneratorExit():
            return StopReason.CANCELLED
        case LeaseExpired():
            return StopReason.LEASE_EXPIRED
        case EnvironmentFailure() | ExecutorError():
            return StopReason.ENVIRONMENT_FAILURE
    return StopReason.INTERNAL_ERROR


def should_propagate(error: BaseException, run: Run) -> bool:
    """Whether an error that ends a run is also raised to its caller.

    A sub-agent that failed has a result, which says why. A sub-agent that was interrupted has none:
    its caller stops with it, and both resume at the same point.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit | JournalError):
        return True
    if run.parent is None:
        return False
    if isinstance(error, AwaitingHuman):
        return bool(run.parent.agent.sub_agent_stops == "end")
    return isinstance(error, ReplayError | ManualAbort | Cancelled)


def waits_for_person(error: BaseException | None, run: Run) -> bool:
    """Whether a run that an error ends is to resume, in its environment, once a person answered."""
    if isinstance(error, Cancelled):
        return run.stopped_with_caller()
    if not isinstance(error, AwaitingHuman):
        return False
    return run.parent is None or should_propagate(error, run)


def classify_failure(error: BaseException, run: Run) -> tuple[StopReason, str]:
    """Why an error ends a run, and what is told of it; an error of ours is logged."""
    reason = stop_reason_for(error)
    if reason is StopReason.INTERNAL_ERROR and not should_propagate(error, run):
        _log.error("%s: the run ended by an error of ours", "/".join(run.path), exc_info=error)
        return reason, f"{type(error).__name__}: {error}"
    return reason, str(error)


def normal_stop_reason(session: AgentSession, name: str, limit: int) -> tuple[StopReason, str]:
    """Why a loop that no error ended has ended: a terminal action, the number of steps, or else a
    subclass's `step_check_end`."""
    if session.finish is None and len(session.steps) < limit:
        return StopReason.FINISHED, ""
    if session.finish is None:
        return StopReason.STEPS, f"{name} did not finish within {limit} steps"
    if session.finish.get("rejected"):
        return StopReason.REJECTED, session.finish["log"]
    return StopReason.FINISHED, ""


def record_ending(
    session: AgentSession,
    reason: StopReason,
    message: str,
    error: BaseException | None = None,
    lease: Any = None,
) -> None:
    """Give a session what every ended one has: a step, an end, a status.

    Args:
        session: the session, with its run.
        reason, message: why it ended.
        error: the error that ended it, if one did.
        lease: what its environment keeps for the run that resumes it.
    """
    run = run_of(session)
    try:
        if not session.steps:
            run.record(EventKind.STEP, StepData(taken=False))
        if session.final_results is None:
            found = session.finish or FinalResults(output="", log=message)
            results = FinalResults(output=found["output"], log=found["log"])
            run.record(EventKind.END, EndData(final_results=results), phase="end")
        status, stop_reason = reason.status.value, reason.value
        data = StatusData(status=status, stop_reason=stop_reason, message=message)
        _add_interruption(data, error, run)
        if lease is not None:
            data["lease"] = lease
        data["budget"] = run.budget.snapshot()
        run.record(EventKind.STATUS, data)
        run.emit("run_ended", text=message, status=status, stop_reason=stop_reason)
    finally:
        run.ended()
        session.run = None


def _add_interruption(data: StatusData, error: BaseException | None, run: Run) -> None:
    """Add whether the session was interrupted, and the question that it waits for."""
    raised = error is not None and should_propagate(error, run)
    if raised and run.parent is not None:
        data["interrupted"] = True
    if isinstance(error, AwaitingHuman) and (raised or run.parent is None):
        # an approver's stop is no question: an answer must not pass for an approval
        question = error.question or ("" if isinstance(error, GuardStopped) else str(error))
        data["asked"] = AskedQuestion(session=error.session or run.session.id, question=question)
