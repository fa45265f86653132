"""The plan: when an agent writes one, and how it becomes the progress state."""

from __future__ import annotations

from typing import Any

from ck_pro.agent_settings import AgentSettings
from ck_pro.events import EventKind
from ck_pro.events.journal_events import PlanData
from ck_pro.exceptions import AnswerNeeded
from ck_pro.run.run import Run
from ck_pro.session.goals import parse_progress


def is_plan_due(agent: AgentSettings, run: Run) -> bool:
    """Whether the current step begins with the plan phase."""
    if not agent.templates.get("plan"):
        return False
    stuck = agent.plan_when_stuck and run.history.repeats() >= 2
    return stuck or (len(run.session.steps) - 1) % agent.plan_every == 0


def record_plan(run: Run, written: Any) -> str:
    """Record the plan that a model wrote as the progress state; return the reply to the model.

    A question in the plan goes to the user, and the answer into the progress state.

    Args:
        run: the run of the agent.
        written: the plan as data.

    Raises:
        ParseError: `written` is not a plan.
        AnswerNeeded: the plan has a question without an answer.
    """
    state = parse_progress(written)
    question = str(state.pop("question", None) or "")
    run.record(EventKind.PLAN, PlanData(state=state), phase="plan")
    if question:
        answer = run.ask(question)
        if answer is None:
            raise AnswerNeeded(question, question)
        learned = f"Question to the user: {question} Answer: {answer}"
        state = {**run.session.state}
        state["information"] = [*state["information"], learned]
        run.record(EventKind.PLAN, PlanData(state=state), phase="plan")
    return "The plan is updated."
