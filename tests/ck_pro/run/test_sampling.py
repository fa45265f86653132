"""Several tries of a sub-agent per call: selection, records, limits and resume."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_agents import code

from ck_pro import AgentSession, Budget, Journal, MultiStepAgent, StopTool
from ck_pro.exceptions import ConfigError, ParseError
from ck_pro.journal import EVENTS_FILE, read_events
from ck_pro.model import CallContext
from ck_pro.run.sampling import CHOOSE, parse_choice
from ck_pro.session import Status, StopReason, sessions_from_events
from ck_pro.testing import ScriptedLLM
from ck_pro.trajectory.reading.attempts import nested_sessions


def team(answers: list[str], judge: str = "", **sampling: Any) -> MultiStepAgent:
    """Return an agent that calls its helper once; "" makes a try end without an answer."""
    left = [code(f"stop({a!r})" if a else "print(1)") for a in answers]

    def reply(messages: Any, context: CallContext) -> str:
        if context.phase == CHOOSE:
            return judge
        if context.agent_path[-1] == "helper":
            return left.pop(0)
        return [code("print(helper('What?'))"), code("stop('done')")][context.step]

    model = ScriptedLLM(reply)
    helper = MultiStepAgent(
        name="helper", model=model, tools=[StopTool()], max_steps=1, sampling=sampling
    )
    return MultiStepAgent(name="main", model=model, sub_agents=[helper], tools=[StopTool()])


def observed(session: AgentSession) -> dict[str, Any]:
    (action, _) = [step["action"] for step in session.to_dict()["steps"]]
    seen: dict[str, Any] = action["observation"]
    assert [s["id"] for s in action["sub_sessions"]] == [
        c["session"]["id"] for c in seen["sel_cands"]
    ]
    return seen


@pytest.mark.worker
@pytest.mark.parametrize(
    ("choose", "answers", "judge", "aggr", "index", "made"),
    [
        ("first", ["", "a", "b"], "", "first", 1, 2),
        ("first", ["", "", ""], "", "first", 2, 3),
        ("vote", ["x", "b", "B "], "", "vote", 1, 3),
        ("vote", ["x", "y", ""], "", "vote", 0, 3),
        ("judge", ["x", "y", "z"], "Well. Choice: 2", "judge", 1, 3),
        ("judge", ["x", "y", "y"], "No idea.", "vote", 1, 3),
        ("judge", ["x", "x", "x"], "", "judge", 0, 3),
    ],
)
def test_the_way_of_choosing_selects_the_try(
    choose: str, answers: list[str], judge: str, aggr: str, index: int, made: int
) -> None:
    session = team(answers, judge, tries=3, choose=choose).run("Do it.")
    assert session.status is Status.DONE, session.message
    seen = observed(session)
    assert (seen["sel_aggr"], seen["sel_idx"], len(seen["sel_cands"])) == (aggr, index, made)
    assert [c["output"] for c in seen["sel_cands"]] == answers[:made]
    assert set(seen) == {"output", "log", "task", "repr", "sel_aggr", "sel_cands", "sel_idx"}
    assert (seen["output"], seen["task"]) == (answers[index], "What?")
    tries = [c["session"]["info"]["try"]["number"] for c in seen["sel_cands"]]
    assert tries == [*range(1, made + 1)]
    stat = session.call_stat()
    assert stat["helper"]["__ALL__"]["llm_call"] == made
    assert stat["__ALL__"]["llm_call"] == 2 + made + bool(judge)
    if judge:
        assert stat["choose"]["__ALL__"]["llm_call"] == 1
    # exports find each try once, however often the row shows it
    action = session.to_dict()["steps"][0]["action"]
    assert len({s["id"] for s in nested_sessions(action)}) == made


@pytest.mark.worker
def test_an_interrupted_run_repeats_no_completed_try(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    answers, judge = ["x", "y", "z"], "Choice: 3"
    with Journal(whole) as journal:
        expected = team(answers, judge, tries=3, choose="judge").run("Do it.", journal=journal)
    lines = (whole / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"kind":"session"' in line) + 1
    for kept in range(first, len(lines)):
        folder = tmp_path / str(kept)
        shutil.copytree(whole, folder)
        (folder / EVENTS_FILE).write_bytes(b"".join(lines[:kept]))
        known = [e["phase"] for e in read_events(folder) if e["kind"] == "model_call"]
        helped = max(0, min(3, len(known) - 1))
        agent = team(answers[helped:], judge, tries=3, choose="judge")
        with Journal(folder) as journal:
            session = agent.resume(journal=journal)
        assert session.status is Status.DONE, (kept, session.message)
        calls = [e["phase"] for e in read_events(folder) if e["kind"] == "model_call"]
        assert calls.count("action") == 5, (kept, calls)  # no reply was requested twice
        seen, wanted = observed(session), observed(expected)
        assert [c["output"] for c in seen["sel_cands"]] == answers, kept
        assert (seen["sel_idx"], seen["output"]) == (wanted["sel_idx"], "z")
        again = sessions_from_events(read_events(folder))[session.id]
        assert json.dumps(again.to_dict()) == json.dumps(session.to_dict())


@pytest.mark.worker
def test_limits_hold_over_all_tries() -> None:
    agent = team(["", "", "", ""], tries=4)
    session = agent.run("Do it.", budget=Budget(max_steps=3))
    assert session.stop_reason is StopReason.STEPS
    assert session.call_stat()["helper"]["__ALL__"]["llm_call"] == len(session.children) == 2


@pytest.mark.worker
def test_no_try_starts_after_the_calling_code_has_ended() -> None:
    agent = team(["", "a"], tries=2)
    agent.executor.call_timeout = None
    helper = agent.sub_agents[0]
    made: list[int] = []
    run = helper.run

    def slow(task: str, **kwargs: Any) -> Any:
        made.append(1)
        kwargs["parent"].end_children()  # as when the code is killed
        return run(task, **kwargs)

    helper.run = slow
    session = agent.run("Do it.")
    assert len(made) == 1 and session.status is Status.IN_PROGRESS


def test_a_call_from_python_runs_the_agent_once() -> None:
    helper = team(["a", "b"], tries=2, choose="vote").sub_agents[0].updated({"tools": [StopTool()]})
    assert helper.sampling.tries == 2
    with pytest.raises(ConfigError, match="tries"):
        helper.updated({"sampling": {"tries": 0}})
    with pytest.raises(ConfigError, match="choose"):
        helper.updated({"sampling": {"choose": "best"}})


@given(st.text())
def test_any_text_is_a_choice_or_a_parse_error(text: str) -> None:
    try:
        index, _ = parse_choice(text, 3)
    except ParseError:
        return
    assert index in (0, 1, 2)
