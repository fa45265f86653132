"""The plan and the actions of a reply: read and record them, and execute actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ck_pro.agent.prompts import check_own_values, copied_example
from ck_pro.approval import describe
from ck_pro.events import (
    Action,
    CodeAction,
    ComputerAction,
    ErrorObservation,
    EventKind,
    FinishAction,
    MessageAction,
    ThinkAction,
    ToolCall,
)
from ck_pro.events.journal_events import ActionData, ErrorData, ParsedReply, PlanData
from ck_pro.exceptions import AnswerNeeded, ParseError, ends_run, error_text
from ck_pro.executor import LocalCall, outside_calls
from ck_pro.executor.extract import extract_code
from ck_pro.language import AgentLanguage, parse_literal, parse_thought_code
from ck_pro.language.text_calls import named_call
from ck_pro.model import Reply
from ck_pro.run.results import result_observation
from ck_pro.run.run import Run
from ck_pro.session.goals import parse_progress

if TYPE_CHECKING:
    from ck_pro.agent.agent import MultiStepAgent

UPDATED = "The plan is updated."
_UNREADABLE = "Your last plan was unreadable; the previous plan stays: {}"


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
    if run.planning != "fused":
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
    fused = run.planning == "fused"
    (run.notices if fused else run.plan_notices).append(_UNREADABLE.format(error))


def read_actions(agent: MultiStepAgent, run: Run, reply: Reply) -> list[Action]:
    """Return the actions of a reply and record them, and its plan, in the step.

    Code that only the agent's own `_parse_output` finds runs unchanged.

    Raises:
        ParseError: the reply has no action in the expected form.
        AnswerNeeded: the reply's plan has a question without an answer.
    """
    rest = take_plan(run, reply)
    if isinstance(rest, ThinkAction):
        run.record(EventKind.ACTION, ActionData(thought=str(reply), code=""), phase="action")
        return [rest]
    reply, parsed = rest, agent._parse_output(rest)
    run.record(EventKind.ACTION, parsed, phase="action")
    if agent.parses_itself and parsed.get("code", "") != parse_thought_code(reply)["code"]:
        return [_custom_action(parsed)]
    actions = parsed_actions(run, reply)
    for action in actions:
        if isinstance(action, CodeAction | ToolCall) and action.note:
            run.record_unreadable("action", action.note)
    calls = [describe(a) for a in actions if isinstance(a, ToolCall | ComputerAction)]
    check_own_values(run, reply, actions)
    if calls:
        run.record(EventKind.ACTION, ActionData(code="\n".join(calls)), phase="action")
    return actions


def preview_actions(agent: MultiStepAgent, run: Run, reply: Reply) -> list[Action]:
    """Return the actions that `read_actions` would return for a reply without a plan.

    Nothing is recorded.

    Raises:
        ParseError: the reply has no action in the expected form.
    """
    parsed = agent._parse_output(reply)
    if agent.parses_itself and parsed.get("code", "") != parse_thought_code(reply)["code"]:
        return [_custom_action(parsed)]
    actions = parsed_actions(run, reply)
    if (copied := copied_example(run, reply, actions)) is not None:
        raise copied
    return actions


def _custom_action(parsed: ParsedReply) -> CodeAction:
    """Return the code that only the agent's own parser finds."""
    code = parsed.get("code", "")
    if not code.strip():
        raise ParseError("The reply contains no code in the expected form.")
    return CodeAction(code=code, thought=parsed.get("thought", ""))


def parsed_actions(run: Run, reply: Reply) -> list[Action]:
    """Return the actions that the agent's language reads in a reply."""
    return [_as_answer(run, action) for action in run.agent.language.parse(reply)]


def _as_answer(run: Run, action: Action) -> Action:
    """Turn a message without a call into the answer; return other actions unchanged."""
    if not isinstance(action, MessageAction):
        return action
    terminal = run.functions.registry.terminal
    if terminal:
        raise ParseError(
            "The reply calls no function, so nothing ran. Call the next function. If the task is "
            f"done, call {' or '.join(terminal)} with the answer."
        )
    if (name := named_call(action.content, run.functions.registry.names)) is not None:
        raise ParseError(
            f"The reply has a call of {name} inside its text, so nothing ran. Make the call by the "
            "function calls of this interface, or give the answer without it."
        )
    return FinishAction(output=action.content)


def call_function(run: Run, name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a function, or fill in the plan, for a model that writes no code.

    Args:
        run: the run.
        name: name of the function or form.
        arguments: its arguments.

    Returns:
        The result or the error, as part of an observation.
    """
    functions = run.functions.by_name
    if name not in functions and name in [form.name for form in run.agent.forms]:
        try:
            return record_plan(run, arguments) or UPDATED
        except ParseError as e:
            run.record_unreadable("plan", e)
            return error_text(e)
    if name not in functions:
        return f"Error: no function {name!r}; known are: {', '.join(functions)}"

    def call() -> Any:
        result = functions[name](**arguments)
        return result if isinstance(result, LocalCall) else result_observation(result)

    observed = _attempt(call)
    return run.run_code.run_local_call(observed) if isinstance(observed, LocalCall) else observed


def act_on_environment(run: Run, action: Action) -> str:
    """Execute an action in the run's environment; return its text for the model."""

    def call() -> str:
        seen = run.act(action)
        if isinstance(seen, ErrorObservation):
            run.record(EventKind.ERROR, ErrorData(error="ActionFailed"))
        return str(seen)

    return str(_attempt(call))


def _attempt(call: Callable[[], Any]) -> Any:
    """Return what `call` returns, or the text of its error, unless the error ends the run."""
    try:
        with outside_calls():
            return call()
    except BaseException as e:
        if ends_run(e):
            raise
        return error_text(e)
