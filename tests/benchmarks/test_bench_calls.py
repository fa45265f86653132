"""`benchmarks/calls.py`: calls and tokens by agent and phase, from rows."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from calls import calls_of, main, read_run, summary


def phase(prompt: int, cached: int = 0, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "cached_tokens": cached, "completion_tokens": 10}
    return {"llm_info": {"model": "m", "usage": usage}, **more}


SUB = {"info": {"agent": "web_agent"}, "steps": [{"action": phase(300, 150), "end": phase(50)}]}
SESSION = {
    "info": {"agent": "ck_agent", "duration": 2.5},
    "steps": [
        {"plan": {"state": {}}, "action": phase(100, sub_sessions=[SUB])},
        {"plan": phase(100), "action": phase(100, model_calls=[phase(7, phase="tool:ask_llm")])},
    ],
}
ROW = {"id": "a", "session": SESSION, "eval": {"corr": 1}}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, "id": "b", "eval": {}}) + "\n")
    return path


def test_calls_of_sub_agents_and_tools_are_counted_by_agent_and_phase() -> None:
    found = [(agent, phase) for agent, phase, _ in calls_of(SESSION, "ck_agent")]
    assert sorted(found) == [
        ("ck_agent", "action"),
        ("ck_agent", "action"),
        ("ck_agent", "plan"),
        ("ck_agent", "tool:ask_llm"),
        ("web_agent", "action"),
        ("web_agent", "end"),
    ]


def test_the_summary_adds_up_tokens_and_the_cached_share(rows: Path) -> None:
    lines = summary(read_run(rows))
    assert lines["web_agent: action"] == ["2", "600", "20", "50%"]
    assert lines["all calls"] == ["12", "1,314", "120", "23%"]
    assert lines["right, of scored"][0] == "1/1" and lines["seconds per task"][0] == "2.5"


def test_two_runs_stand_side_by_side(
    rows: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["calls.py", str(rows), str(rows), "--tasks"])
    assert main() == 0
    shown = capsys.readouterr().out.splitlines()
    (line,) = [text for text in shown if text.startswith("all calls")]
    assert line.split().count("1,314") == 2
    assert any(text.startswith("b ") for text in shown)


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "a"}', '{"id": "a", "session": {"info": 1}}'])
def test_a_file_without_rows_gives_one_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(SystemExit, match=r"bad\.jsonl:1: not a row"):
        read_run(path)
