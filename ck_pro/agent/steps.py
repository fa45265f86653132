"""The parts of one step of the loop: prepare, plan, decide, act, or complete an interrupted one.

`MultiStepAgent.step` calls them; they call its hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.agent.actions import read_actions, record_plan, report_unreadable_plan
from ck_pro.agent.end_phase import ask_for_result, end_values
from ck_pro.agent.prompts import state_values
from ck_pro.events import EventKind
from ck_pro.events.event_parts import FinalResults
from ck_pro.events.journal_events import ParsedReply
from ck_pro.exceptions import ContentFiltered, ParseError
from ck_pro.language import END_FORM, PLAN_FORM
from ck_pro.model import Reply
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.run import Run

if TYPE_CHECKING:
    from ck_pro.agent.agent import MultiStepAgent


def decide_and_act(
    agent: MultiStepAgent, run: Run, state: Mapping[str, Any], recorded: Reply | None = None
) -> Any:
    """Return the observation of a step, whose reply may be recorded already."""
    session = run.session
    try:
        if recorded is not None:
            actions = read_actions(agent, run, recorded)
        else:
            kwargs = prepare_action(agent, run, state)
            actions = agent.decide(session, kwargs)
    except (ParseError, ContentFiltered) as e:
        return run.record_reply_error(e)
    return agent.act(session, actions)


def prepare_action(agent: MultiStepAgent, run: Run, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for the action's template; plan first if a plan is due.

    The planner sees the whole history; it is condensed only afterwards.
    """
    due = is_plan_due(run)
    if not due:
        run.history.condense()
    kwargs = agent.step_prepare(run.session, dict(state))
    if due:
        kwargs.update(plan(agent, run, kwargs))
        if run.history.condense():
            kwargs.update(run.history.shown_steps())
    return kwargs


def is_plan_due(run: Run) -> bool:
    """Whether the current step asks for a plan in a separate model call."""
    agent, mode = run.agent, run.planning
    if mode == "off":
        return False
    if agent.plan_when_stuck and run.history.repeats() >= 2:
        return True
    if mode == "fused":
        return run.history.is_full()
    return (len(run.session.steps) - 1) % agent.plan_every == 0


def resume_step(agent: MultiStepAgent, run: Run, interrupted: InterruptedSession) -> Any:
    """Complete a step that was interrupted after the model had replied."""
    functions, reply = run.functions, interrupted.reply
    functions.start_replay(interrupted)
    try:
        if (
            reply is not None
            and run.has_same_environment()
            and interrupted.is_replayable(functions.on_resume, run.workdir)
        ):
            return decide_and_act(agent, run, run.session.state, reply)
        functions.complete_pending_calls(interrupted)
        return interrupted.describe_for_model()
    finally:
        functions.stop_replay()


def plan(agent: MultiStepAgent, run: Run, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Run the plan phase; return the template values that it changed."""
    notices, run.plan_notices = run.plan_notices, []
    kwargs = {**kwargs, "notices": [*notices, *kwargs["notices"]]}
    extra = agent.language.call_kwargs(run.functions.offered)
    reply = agent._call_model(run.session, "plan", kwargs, model=agent.plan_model, **extra)
    run.record(EventKind.PLAN, agent._parse_output(reply), phase="plan")
    try:
        record_plan(run, agent.language.read_form(reply, PLAN_FORM))
    except ParseError as e:
        report_unreadable_plan(run, e)
    return state_values(run.session.state)


def end_result(
    agent: MultiStepAgent, run: Run, found: Mapping[str, Any]
) -> tuple[FinalResults | None, ParsedReply]:
    """Run the end phase; see `ask_for_result`."""
    session, extra = run.session, agent.language.call_kwargs([END_FORM])

    def prepare() -> dict[str, Any]:
        values = agent.step_prepare(session, session.state)
        return {**values, "final_results": found, **end_values(run)}

    def ask(values: Mapping[str, Any]) -> Reply:
        return agent._call_model(session, "end", values, model=agent.end_model, **extra)

    return ask_for_result(run, prepare, ask, agent._parse_output)
