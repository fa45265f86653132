"""Exports of runs with several tries per task."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from loaders import LIGHT_AND_LONG, ending, export, loaded
from sample_runs import make_tried_agent, read_lines, run_tasks

from ck_main.runner.choosing import TryOptions
from ck_main.runner.run_options import RunOptions
from ck_pro.journal import journal_folders
from ck_pro.trajectory import diff

pytestmark = pytest.mark.integration
MAIN = ["--agent", "ck_agent"]


@pytest.fixture(scope="module")
def until_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks whose third try is right; their rows contain the two failed tries."""
    output = tmp_path_factory.mktemp("until") / "rows.jsonl"
    options = RunOptions(tries=TryOptions(tries=4, until="em"))
    return run_tasks(make_tried_agent(right=3), output, ["sum", "capital"], options)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tasks with all tries, each in its own row."""
    output = tmp_path_factory.mktemp("chosen") / "rows.jsonl"
    options = RunOptions(tries=TryOptions(tries=3, choose="vote"))
    return run_tasks(make_tried_agent(right=3), output, ["sum", "capital"], options)


def _seen(path: Path) -> list[str]:
    """Sorted training rows without ids and image paths, which differ."""
    rows = read_lines(path)
    for row in rows:
        row.get("metadata", {}).pop("session", None)
        row.get("metadata", {}).pop("task_id", None)
        row.pop("images", None)
    return sorted(json.dumps(r, sort_keys=True) for r in rows)


def test_rows_and_journals_give_the_same(until_right: Path, tmp_path: Path) -> None:
    run = until_right.with_suffix("")
    assert len(journal_folders(run)) == 6
    a = export("sft", tmp_path / "a.jsonl", "-i", until_right, "--duplicates", "keep")
    b = export("sft", tmp_path / "b.jsonl", "-i", run, "--duplicates", "keep")
    assert _seen(a) == _seen(b)
    tries = Counter((r["metadata"]["try"], r["metadata"]["reward"]) for r in read_lines(a))
    assert set(tries) == {(0, 0.0), (1, 0.0), (2, 1.0)}


def test_all_tries_of_a_choice_are_exported(chosen: Path, tmp_path: Path) -> None:
    others = chosen.with_name("rows.tries.jsonl")
    a = export("sft", tmp_path / "a.jsonl", "-i", chosen, others, "--duplicates", "keep")
    b = export("sft", tmp_path / "b.jsonl", "-i", chosen.with_suffix(""), "--duplicates", "keep")
    assert _seen(a) == _seen(b)
    best = export("sft", tmp_path / "c.jsonl", "-i", chosen, others, "--best", 1, *MAIN)
    kept = read_lines(best)
    assert {r["metadata"]["try"] for r in kept} == {2}
    assert {r["metadata"]["reward"] for r in kept} == {1.0}


@pytest.mark.parametrize("form", ["rows", "journals"])
def test_preferences_come_from_several_tries(until_right: Path, tmp_path: Path, form: str) -> None:
    source = until_right if form == "rows" else until_right.with_suffix("")
    pairs = read_lines(export("dpo", tmp_path / "d.jsonl", "-i", source, *MAIN))
    said = {(p["chosen"][0]["content"], p["rejected"][0]["content"]) for p in pairs}
    assert ("Paris", "London") in said
    labels = read_lines(export("kto", tmp_path / "k.jsonl", "-i", source, *MAIN))
    answers = {r["completion"][0]["content"]: r["label"] for r in labels}
    assert answers["Paris"] is True and answers["London"] is False


def test_tries_of_a_folder_and_of_rows_are_compared(
    until_right: Path, chosen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Restarted attempts are reported and excluded."""
    folder = until_right.with_suffix("")
    assert diff.main([str(folder), str(until_right), "--exact"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 tasks compared: 0 differ"
    lines = [json.loads(line) for line in until_right.read_text().splitlines()]
    lines[0]["previous_failed_sessions"][1]["session"]["steps"][0]["action"]["llm_output"] = "?"
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert diff.main([str(folder), str(other)]) == 1
    assert ", try 1: differs at ck_agent, step 0, action: reply" in capsys.readouterr().out
    assert diff.main([str(chosen.with_suffix("")), str(chosen)]) == 1
    said = capsys.readouterr().out
    assert "sum: the same" in said and "differs at the task: tries" in said


def test_restarted_attempts_are_counted(
    until_right: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(until_right.with_suffix(""), run)
    plain = export("sft", tmp_path / "a.jsonl", "-i", run)
    assert "restarted attempts" not in capsys.readouterr().out
    shutil.copytree(run / "sum" / "try-1", run / "sum" / "attempt-1")
    with_aside = export("sft", tmp_path / "b.jsonl", "-i", run)
    assert re.search(r"restarted attempts, skipped +│ +1 ", capsys.readouterr().out)
    assert _seen(with_aside) == _seen(plain)
    assert read_lines(export("sft", tmp_path / "c.jsonl", "-i", run / "sum" / "attempt-1"))


# --- the loaders -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("format_", LIGHT_AND_LONG)
def test_every_format_is_loaded_by_its_own_library(
    until_right: Path, tmp_path: Path, format_: str
) -> None:
    path = export(format_, tmp_path / f"o.{ending(format_)}", "-i", until_right)
    rows = loaded(format_, path)
    tries = [(0, 0), (1, 0), (2, 1)]
    if format_ == "atif":
        found = [(t.extra["task_id"], t.extra["try"], t.extra["reward"]) for t in rows]
        assert found == [(name, *t) for name in ("sum", "capital") for t in tries]
    elif format_ == "ckpro":
        assert len(rows) == 6
    elif format_ == "sharegpt":
        assert len(rows) == len(read_lines(path)) > 0
        assert all(r["_prompt"] and len(r["_response"]) == 1 for r in rows)
    elif format_ in ("sft", "kto", "parquet"):
        assert {r["metadata"]["try"] for r in rows} == {0, 2}  # the second try equals the first
    else:
        assert rows
