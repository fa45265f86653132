"""Plans in the reply of an action, in separate calls, and not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code, prompts

from ck_pro import Journal, MultiStepAgent
from ck_pro.exceptions import ConfigError
from ck_pro.journal import read_events
from ck_pro.language import CodeLanguage
from ck_pro.model import Reply
from ck_pro.session import Status, sessions_from_events
from ck_pro.testing import ScriptedLLM

pytestmark = pytest.mark.worker
PHASES = {"plan": "agent_plan", "action": "agent_action"}
PLAN = "```python\n{'todo_list': ['b'], 'information': ['a is 1']}\n```"


def phases(a: MultiStepAgent) -> list[str]:
    model = a.model
    assert isinstance(model, ScriptedLLM)
    return [c.context.phase for c in model.calls]


def test_a_reply_carries_a_plan_and_code_in_one_call(tmp_path: Path) -> None:
    reply = f"Thought: b is next\n{PLAN}\n```python\nprint(1 + 1)\n```"
    a = agent(reply, code("stop(2)"), templates=PHASES)
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    assert phases(a) == ["action", "action"]
    step = session.to_dict()["steps"][0]
    assert step["plan"]["state"]["todo_list"] == ["b"]
    assert "llm_input" not in step["plan"] and "llm_output" not in step["plan"]
    assert step["action"]["llm_output"] == reply
    assert (step["action"]["thought"], step["action"]["code"]) == ("b is next", "print(1 + 1)")
    assert step["action"]["observation"] == "2"
    assert "plan" not in session.to_dict()["steps"][1]
    assert '"a is 1"' in prompts(a)[1] and "Progress so far" not in prompts(a)[0]
    rebuilt = next(iter(sessions_from_events(read_events(tmp_path)).values()))
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


@pytest.mark.parametrize(
    ("planning", "expected"),
    [("fused", ["action"] * 3), ("off", ["action"] * 3), ("separate", ["plan", "action"] * 3)],
)
def test_the_setting_decides_about_calls(planning: str, expected: list[str]) -> None:
    def reply(messages: Any, context: Any) -> str:
        return PLAN if context.phase == "plan" else code(f"print({context.step})")

    a = agent(reply, templates=PHASES, planning=planning, max_steps=3)
    a.run("t")
    assert phases(a) == expected
    assert ("completed_list" in prompts(a)[0]) == (planning != "off")


def test_without_a_template_or_with_planning_off_a_plan_is_code() -> None:
    for settings in ({"planning": "off", "templates": PHASES}, {}, {"planning": False}):
        session = agent(f"{PLAN}\n{code('print(1)')}", max_steps=1, **settings).run("t")
        assert session.state == {} and "plan" not in session.steps[0]
        assert "todo_list" in session.steps[0]["action"]["code"]
    with pytest.raises(ConfigError, match="planning"):
        agent(planning="sometimes")


def test_repeated_steps_get_a_plan_of_their_own() -> None:
    def reply(messages: Any, context: Any) -> str:
        return PLAN if context.phase == "plan" else code("print('again')")

    a = agent(reply, templates=PHASES, stuck_limit=3)
    session = a.run("t")
    assert phases(a) == ["action", "action", "plan", "action"]
    assert session.steps[2]["plan"]["llm_output"] == PLAN
    a = agent(reply, templates=PHASES, stuck_limit=3, plan_when_stuck=False)
    a.run("t")
    assert phases(a) == ["action"] * 3


def test_the_plan_is_written_before_old_steps_leave_the_prompt() -> None:
    def reply(messages: Any, context: Any) -> str:
        return PLAN if context.phase == "plan" else code(f"print('{context.step}' * 600)")

    planner = ScriptedLLM([PLAN] * 3)
    a = agent(reply, templates=PHASES, history_chars=1500, max_steps=4, plan_model=planner)
    a.run("t")
    assert phases(a) == ["action"] * 4 and [c.context.step for c in planner.calls] == [3]
    asked = str(planner.calls[0].messages)
    assert "0" * 600 in asked and "Earlier steps omitted" not in asked
    assert "0" * 600 not in prompts(a)[3] and "Earlier steps omitted" in prompts(a)[3]
    assert "a is 1" in prompts(a)[3]


def test_an_unreadable_plan_is_reported_and_the_code_runs() -> None:
    reply = f"So.\n```python\n{{'todo_list': [x for x in y]}}\n```\n{code('print(7)')}"
    a = agent(reply, code("stop(1)"), templates=PHASES)
    session = a.run("t")
    assert session.steps[0]["action"]["observation"] == "7" and session.state == {}
    assert "plan" in session.steps[0] and "unreadable" in session.steps[0]["plan"]
    assert "Your last plan was unreadable" in prompts(a)[1]
    assert session.to_dict()["info"]["unreadable"] == {"plan": 1}


def test_a_reply_with_only_a_plan_updates_it_and_is_asked_for_code() -> None:
    a = agent(f"Thought: so\n{PLAN}", code("stop(1)"), templates=PHASES)
    session = a.run("t")
    assert session.status is Status.DONE and session.state["todo_list"] == ["b"]
    assert session.steps[0]["action"]["observation"].startswith("The plan is updated. The reply")
    assert "unreadable" not in session.to_dict()["info"]


@pytest.mark.parametrize(
    "block",
    [
        "prices = {'information': 3}\nprint(prices)",
        "{'information': [1]}\nprint(2)",
        "print({'todo_list': []})",
        "{'price': 3}",
        "{'question': 'q', 'a': 1, 'b': 2}",
        "{'todo_list': ['a']}['todo_list']",
    ],
)
def test_code_with_a_dict_is_not_a_plan(block: str) -> None:
    reply = Reply(f"So.\n```python\n{block}\n```\n{code('1')}")
    assert CodeLanguage().split_plan(reply) == ("", reply)


@pytest.mark.parametrize(
    "blocks",
    [
        "plan = {'todo_list': ['b'], 'information': ['a']}\n```\n```python\nprint(1)",
        "plan = {'todo_list': ['b'], 'information': ['a']}\nprint(len(plan) - 1)",
        "plan: dict = {\n  'todo_list': ['b'],  # next\n  'information': ['a']}\nprint(1)",
    ],
)
def test_a_plan_assigned_to_a_variable_updates_the_state_and_the_code_runs(blocks: str) -> None:
    a = agent(code(blocks), code("stop(1)"), templates=PHASES)
    session = a.run("t")
    assert (session.state["todo_list"], session.state["information"]) == (["b"], ["a"])
    assert session.steps[0]["action"]["observation"] == "1"


@pytest.mark.parametrize(
    "block",
    [
        "info = {'information': ['a']}",
        "data = {'todo_list': [1], 'information': ['a']}",
        "data = {'todo_list': x, 'information': ['a']}",
        "def f():\n    plan = {'todo_list': ['b'], 'information': ['a']}",
    ],
)
def test_other_dicts_in_variables_are_not_plans(block: str) -> None:
    reply = Reply(f"So.\n```python\n{block}\n```")
    assert CodeLanguage().split_plan(reply) == ("", reply)


@pytest.mark.parametrize("label", ["python", "json", ""])
def test_a_plan_may_have_any_label_and_keeps_the_facts_of_the_reply(label: str) -> None:
    plan = '{"completed_list": ["a"], "todo_list": []}'
    reply = Reply(f"So.\n```{label}\n{plan}\n```\n{code('1')}", finish_reason="length")
    found, rest = CodeLanguage().split_plan(reply)
    assert found == plan and rest == f"So.\n{code('1')}" and rest.finish_reason == "length"


def test_a_question_is_answered_before_any_code_runs() -> None:
    class Answering:
        def answer(self, question: str) -> str:
            return "Paris"

    asks = "```python\n{'question': 'Which town?'}\n```"
    replies = (f"{asks}\n{code('stop(0)')}", code("stop('Paris')"))
    a = agent(*replies, templates=PHASES, person=Answering())
    session = a.run("t")
    assert session.final_results["output"] == "Paris"
    assert "Answer: Paris" in session.steps[0]["action"]["observation"]
    assert "Answer: Paris" in session.state["information"][0]
