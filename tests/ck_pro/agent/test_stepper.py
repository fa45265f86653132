"""An agent with an external loop: `step(state) -> Action`."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

import ck_pro.agent.stepper
from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.agent.stepper import Stepper
from ck_pro.events import (
    ComputerAction,
    ComputerObservation,
    FinishAction,
    RejectAction,
    ToolCall,
    action_from_dict,
)
from ck_pro.events.progress_events import ProgressEvent, ProgressKind
from ck_pro.exceptions import InputError, LimitReached, ModelUnavailable
from ck_pro.journal import read_events
from ck_pro.language import text_of
from ck_pro.model import Reply
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import FakeEnvironment, ScriptedLLM


def calls(*given: tuple[str, dict[str, Any]]) -> Reply:
    made = [
        {"id": f"c{i}", "function": {"name": n, "arguments": json.dumps(a)}}
        for i, (n, a) in enumerate(given)
    ]
    return Reply("", tool_calls=made)


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


def agent(*replies: Any, **settings: Any) -> MultiStepAgent:
    settings = {"language": "computer_use", "tools": [add, StopTool()], **settings}
    return MultiStepAgent(model=ScriptedLLM(list(replies)), **settings)


def drive(stepper: Stepper, world: FakeEnvironment) -> Any:
    """An external loop: it acts, and the agent only decides."""
    action = stepper.step(stepper.state)
    while not isinstance(action, FinishAction | RejectAction):
        assert action_from_dict(action.to_dict()) == action
        stepper.observe(world.execute(action))
        action = stepper.step(stepper.state)
    return action


def test_the_loop_acts_and_the_agent_decides(tmp_path: Path) -> None:
    click = calls(("computer", {"action": "click", "x": 1, "y": 2}), ("add", {"a": 1, "b": 2}))
    broken = Reply("I talk", tool_calls=[{"function": {"arguments": "{"}}])
    a = agent(click, broken, "done", tools=[add])
    world = FakeEnvironment(["nothing", "clicked", "added"])
    with Journal(tmp_path) as journal, Stepper(a, "t", journal=journal) as stepper:
        finish = drive(stepper, world)
    state = stepper.state
    assert finish == FinishAction(output="done")
    assert [type(x) for x in world.actions] == [ComputerAction, ToolCall]
    assert (state.status, state.final_results["output"]) == (Status.DONE, "done")
    seen = [s["action"]["observation"] for s in state.steps]
    assert seen[0] == ["clicked", "added"] and seen[1].startswith("ParseError: ")
    assert stepper.search_memory("clicked")[0].startswith("Step 0: ")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    results = [m for m in model.calls[1].messages if m["role"] == "tool"]
    assert [text_of(m["content"]) for m in results] == ["```\nclicked\n```", "```\nadded\n```"]
    assert [m["tool_call_id"] for m in results] == ["c0", "c1"]
    (rebuilt,) = sessions_from_events(read_events(tmp_path)).values()
    assert json.dumps(rebuilt.to_dict()) == json.dumps(state.to_dict())


def test_the_agent_executes_an_action_on_request() -> None:
    a = agent(calls(("add", {"a": 1, "b": 2})), calls(("stop", {"output": "3"})))
    seen: list[ProgressEvent] = []
    with Stepper(a, "t", on_event=seen.append) as stepper:
        stepper.step(stepper.state)
        assert stepper.act() == "3"
        kinds = [event["kind"] for event in seen]
        assert kinds.count(ProgressKind.STEP_STARTED) == kinds.count(ProgressKind.STEP_ENDED) == 1
        assert stepper.step(stepper.state) == FinishAction(output="3")
        with pytest.raises(InputError, match="has ended"):
            stepper.step(stepper.state)
    assert stepper.state.final_results["output"] == "3"
    assert stepper.state.status is Status.DONE


@pytest.mark.parametrize("language", ["computer_use", "function_calls"])
def test_the_documented_loop_ends_when_the_model_calls_stop(language: str) -> None:
    click = calls(("add", {"a": 1, "b": 2}))
    wrong = calls(("stop", {"result": "3"}))
    stop = calls(("stop", {"output": "3"}), ("add", {"a": 3, "b": 4}))
    world = FakeEnvironment(["nothing", "clicked"])
    with Stepper(agent(click, wrong, stop, language=language), "t") as stepper:
        assert drive(stepper, world) == FinishAction(output="3")
    assert [type(x) for x in world.actions] == [ToolCall]
    assert stepper.state.status is Status.DONE
    seen = [s["action"]["observation"] for s in stepper.state.steps]
    assert "TypeError" in seen[1] and stepper.state.final_results["output"] == "3"


@pytest.mark.worker
def test_the_loop_ends_when_executed_code_calls_stop() -> None:
    replies = ["```python\nprint(add(1, 2))\n```", "```python\nstop('3')\n```"]
    with Stepper(agent(*replies, language="code"), "t") as stepper:
        action = stepper.step(stepper.state)
        while not isinstance(action, FinishAction | RejectAction):
            stepper.act()
            action = stepper.step(stepper.state)
    assert action == FinishAction(output="3")
    assert stepper.state.status is Status.DONE


def test_screens_are_recorded_with_the_calls() -> None:
    a = agent(calls(("computer", {"action": "wait"})), "ok", tools=[add])
    shown = ComputerObservation(text="waited", image="data:image/png;base64,AAAA")
    with Stepper(a, "t") as stepper:
        drive(stepper, FakeEnvironment(respond=lambda action: shown))
    (screen,) = stepper.state.steps[0]["action"]["screens"]
    assert (screen["call_id"], screen["image"]) == ("c0", shown.image)


def test_every_stop_reason_is_recorded() -> None:
    class Watched(MultiStepAgent):
        ended: list[str] = []

        def end_run(self, session: AgentSession) -> None:
            self.ended.append(session.id)

    def run(*replies: Any, budget: Budget | None = None, max_steps: int = 2) -> AgentSession:
        model = ScriptedLLM(list(replies))
        a = Watched(model=model, language="function_calls", tools=[add], max_steps=max_steps)
        stepper = Stepper(a, "t", budget=budget)
        try:
            with stepper:
                drive(stepper, FakeEnvironment())
        except (LimitReached, ModelUnavailable, KeyboardInterrupt):
            pass
        assert a.ended[-1] == stepper.state.id and stepper.state.run is None
        return stepper.state

    one = calls(("add", {"a": 1, "b": 2}))
    assert run(one, one, one).stop_reason is StopReason.STEPS
    assert run(one, one, budget=Budget(max_tokens=1)).stop_reason is StopReason.TOKENS
    assert run(ModelUnavailable("gone")).stop_reason is StopReason.MODEL_FAILURE
    assert run("ok").stop_reason is StopReason.FINISHED
    with Stepper(agent("never asked"), "t") as left:
        pass
    assert (left.state.status, left.state.message) == (
        Status.IN_PROGRESS,
        "the external loop left the `with` block",
    )


def test_calls_in_the_wrong_order_raise() -> None:
    with Stepper(agent(calls(("add", {"a": 1, "b": 2})), "x"), "t") as stepper:
        for wrong in (lambda: stepper.observe("x"), stepper.act):
            with pytest.raises(InputError, match="no action is pending"):
                wrong()
        with pytest.raises(InputError, match="not the state of this stepper"):
            stepper.step(AgentSession("other"))
        stepper.step(stepper.state)
        with pytest.raises(InputError, match="observe"):
            stepper.step(stepper.state)
    with pytest.raises(InputError, match="outside its"):
        stepper.step(stepper.state)


def test_the_docstring_example_runs() -> None:
    assert doctest.testmod(ck_pro.agent.stepper).failed == 0


PLAN = {"completed_list": [], "todo_list": ["add"], "experience": [], "information": []}


@pytest.mark.parametrize("language", ["code", "function_calls"])
def test_a_reply_with_only_a_plan_stays_inside(language: str) -> None:
    replies: list[Any] = [f"So.\n```python\n{PLAN}\n```", "```python\nprint(1)\n```"]
    if language == "function_calls":
        replies = [calls(("update_plan", PLAN)), calls(("add", {"a": 1, "b": 2}))]
    templates = {"plan": "agent_plan", "action": "agent_action"}
    a = agent(*replies, language=language, templates=templates)
    with Stepper(a, "t") as stepper:
        action = stepper.step(stepper.state)
        assert action.kind in ("code", "tool_call")
        assert "update_plan" not in str(action)
        stepper.observe("seen")
    state = stepper.state
    assert state.state["todo_list"] == ["add"] and len(state.steps) == 2
    assert "The plan is updated." in str(state.steps[0]["action"]["observation"])
