"""Plans: when to ask for one, the plan that an action's reply carries, and the progress state."""

from __future__ import annotations

from typing import Any

from ck_pro.events import EventKind, ThinkAction
from ck_pro.events.journal_events import PlanData
from ck_pro.exceptions import AnswerNeeded, ParseError
from ck_pro.executor.extract import extract_code
from ck_pro.language import AgentLanguage, parse_literal
from ck_pro.model import Reply
from ck_pro.run.run import Run
from ck_pro.session.goals import parse_progress

UPDATED = "The plan is updated."
_UNREADABLE = "Your last plan was unreadable; the previous plan stays: {}"


def is_plan_due(run: Run) -> bool:
    """Whether the current step asks for a plan in a separate model call."""
    agent, mode = run.agent, run.agent.active_planning
    if mode == "off":
        return False
    if agent.plan_when_stuck and run.history.repeats() >= 2:
        return True
    if mode == "fused":
        return run.history.is_full()
    return (len(run.session.steps) - 1) % agent.plan_every == 0


def record_plan(run: Run, written: Any, text: str = "") -> str | None:
    """Record the plan that a model wrote as the progress state.

    A question in the plan goes to the user, and the answer into the progress state.

    Args:
        run: the run of the agent.
        written: the plan as data.
        text: the plan as written in the reply of an action, for the row.

    Returns:
        The question of the plan with its answer; None for a plan without a question.

    Raises:
        ParseError: `written` is not a plan.
        AnswerNeeded: the plan has a question without an answer.
    """
    state = parse_progress(written)
    question = str(state.pop("question", None) or "")
    data = PlanData(code=text, state=state) if text else PlanData(state=state)
    run.record(EventKind.PLAN, data, phase="plan")
    if not question:
        return None
    answer = run.ask(question)
    if answer is None:
        raise AnswerNeeded(question, question)
    learned = f"Question to the user: {question} Answer: {answer}"
    state = {**run.session.state}
    state["information"] = [*state["information"], learned]
    run.record(EventKind.PLAN, PlanData(state=state), phase="plan")
    return learned


def take_plan(run: Run, reply: Reply) -> Reply | ThinkAction:
    """Record the plan that the reply of an action carries; return the rest of the reply.

    An unreadable plan changes nothing; the next prompt reports it.

    Returns:
        The reply without the plan, or an action without effect if the reply asks the user a
        question or has nothing but a plan.

    Raises:
        AnswerNeeded: the plan has a question without an answer.
    """
    if run.agent.active_planning != "fused":
        return reply
    language: AgentLanguage = run.agent.language
    plan, rest = language.split_plan(reply)
    if not plan:
        return reply
    try:
        answered = record_plan(run, parse_literal(plan), plan)
    except ParseError as e:
        report_unreadable_plan(run, e)
        return rest
    if answered:
        return ThinkAction(thought=f"{answered}\nNo code of this reply ran, because it asked.")
    if not extract_code(rest):
        return ThinkAction(thought=f"{UPDATED} The reply has no code: write the code of the step.")
    return rest


def report_unreadable_plan(run: Run, error: ParseError) -> None:
    """Record that a plan is unreadable, and report it in the next prompt that can carry a plan."""
    run.record_unreadable("plan", error)
    fused = run.agent.active_planning == "fused"
    (run.notices if fused else run.plan_notices).append(_UNREADABLE.format(error))
