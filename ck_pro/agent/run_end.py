"""The end of a run: the final result, also after a limit, and the release of its resources."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.agent import stop_reasons
from ck_pro.agent.turns import keeps_resources
from ck_pro.events import EventKind
from ck_pro.events.journal_events import EndData
from ck_pro.exceptions import EnvironmentFailure, LimitReached, ModelError
from ck_pro.run.kept import keep_resources
from ck_pro.run.results import final_result
from ck_pro.run.run import Run
from ck_pro.session import StopReason

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
        stop_reasons.record_ending(run, reason, message, error)
        run.session.run, run.waits_for_turn = run, True
        return
    variables = stop_reasons.collected_variables(run, reason)
    try:
        if stop_reasons.waits_for_user(error, run):
            lease = run.suspend_environment()
        elif run.parent is not None and agent.can_continue and stop_reasons.is_usable(error, run):
            lease = keep_resources(run, agent.discard_environment)
        agent.end_run(run.session)
    finally:
        run.close()
        stop_reasons.record_ending(run, reason, message, error, lease, variables)
