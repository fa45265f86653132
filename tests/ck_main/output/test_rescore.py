"""Scoring rows again: what changes, what stays, and what cannot be scored."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from output_rows import make_row

from ck_main import score
from ck_main.output.row import build_row, task_facts
from ck_main.tasks.dataset import LineProblem, read_tasks
from ck_pro.command_line import ExitCode
from ck_pro.session import AgentSession
from ck_pro.testing import FakeChatServer
from ck_pro.trajectory.reading import sources


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row_of(task_id: str, pred: str, gold: str | None, **more: Any) -> dict[str, Any]:
    row = make_row(task_id, pred)
    row["answer"], row["eval"] = gold, {"pred": pred, "gold": gold, "corr": 0}
    return {**row, **more}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_get_new_scores_and_keep_everything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "a.jsonl", row_of("x", "5.2", "5"), row_of("y", "9", "5", extra=[1]))
    before = source.read_bytes()
    out = tmp_path / "b.jsonl"
    code = score.main([str(source), "-o", str(out), "--scorer", "numeric:abs=0.5"])
    assert (code, source.read_bytes()) == (ExitCode.DONE, before)
    assert "1 of 2 rows changed score" in capsys.readouterr().out
    new = read(out)
    assert [r["eval"]["corr"] for r in new] == [1, 0]
    assert new[0]["eval"]["scorer"] == "numeric:abs=0.5"
    assert [{**r, "eval": None} for r in new] == [{**r, "eval": None} for r in read(source)]


def test_scoring_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", row_of("x", "5", "5.0"), row_of("y", "é\ud800", "z"))
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    assert score.main([str(source), "-o", str(first), "--scorer", "gaia"]) == 0
    assert score.main([str(first), "-o", str(second), "--scorer", "gaia"]) == 0
    assert first.read_bytes() == second.read_bytes()


def test_all_tries_of_a_row_are_scored(tmp_path: Path) -> None:
    row = row_of("x", "5.0", "5")
    row["sel_cands"] = [{"output": "5.2", "corr": 0, "steps": 3}, {"output": "7", "corr": 0}]
    row["previous_failed_sessions"] = [
        {"session": row["session"], "eval": {"pred": "5.3", "gold": "5", "corr": 0}}
    ]
    out = tmp_path / "b.jsonl"
    source = write(tmp_path / "a.jsonl", row)
    assert score.main([str(source), "-o", str(out), "--scorer", "numeric:abs=1"]) == 0
    new = read(out)[0]
    assert [c["corr"] for c in new["sel_cands"]] == [1, 0]
    assert new["sel_cands"][0]["steps"] == 3
    assert new["previous_failed_sessions"][0]["eval"]["corr"] == 1


def test_a_task_is_scored_with_the_scorer_that_it_names(tmp_path: Path) -> None:
    rows = [
        row_of("x", "y, x", "x, y", _orig={"scorer": "set"}),
        row_of("y", "y, x", "x, y"),
        row_of("z", "y, x", "x, y", _orig={"scorer": "custom:os:getcwd"}),
    ]
    source, out = write(tmp_path / "a.jsonl", *rows), tmp_path / "b.jsonl"
    assert score.main([str(source), "-o", str(out), "--scorer", "list"]) == ExitCode.LINES
    assert [(r["id"], r["eval"]["corr"]) for r in read(out)] == [("x", 1), ("y", 0)]
    assert score.main([str(source), "-o", str(out), "--force", "--field", ""]) == 0
    assert [r["eval"]["corr"] for r in read(out)] == [0, 0, 0]


def test_an_output_is_complete_or_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write(tmp_path / "a.jsonl", row_of("x", "5", "5")), tmp_path / "b.jsonl"
    out.write_text("old\n")
    assert score.main([str(source), "-o", str(out)]) == ExitCode.OUTPUT
    assert out.read_text() == "old\n"
    assert "--force" in capsys.readouterr().err
    assert score.main([str(source), "-o", str(source), "--force"]) == ExitCode.USAGE
    link = tmp_path / "link.jsonl"
    os.link(source, link)
    assert score.main([str(source), "-o", str(link), "--force"]) == ExitCode.USAGE
    assert "is also an input" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "link.jsonl"]


def test_unreadable_lines_are_reported_and_an_empty_file_is_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = (
        write(tmp_path / "a.jsonl", row_of("x", "5", "5"), {"id": 3}),
        tmp_path / "b.jsonl",
    )
    with source.open("a") as file:
        file.write('{"torn')
    assert score.main([str(source), "-o", str(out), "--json"]) == ExitCode.LINES
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], len(found["problems"])) == (1, 2)
    empty = write(tmp_path / "empty.jsonl")
    assert score.main([str(empty), "-o", str(out), "--force"]) == ExitCode.DONE
    assert out.read_bytes() == b""
    assert "0 of 0 rows" in capsys.readouterr().out


def test_large_rows_are_not_parsed_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_LARGE_LINE", 2**20)
    row = row_of("x", "5", "5")
    row["session"]["steps"] = [
        {"step_idx": n, "action": {"observation": "x" * 50_000}} for n in range(40)
    ]
    source, out = write(tmp_path / "a.jsonl", row), tmp_path / "b.jsonl"
    assert score.main([str(source), "-o", str(out)]) == 0
    new = read(out)[0]
    assert new["eval"]["corr"] == 1 and new["session"] == row["session"]


def test_numbers_that_json_does_not_have_are_no_score(tmp_path: Path) -> None:
    row = row_of("x", "5", "5")
    row["eval"]["corr"] = float("nan")
    source, out = write(tmp_path / "a.jsonl", row), tmp_path / "b.jsonl"
    assert score.main([str(source), "-o", str(out)]) == 0
    assert read(out)[0]["eval"]["corr"] == 1


def test_a_runs_row_has_the_score_of_the_scorer_that_its_task_names(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    lines = [
        {"question": "q", "answer": "x, y", "scorer": "set"},
        {"question": "q", "answer": "a", "scorer": "sett"},
        {"question": "q", "answer": "a", "scorer": "custom:os:getcwd"},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    task, *problems = read_tasks(file)
    assert not isinstance(task, LineProblem)
    session = AgentSession("q")
    session.final_results = {"output": "y, x", "log": ""}
    assert build_row(task_facts(task), session)["eval"] == {
        **{"pred": "y, x", "gold": "x, y", "corr": 1},
        **{"scorer": "set", "reason": "2 of 2 items found, 0 others"},
    }
    assert "did you mean 'set'" in str(problems[0])
    assert "may not name" in str(problems[1])


@pytest.mark.integration
def test_the_judge_is_budgeted_and_a_repetition_is_free(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row_of(f"t{n}", f"answer {n}", "five") for n in range(6)]
    source, out = write(tmp_path / "a.jsonl", *rows), tmp_path / "b.jsonl"
    with FakeChatServer(text="It fits.\nVerdict: right") as server:
        command = [str(source), "-o", str(out), "--scorer", "judge", "--judge-model", server.url]
        assert score.main([*command, "--max-tokens", "1"]) == ExitCode.LIMIT
        assert "1 verdicts are cached" in capsys.readouterr().err
        assert not out.exists()
        assert score.main([*command, "--workers", "3"]) == 0
        asked = len(server.calls)
        assert asked == 6
        assert "6 of 6 rows changed score" in capsys.readouterr().out
        first = out.read_bytes()
        assert score.main([*command, "--force"]) == 0
        assert (len(server.calls), out.read_bytes()) == (asked, first)
    assert [r["eval"]["reason"] for r in read(out)] == ["It fits."] * 6
    assert [r["id"] for r in read(out)] == [f"t{n}" for n in range(6)]


@pytest.mark.integration
def test_rows_without_a_readable_verdict_are_reported_by_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write(tmp_path / "a.jsonl", row_of("x", "4", "5")), tmp_path / "b.jsonl"
    with FakeChatServer(text="I cannot say.") as server:
        command = [str(source), "-o", str(out), "--scorer", "judge", "--judge-model", server.url]
        assert score.main(command) == ExitCode.LINES
    assert "no score, not judged:" in capsys.readouterr().out
