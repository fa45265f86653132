"""Exports of agents that write code, with real worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_runs import read_lines

from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.model import Reply
from ck_pro.testing import ScriptedLLM
from ck_pro.trajectory.export import main

pytestmark = pytest.mark.worker


def code(text: str) -> str:
    return f"Thought: so\n```python\n{text}\n```"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with plan, action and end phases; a sub-agent runs once and is printed twice."""
    folder = tmp_path_factory.mktemp("code") / "my_task"
    sub = MultiStepAgent(
        name="helper",
        description="Helps.",
        model=ScriptedLLM(replies=[code("print('thinking')"), code("stop('deep')")]),
        tools=[StopTool()],
    )
    plan = "```python\n{'todo_list': ['ask']}\n```"
    end = "```python\n{'output': 'deep', 'log': ''}\n```"
    replies = [
        plan, code("r = helper('a')\nprint(r)"),
        plan, code("print(r)"),
        plan, "I have nothing to run.",
        plan, code("stop(r['output'])"),
        end,
    ]  # fmt: skip
    agent = MultiStepAgent(
        name="ck_agent",
        model=ScriptedLLM(replies=replies),
        tools=[StopTool()],
        sub_agents=[sub],
        templates={"plan": "agent_plan", "action": "agent_action", "end": "agent_end"},
        planning="separate",
    )
    with Journal(folder) as kept:
        session = agent.run("Ask the helper.", journal=kept)
    assert session.final_results == {"output": "deep", "log": ""}
    return folder


def test_every_phase_of_every_agent_is_exported_once(journal: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    everything = ["--duplicates", "keep", "--unreadable", "keep"]
    assert main(["-f", "sft", "-i", str(journal), "-o", str(out), *everything]) == 0
    rows = read_lines(out)
    where = [tuple(r["metadata"][k] for k in ("agent", "phase", "step")) for r in rows]
    assert where == [
        ("ck_agent", "plan", 0), ("ck_agent", "action", 0),
        ("helper", "action", 0), ("helper", "action", 1),
        ("ck_agent", "plan", 1), ("ck_agent", "action", 1),
        ("ck_agent", "plan", 2), ("ck_agent", "action", 2),
        ("ck_agent", "plan", 3), ("ck_agent", "action", 3), ("ck_agent", "end", 3),
    ]  # fmt: skip
    assert {r["metadata"]["task_id"] for r in rows} == {"my_task"}
    assert rows[1]["completion"][0]["content"] == code("r = helper('a')\nprint(r)")
    args = ["-f", "sft", "-i", str(journal), "-o", str(out), "--force", "--errors", "drop"]
    assert main([*args, "--phase", "action", "--agent", "ck_agent"]) == 0
    assert [r["metadata"]["step"] for r in read_lines(out)] == [0, 1, 3]


def test_atif_has_code_and_sub_agents_once(journal: Path, tmp_path: Path) -> None:
    from atif import Trajectory

    out = tmp_path / "o.jsonl"
    assert main(["-f", "atif", "-i", str(journal), "-o", str(out)]) == 0
    made = Trajectory.model_validate_json(out.read_text())
    asked = made.steps[3]
    assert asked.tool_calls[0].function_name == "python"
    assert asked.tool_calls[0].arguments == {"code": "r = helper('a')\nprint(r)"}
    result = asked.observation.results[0]
    assert result.source_call_id == asked.tool_calls[0].tool_call_id
    assert "deep" in result.content
    (sub,) = made.subagent_trajectories
    assert result.subagent_trajectory_ref[0].trajectory_id == sub.trajectory_id
    failed = made.steps[7]
    assert failed.tool_calls is None and "ParseError" in failed.observation.results[0].content
    assert made.steps[-1].extra["phase"] == "end"


def test_ckpro_drops_incomplete_steps(tmp_path: Path) -> None:
    agent = MultiStepAgent(name="ck_agent", model=ScriptedLLM(replies=[code("print(1)")]))
    with Journal(tmp_path / "t") as kept:
        assert len(agent.run("t", journal=kept).steps) == 2  # the model fails in the second step
    out = tmp_path / "o.jsonl"
    assert main(["-f", "ckpro", "-i", str(tmp_path / "t"), "-o", str(out)]) == 0
    (row,) = read_lines(out)
    (step,) = row["session"]["steps"]
    assert step["action"]["observation"] == "1" and "end" not in step
    assert row["session"]["info"]["final_results"]["output"] == ""


def _ckpro(journal: Path, out: Path, *more: str) -> dict[str, Any]:
    assert main(["-f", "ckpro", "-i", str(journal), "-o", str(out), "--force", *more]) == 0
    (row,) = read_lines(out)
    return dict(row)


def _replies(row: dict[str, Any]) -> list[tuple[str, str]]:
    phases = ("plan", "action", "end")
    return [
        (p, s[p]["llm_output"]) for s in row["session"]["steps"] for p in phases if p in s
    ]  # fmt: skip


def test_a_reply_of_tool_calls_is_text_in_ckpro_rows(tmp_path: Path) -> None:
    function = {"name": "stop", "arguments": '{"output": "4"}'}
    call = {"id": "c0", "type": "function", "function": function}
    for said in ("", "I know it."):
        reply = Reply(said, tool_calls=[call])
        agent = MultiStepAgent(
            name="ck_agent",
            model=ScriptedLLM(replies=[reply]),
            tools=[StopTool()],
            language="function_calls",
        )
        folder = tmp_path / (said or "silent")
        with Journal(folder) as kept:
            assert agent.run("t", journal=kept).status == "done"
        row = _ckpro(folder, tmp_path / "o.jsonl")
        text = '<tool_call>\n{"name": "stop", "arguments": {"output": "4"}}\n</tool_call>'
        assert _replies(row) == [("action", f"{said}\n{text}".strip())]
        again = _ckpro(tmp_path / "o.jsonl", tmp_path / "again.jsonl")
        assert again == row


def test_ckpro_rows_have_no_reply_that_the_agent_could_not_read(tmp_path: Path) -> None:
    plan = "```python\n{'todo_list': ['count']}\n```"
    replies = ["No plan.", code("print(1)"), plan, "I do not know.", plan, " \n", plan]
    agent = MultiStepAgent(
        name="ck_agent",
        model=ScriptedLLM(replies=[*replies, code("stop('4')")]),
        tools=[StopTool()],
        templates={"plan": "agent_plan", "action": "agent_action"},
        planning="separate",
    )
    with Journal(tmp_path / "t") as kept:
        assert agent.run("t", journal=kept).status == "done"
    row = _ckpro(tmp_path / "t", tmp_path / "o.jsonl")
    last = [("plan", plan), ("action", code("stop('4')"))]
    assert _replies(row) == [("action", code("print(1)")), *last]
    assert [s["step_idx"] for s in row["session"]["steps"]] == [0, 1]
    row = _ckpro(tmp_path / "t", tmp_path / "o.jsonl", "--unreadable", "keep")
    assert [text for _, text in _replies(row)] == [*replies[:4], *(text for _, text in last)]


def test_a_run_without_readable_replies_keeps_its_scored_ckpro_row(tmp_path: Path) -> None:
    agent = MultiStepAgent(name="ck_agent", model=ScriptedLLM(replies=["Hm."] * 2), max_steps=2)
    with Journal(tmp_path / "t") as kept:
        assert agent.run("t", journal=kept).status == "problem"
    row = _ckpro(tmp_path / "t", tmp_path / "o.jsonl")
    assert row["session"]["steps"] == [] and row["eval"]["corr"] == 0
