"""Replies, plans and results that are malformed, truncated or repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code, helper, prompts

from ck_pro import AskLLMTool, Journal, StopTool
from ck_pro.exceptions import (
    ContentFiltered,
)
from ck_pro.journal import read_events
from ck_pro.language import FunctionCallingLanguage
from ck_pro.model import Reply
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import ScriptedLLM

pytestmark = pytest.mark.worker


def test_malformed_replies_failing_code_and_refusals_become_observations() -> None:
    a = agent(
        "I would rather talk.",
        code("undefined_name"),
        ContentFiltered("the filter said no"),
        code("stop('ok')"),
    )
    session = a.run("t")
    seen = [s["action"]["observation"] for s in session.steps]
    assert seen[0].startswith("ParseError: The reply contains no code")
    assert "NameError: name 'undefined_name' is not defined" in seen[1]
    assert seen[2] == "ContentFiltered: the filter said no"
    assert session.status is Status.DONE
    assert "The last 3 steps failed" in prompts(a)[3]


def test_repeated_steps_lead_to_a_notice_and_then_end_the_run() -> None:
    a = agent(lambda messages, context: code("print('again')"), stuck_limit=4, max_steps=20)
    session = a.run("t")
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.STUCK)
    assert len(session.steps) == 4
    assert "repeated the same step 2 times" in prompts(a)[2]
    assert "repeated the same" not in prompts(a)[1]


def test_cycles_count_as_repeats_and_equal_code_leads_to_a_notice() -> None:
    a = agent(
        lambda messages, context: code(f"print('{'ab'[context.step % 2]}')"),
        stuck_limit=3,
        max_steps=20,
    )
    session = a.run("t")
    assert (session.stop_reason, len(session.steps)) == (StopReason.STUCK, 6)
    a = agent(lambda messages, context: code("import time\nprint(time.time_ns())"), max_steps=6)
    assert a.run("t").stop_reason is StopReason.STEPS
    assert "ran the same code" in prompts(a)[4] and "ran the same code" not in prompts(a)[3]


def test_calls_with_different_arguments_do_not_count_as_repeats() -> None:
    def click(id: int) -> str:
        return "ok"

    def reply(messages: Any, context: Any) -> Reply:
        arguments = json.dumps({"id": context.step})
        return Reply("", tool_calls=[{"function": {"name": "click", "arguments": arguments}}])

    language = FunctionCallingLanguage()
    a = agent(reply, tools=[click], language=language, stuck_limit=3, max_steps=5)
    session = a.run("t")
    assert session.stop_reason is StopReason.STEPS
    assert session.steps[1]["action"]["code"] == "click(id=1)"
    (past,) = [m for m in a.model.calls[1].messages if m["role"] == "assistant"]
    assert past["tool_calls"][0]["function"] == {"name": "click", "arguments": '{"id": 0}'}
    assert "Python" not in prompts(a)[1]


def test_only_valid_plans_update_the_progress_state() -> None:
    a = agent(
        "```python\n{'todo_list': ['look'], 'information': 'none yet'}\n```",
        code("print(1)"),
        "no plan today",
        code("stop(2)"),
        templates={"plan": "agent_plan"},
        planning="separate",
    )
    session = a.run("t")
    assert session.steps[0]["plan"]["state"]["information"] == ["none yet"]
    assert session.steps[1]["plan"]["state"]["todo_list"] == ["look"]
    assert "'look'" in prompts(a)[1] or '"look"' in prompts(a)[1]


def test_the_end_phase_writes_the_result() -> None:
    reply = "```python\n{'output': 'formatted', 'log': 'l'}\n```"
    a = agent(code("stop('raw')"), reply, templates={"end": "agent_end"})
    session = a.run("t")
    assert session.final_results == {"output": "formatted", "log": "l"}
    assert session.to_dict()["steps"][-1]["end"]["llm_output"] == reply
    a = agent(code("stop('raw')"), '{"output": "x", "log": null}', templates={"end": "agent_end"})
    assert a.run("t").final_results == {"output": "x", "log": ""}


def test_a_refused_or_empty_end_phase_keeps_the_answer() -> None:
    for fault in (ContentFiltered("no"), "```python\n{'output': None}\n```", "no dict"):
        a = agent(code("stop('raw')"), fault, templates={"end": "agent_end"})
        session = a.run("t")
        assert (session.status, session.final_results["output"]) == (Status.DONE, "raw")


def test_the_end_phase_runs_after_a_limit() -> None:
    def reply(messages: Any, context: Any) -> str:
        found = "```python\n{'output': 'partial', 'log': 'l'}\n```"
        return found if context.phase == "end" else code("print('again')")

    a = agent(reply, templates={"end": "agent_end"}, stuck_limit=2)
    session = a.run("t")
    assert session.stop_reason is StopReason.STUCK
    assert session.final_results["output"] == "partial"


def test_plans_must_be_json_data() -> None:
    for bad in ("{'information': [b'raw']}", "{'n': 1e999}", "{'s': [{1, 2}]}"):
        a = agent(
            f"```python\n{bad}\n```",
            code("stop(1)"),
            templates={"plan": "agent_plan"},
            planning="separate",
        )
        session = a.run("t", info={"path": Path("x")})
        assert session.steps[0]["plan"]["state"] == {}
        json.dumps(session.to_dict(), allow_nan=False)


def test_an_invented_observation_is_dropped_and_reported() -> None:
    reply = f"{code('x = 20 + 1')}\nObservation: {{'output': 99}}\n{code('stop(99)')}"
    a = agent(reply, code("stop(x)"))
    session = a.run("t")
    assert session.final_results["output"] == "21"
    seen = session.steps[0]["action"]["observation"]
    assert seen.startswith("Only the code before 'Observation: {'output': 99}' ran")
    assert seen in prompts(a)[1]
    assert "invented" in session.steps[0]["action"]["unreadable"]
    assert session.to_dict()["info"]["unreadable"] == {"action": 1}


def test_a_truncated_reply_is_reported_and_its_partial_code_does_not_run() -> None:
    half = Reply(f"{code('x = 1')}\nThen:\n```python\nx = 2\nx = x +", finish_reason="length")
    a = agent(half, code("print('x' in globals())"), code("stop(1)"))
    session = a.run("t")
    assert "truncated; no code ran" in session.steps[0]["action"]["observation"]
    assert session.steps[1]["action"]["observation"] == "False"
    assert "truncated; no code ran" in prompts(a)[1]


def test_requests_stop_the_reply_at_an_observation() -> None:
    a = agent(code("print(ask('q'))"), "an answer", code("stop(1)"), tools=[StopTool(), Asking()])
    a.run("t")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    stops = [c.context.stop for c in model.calls]
    assert stops == [("\nObservation of step",), (), ("\nObservation of step",)]
    assert stops[0][0].strip() in prompts(a)[2]


class Asking(AskLLMTool):
    """`ask_llm` by another name."""

    name = "ask"


def test_an_unreadable_plan_is_reported_only_in_the_next_plan_prompt() -> None:
    phases = {"plan": "agent_plan", "action": "agent_action"}
    good = "```python\n{'todo_list': ['a']}\n```"
    replies = ["no plan", code("1"), good, code("2"), good, code("stop(3)")]
    a = agent(*replies, templates=phases, planning="separate")
    session = a.run("t")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    reported = ["Your last plan was unreadable" in text for text in prompts(a)]
    assert reported == [False, False, True, False, False, False]
    assert [c.context.phase for c in model.calls] == ["plan", "action"] * 3
    assert "contains no dict" in session.steps[0]["plan"]["unreadable"]
    assert session.to_dict()["info"]["unreadable"] == {"plan": 1}


def test_unreadable_replies_of_sub_agents_count_too(tmp_path: Path) -> None:
    sub = helper("I talk", code("stop('x')"), "no end", templates=END, max_steps=3)
    a = agent(code("print(helper('a'))"), code("stop(1)"), sub_agents=[sub])
    with Journal(tmp_path / "journal") as journal:
        session = a.run("t", journal=journal)
    assert session.to_dict()["info"]["unreadable"] == {"action": 1, "end": 1}
    rebuilt = next(iter(sessions_from_events(read_events(tmp_path / "journal")).values()))
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


END = {"action": "agent_action", "end": "agent_end"}


@pytest.mark.parametrize("reply", ["print({'x': 1})", "```python\n{}\n```", '{"price": 3}'])
def test_a_dict_without_plan_keys_does_not_replace_the_plan(reply: str) -> None:
    phases = {"plan": "agent_plan", "action": "agent_action"}
    good = "```python\n{'todo_list': ['a']}\n```"
    replies = [good, code("1"), reply, code("stop(3)")]
    session = agent(*replies, templates=phases, planning="separate").run("t")
    assert session.state["todo_list"] == ["a"]
    assert "the dict has none of the keys" in session.steps[1]["plan"]["unreadable"]


def test_replies_that_are_always_truncated_end_the_run_and_are_counted() -> None:
    half = [Reply("Thought: " + "so " * n, finish_reason="length") for n in range(1, 9)]
    session = agent(*half, stuck_limit=4).run("t")
    assert session.stop_reason is StopReason.STUCK
    assert session.to_dict()["info"]["unreadable"] == {"action": 4}
