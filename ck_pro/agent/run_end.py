"""The end of a run: its reason, its result and last records, and the release of its resources."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.agent.turns import keeps_resources
from ck_pro.events import EventKind
from ck_pro.events.event_parts import AskedQuestion, FinalResults
from ck_pro.events.journal_events import EndData, StatusData, StepData
from ck_pro.events.progress_events import ProgressKind
from ck_pro.exceptions import (
    AnswerNeeded,
    AwaitingHuman,
    Cancelled,
    CKError,
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
from ck_pro.run.kept import keep_resources
from ck_pro.run.results import final_result
from ck_pro.run.run import Run
from ck_pro.session import AgentSession, Status, StopReason

if TYPE_CHECKING:
    from ck_pro.agent.agent import MultiStepAgent

_log = logging.getLogger("ck_pro.agent")


def record_finalized(agent: MultiStepAgent, run: Run) -> None:
    """Call `finalize`; the return value of an override replaces the recorded result."""
    given = agent.finalize(run.session)
    if isinstance(given, Mapping) and given.get("output") is not None:
        results = final_result(given)
        if results != run.session.final_results:
            run.record(EventKind.END, EndData(final_results=results), phase="end")


def finalize_after_limit(agent: MultiStepAgent, run: Run) -> None:
    """Run the end phase, if there is one and the limit that was reached allows its call."""
    if not run.session.steps or not agent.templates.get("end"):
        return
    try:
        record_finalized(agent, run)
    except (LimitReached, ModelError, EnvironmentFailure) as e:
        _log.info("%s: no end phase: %s", agent.name, e)


def release(
    agent: MultiStepAgent, run: Run, reason: StopReason, message: str, error: BaseException | None
) -> None:
    """Call the hook, release the resources of a run, and record its end."""
    lease: Any = None
    if error is None:
        run.pictures.record_last()
    if keeps_resources(run, error):
        run.end_children()
        record_ending(run, reason, message, error)
        run.session.run, run.waits_for_turn = run, True
        return
    variables = collected_variables(run, reason)
    try:
        if waits_for_user(error, run):
            lease = run.suspend_environment()
        elif run.parent is not None and agent.can_continue and is_usable(error, run):
            lease = keep_resources(run, agent.discard_environment)
        agent.end_run(run.session)
    finally:
        run.close()
        record_ending(run, reason, message, error, lease, variables)


def stop_reason_for(error: BaseException) -> StopReason:
    """Return the stop reason for an error that ended a run."""
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

    A failed sub-agent returns a result that says why. An interrupted one has no result: its caller
    stops with it, and both resume at the same point.
    """
    if isinstance(error, KeyboardInterrupt | GeneratorExit | JournalError):
        return True
    if run.parent is None:
        return False
    if isinstance(error, AwaitingHuman):
        return bool(run.parent.agent.sub_agent_stops == "end")
    return isinstance(error, ReplayError | ManualAbort | Cancelled)


def waits_for_user(error: BaseException | None, run: Run) -> bool:
    """Whether a run that an error ended keeps its environment until the user answers."""
    if isinstance(error, Cancelled):
        return run.stopped_with_caller()
    if not isinstance(error, AwaitingHuman):
        return False
    return run.parent is None or should_propagate(error, run)


def classify_failure(error: BaseException, run: Run) -> tuple[StopReason, str]:
    """Return the stop reason and the message for an error; log internal errors.

    A `CKError` is not a fault of the program: its message is for the user, without a traceback.
    """
    reason = stop_reason_for(error)
    if isinstance(error, CKError):
        return reason, str(error)
    if reason is StopReason.INTERNAL_ERROR and not should_propagate(error, run):
        _log.error("%s: an internal error ended the run", "/".join(run.path), exc_info=error)
        return reason, f"{type(error).__name__}: {error}"
    return reason, str(error)


def normal_stop_reason(session: AgentSession, name: str, limit: int) -> tuple[StopReason, str]:
    """Return the stop reason and the message of a loop that ended without an error."""
    if (
        session.finish is None and len(session.steps) - session.turn_start < limit
    ):  # by `step_check_end`
        return StopReason.FINISHED, ""
    if session.finish is None:
        return StopReason.STEPS, f"{name} did not finish within {limit} steps"
    if session.finish.get("rejected"):
        return StopReason.REJECTED, session.finish["log"]
    return StopReason.FINISHED, ""


def is_usable(error: BaseException | None, run: Run) -> bool:
    """Whether the environment and the worker of a run that has ended can be used again."""
    return (error is None or isinstance(error, ModelError)) and not run.cancel.is_set()


def collected_variables(run: Run, reason: StopReason) -> dict[str, Any]:
    """Return the data in the code's variables, if a run ends with a problem and no answer."""
    if reason.status is not Status.PROBLEM or run.session.finish is not None:
        return {}
    return run.run_code.plain_values()


def record_ending(
    run: Run,
    reason: StopReason,
    message: str,
    error: BaseException | None = None,
    lease: Any = None,
    variables: dict[str, Any] | None = None,
) -> None:
    """Record the end of a session: its status, and a step and a result if they are missing.

    Args:
        run: the run of the session.
        reason, message: the reason for its end.
        error: the error that ended it, if any.
        lease: the lease of its environment, for the run that resumes.
        variables: the data that its code had collected, if it ended without an answer.
    """
    session = run.session
    try:
        if not session.steps:
            run.record(EventKind.STEP, StepData(taken=False))
        if session.final_results is None:
            found = session.finish or FinalResults(output="", log=message)
            results = FinalResults(output=found["output"], log=found["log"])
            run.record(EventKind.END, EndData(final_results=results), phase="end")
        status, stop_reason = reason.status.value, reason.value
        data = StatusData(status=status, stop_reason=stop_reason, message=message)
        if variables:
            data["variables"] = variables
        _add_interruption(data, error, run)
        if lease is not None:
            data["lease"] = lease
        data["budget"] = run.budget.snapshot()
        run.record(EventKind.STATUS, data)
        run.emit(ProgressKind.RUN_ENDED, text=message, status=status, stop_reason=stop_reason)
    finally:
        run.mark_ended()
        session.run = None


def _add_interruption(data: StatusData, error: BaseException | None, run: Run) -> None:
    """Add whether the session was interrupted, and the question that it waits for."""
    raised = error is not None and should_propagate(error, run)
    if raised and run.parent is not None:
        data["interrupted"] = True
    if isinstance(error, AwaitingHuman) and (raised or run.parent is None):
        # the stop of an approver has no question: an answer must not count as approval
        question = error.question or ("" if isinstance(error, GuardStopped) else str(error))
        asked = AskedQuestion(session=error.session or run.session.id, question=question)
        if isinstance(error, GuardStopped) and error.action:
            asked["action"] = error.action
        data["asked"] = asked
