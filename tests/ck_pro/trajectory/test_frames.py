"""Rows, steps and calls as frames, and what a notebook shows of them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from analysis_rows import row, session, step, write_rows
from paths import ROOT
from sample_runs import make_agent, run_tasks

from ck_pro import markup
from ck_pro.exceptions import ConfigError, InputError
from ck_pro.session import AgentSession
from ck_pro.trajectory import load
from ck_pro.trajectory.frames import CALL_COLUMNS, ROW_COLUMNS, STEP_COLUMNS

pytestmark = pytest.mark.integration
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[31m\u202e\ud800"


def nested_row() -> dict[str, Any]:
    deep = session([step("d", tokens=5)], agent="file_agent")
    sub = session([step("a", tokens=20, sub_sessions=[deep]), step("b")], agent="web_agent")
    main = session([step("x", sub_sessions=[sub, sub]), step("y", error="KeyError")], output="z")
    return row("t1", 0, made=main)


def test_rows_steps_and_calls_are_frames_with_documented_columns(tmp_path: Path) -> None:
    runs = load(write_rows(tmp_path / "a.jsonl", [nested_row(), row("t2", 1)]))
    assert list(runs.rows.columns) == list(ROW_COLUMNS)
    assert list(runs.steps.columns) == list(STEP_COLUMNS)
    assert list(runs.calls.columns) == list(CALL_COLUMNS)
    first = runs.rows.iloc[0]
    assert (first.task, first.score, first.status, first.answer) == ("t1", 0, "done", "z")
    assert (first.steps, first.calls, first.tokens) == (5, 5, 325 + 50)
    assert first.money == pytest.approx(0.005)
    docs = (ROOT / "docs/analysis.md").read_text()
    for name in {*ROW_COLUMNS, *STEP_COLUMNS, *CALL_COLUMNS}:
        assert f"`{name}`" in docs, name


def test_sessions_of_sub_agents_have_their_depth_and_parent(tmp_path: Path) -> None:
    steps = load(write_rows(tmp_path / "a.jsonl", [nested_row()])).steps
    assert [*zip(steps.path, steps.step, steps.depth, strict=True)] == [
        ("ck_agent", 0, 0),
        ("ck_agent/web_agent", 0, 1),
        ("ck_agent/web_agent/file_agent", 0, 2),
        ("ck_agent/web_agent", 1, 1),
        ("ck_agent", 1, 0),
    ]
    assert steps.parent[0] == ""
    assert steps.parent[2] == steps.session[1] and steps.parent[1] == steps.session[0]
    assert list(steps.sub_sessions) == [1, 1, 0, 0, 0]
    assert list(steps.error) == ["", "", "", "", "KeyError"]


def test_the_prompt_of_a_call_can_be_read(tmp_path: Path) -> None:
    runs = load(write_rows(tmp_path / "a.jsonl", [row("t2"), nested_row()]))
    call = runs.calls[runs.calls.depth == 2].iloc[0]
    assert runs.messages(call) == [{"role": "user", "content": "a prompt"}]
    with pytest.raises(KeyError):
        runs.messages({**call, "call": 7})


def test_journals_and_rows_give_the_same_frames(tmp_path: Path) -> None:
    rows = run_tasks(make_agent(images=False), tmp_path / "a.jsonl", ["capital", "sum"])
    of_rows, of_journals = load(rows), load(tmp_path / "a")
    for name in ("rows", "steps", "calls"):
        columns = [c for c in getattr(of_rows, name).columns if c != "where"]
        a, b = (getattr(r, name)[columns].sort_values(["task"]) for r in (of_rows, of_journals))
        assert a.reset_index(drop=True).equals(b.reset_index(drop=True)), name
    one = load([tmp_path / "a" / "capital"])
    assert len(one) == 1 and one[0].task_id == "capital"
    assert [s.agent for s in one.sessions] == [one.rows.agent[0]]


def test_runs_are_found_by_index_and_by_id(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "a.jsonl", [row("a", 1), row("b", 0), row("b", 1)])
    runs = load(str(source))
    assert len(runs) == 3
    assert [run.task_id for run in runs] == ["a", "b", "b"]
    assert (runs[1].score, runs[-1].score, runs["b"].score) == (0, 1, 1)
    assert runs["a"].steps[0]["action"]["observation"] == "ok"
    with pytest.raises(KeyError):
        runs["c"]
    with pytest.raises(IndexError):
        runs[3]


def test_unreadable_lines_are_counted_and_empty_files_give_empty_frames(tmp_path: Path) -> None:
    runs = load(write_rows(tmp_path / "a.jsonl", [{"id": 1}, row("a", 1)]))
    assert len(runs.rows) == 1 and len(runs.problems) == 1
    assert "1 lines or journals cannot be read" in runs._repr_html_()
    empty = load(write_rows(tmp_path / "b.jsonl", []))
    assert len(empty) == 0 and list(empty.steps.columns) == list(STEP_COLUMNS)
    assert "0 runs" in empty._repr_html_()
    with pytest.raises(InputError, match="No such file"):
        load(tmp_path / "missing")


def test_missing_pandas_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = load(write_rows(tmp_path / "a.jsonl", [row("a")]))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match=r'pip install "ck-pro\[notebook\]"'):
        _ = runs.rows
    assert len(list(runs)) == 1  # sessions need no pandas


def tags_in(html: str) -> set[str]:
    return set(re.findall(r"<\s*/?\s*([a-zA-Z!?]+)", html))


def test_everything_that_a_notebook_shows_is_inert(tmp_path: Path) -> None:
    sub = session([step(EVIL)], agent=EVIL, output=EVIL)
    action: dict[str, Any] = {"error": EVIL, "unreadable": EVIL, "thought": EVIL}
    evil = step([EVIL, {"repr": EVIL, "session": sub}], code=EVIL, sub_sessions=[sub], **action)
    main = session([evil], output=EVIL, status="problem", stop_reason="steps", message=EVIL)
    runs = load(write_rows(tmp_path / "a.jsonl", [row(EVIL, 0, gold=EVIL, made=main)]))
    shown = [runs, runs[0], runs[0].session, runs[0].steps[0]]
    for html in (thing._repr_html_() for thing in shown):
        assert tags_in(html) <= {
            *("div", "b", "span", "pre", "details", "summary"),
            *("table", "thead", "tbody", "tr", "th", "td"),
        }
        assert "\x1b" not in html and "\u202e" not in html
        html.encode()
        assert "&lt;script&gt;" in html


def test_the_example_notebook_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = run_tasks(make_agent(images=False), tmp_path / "a.jsonl", ["capital", "sum"])
    monkeypatch.setenv("CK_RUNS", str(rows))
    notebook = json.loads((ROOT / "examples/analysis.ipynb").read_text())
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in cells:
        exec(compile(cell, "analysis.ipynb", "exec"), names)
    assert len(names["runs"].rows) == 2
    assert names["output"].stat().st_size > 0
    assert names["summary"].overall.tasks == 2
    assert "system |" in capsys.readouterr().out


def test_long_texts_are_folded_and_long_sessions_shortened() -> None:
    long = AgentSession("task")
    for n in range(400):
        long.add_step({"action": {"thought": f"thought {n}", "observation": "x" * 1000}})
    html = long._repr_html_()
    assert "300 steps are omitted" in html
    assert html.count("<details") == 200
    assert len(html) < 500_000
    assert "(1,000,000 characters)" in markup.block("y" * 1_000_000)
    assert len(markup.block("y" * 1_000_000)) < 25_000
    assert AgentSession("")._repr_html_()
