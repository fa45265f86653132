"""Tasks of many steps: what prompts show of omitted steps, and what the end phase can use."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import agent, code, prompts

from ck_pro import Budget, Journal, MultiStepAgent
from ck_pro.exceptions import ModelRefused
from ck_pro.journal import read_events
from ck_pro.run.history import StepTrace, trace_message
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import ScriptedLLM

pytestmark = pytest.mark.worker
WITH_END = {"action": "agent_action", "end": "agent_end"}


def long_task(steps: int = 40, last: str = "stop(1)", **settings: Any) -> MultiStepAgent:
    """Return an agent that stores one city per step in a variable; its history is condensed."""
    collect = "import re\ncities = [*globals().get('cities', []), 'city%d']\nprint('page %d ' * 60)"
    replies = [code(collect % (n, n), f"Read page {n}") for n in range(steps)]
    settings = {"history_chars": 9000, "max_steps": steps, "templates": WITH_END, **settings}
    return agent(*replies, code(last), **settings)


def test_omitted_steps_leave_a_trace_and_the_list_of_variables() -> None:
    a = long_task()
    a.run("t")
    shown = prompts(a)[39]
    assert "(Earlier steps omitted.)" in shown
    assert "Step 0: Read page 0\n  code: cities = [" in shown
    assert "  result: page 0 page 0" in shown
    assert "# Variables and functions of your code\n```\ncities: list of 39 str\n" in shown
    assert "Variables and functions" not in prompts(a)[2]


def test_prompts_of_a_long_task_share_their_prefix_between_rare_jumps() -> None:
    a = long_task()
    a.run("t")
    model = a.model
    assert isinstance(model, ScriptedLLM)
    sent = [call.messages for call in model.calls][:40]
    jumps = sum(b[: len(a) - 1] != a[:-1] for a, b in itertools.pairwise(sent))
    assert 1 <= jumps <= 6


def test_every_prompt_names_the_step_and_the_limit() -> None:
    a = agent(code("print(1)"), code("print(2)"), code("print(3)"), templates=WITH_END)
    a.run("t", max_steps=2)
    assert "Step 1 of 2." in prompts(a)[0] and "Step 2 of 2, the last one." in prompts(a)[1]
    assert "Step" not in prompts(a)[2].partition("# Task")[2].rpartition("```")[2]
    a = agent(code("print(1)"), code("print(2)"), code("print(3)"), max_steps=9)
    a.run("t", budget=Budget(max_steps=3))
    assert ["Step 1 of 3." in prompts(a)[0], "Step 2 of 3." in prompts(a)[1]] == [True, True]


def test_the_end_phase_sees_all_steps_and_no_step_left() -> None:
    a = long_task()
    a.run("t")
    assert all(f"Observation of step {n}:" in prompts(a)[40] for n in range(40))
    assert "omitted" not in prompts(a)[40] and "Step 40" not in prompts(a)[40]
    assert "no step is left" in prompts(a)[40]


def test_the_end_phase_keeps_the_models_window() -> None:
    a = long_task()
    a.model = a.model.updated({"max_prompt_tokens": 4000})
    a.run("t")
    assert "(Earlier steps omitted.)" in prompts(a)[40]
    long = ModelRefused("the prompt is too long")
    script = [code(f"print('n{n:03}' * 250)") for n in range(20)]
    a = agent(*script, long, code("stop(2)"), history_chars=9000, max_steps=20, templates=WITH_END)
    session = a.run("t")
    assert "omitted" not in prompts(a)[20] and "(Earlier steps omitted.)" in prompts(a)[21]
    assert session.final_results["output"] == "2"
    a = long_task(recent_steps=3)
    a.run("t")
    assert "Observation of step 36:" not in prompts(a)[40]


@pytest.mark.parametrize(
    "last",
    [
        "stop(output=', '.join(cities[:2]), log='l')",
        "stop(answer=', '.join(cities[:2]), summary='l')",
        "{'output': ', '.join(cities[:2]), 'log': 'l'}",
        "print({'output': ', '.join(cities[:2]), 'log': 'l'})",
        "{'output': 'city0, city1', 'log': 'l'}",
    ],
)
def test_the_end_phase_computes_from_the_variables(last: str, tmp_path: Path) -> None:
    a = long_task(3, last)
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    assert session.final_results == {"output": "city0, city1", "log": "l"}
    assert (session.status, session.stop_reason) == (Status.PROBLEM, StopReason.STEPS)
    assert session.finish is None  # a resumed run continues
    assert "error" not in session.steps[-1]["action"]
    rebuilt = next(iter(sessions_from_events(read_events(tmp_path)).values()))
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


def test_an_unusable_reply_of_the_end_phase_is_asked_for_once_more(tmp_path: Path) -> None:
    replies = [code("found = 7"), code("stop(missing)"), code("stop(found)")]
    a = agent(*replies, templates=WITH_END, max_steps=1)
    with Journal(tmp_path) as journal:
        session = a.run("t", journal=journal)
    assert session.final_results["output"] == "7"
    assert "stop(missing)" in prompts(a)[2] and "name 'missing' is not defined" in prompts(a)[2]
    end = session.to_dict()["steps"][-1]["end"]
    assert [call["llm_output"] for call in end["model_calls"]] == [code("stop(missing)")]
    assert end["llm_output"] == code("stop(found)") and "unreadable" not in end
    rebuilt = next(iter(sessions_from_events(read_events(tmp_path)).values()))
    assert json.dumps(rebuilt.to_dict()) == json.dumps(session.to_dict())


def test_the_end_phase_gives_up_after_two_unusable_replies() -> None:
    a = agent(code("x = 1"), "No.", "No.", code("stop(1)"), templates=WITH_END, max_steps=1)
    session = a.run("t")
    assert session.final_results["output"] == "" and len(prompts(a)) == 3


def test_the_code_of_the_end_phase_calls_no_other_function() -> None:
    called: list[int] = []

    def send() -> str:
        called.append(1)
        return "sent"

    a = agent(
        code("print(send())"),
        code("stop(send())"),
        code("stop('x')"),
        templates=WITH_END,
        max_steps=1,
        tools=[send, *agent().tools],
    )
    session = a.run("t")
    assert called == [1] and session.final_results["output"] == "x"
    assert "send is not available: the run has ended" in prompts(a)[2]


def test_traces_are_bounded_and_end_with_the_error() -> None:
    failed: Any = {
        "step_idx": 0,
        "action": {"thought": "t" * 900, "code": "# why\nimport os\n\nrun()", "error": "KeyError"},
    }
    trace = StepTrace.of(failed, "Traceback:\n  line\nKeyError: 'a'")
    assert (trace.code, trace.result) == ("run()", "KeyError: 'a'")
    traces = [StepTrace(n, "t" * 120, "c" * 120, "r" * 120) for n in range(500)]
    assert len(trace_message(traces[:10], 15_000)) < 4500
    assert trace_message(traces[:3], 15_000).count("  code: ") == 1  # equal code is shown once
    text = trace_message(traces, 15_000)
    assert len(text) < 30_000 and "Steps 0 to 249: omitted." in text and "Step 499:" in text
