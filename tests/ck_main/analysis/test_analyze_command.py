"""The command: tables, JSON, plots and reports, also of odd inputs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from analysis_rows import row, session, step, write_rows

from ck_main import analyze
from ck_pro.command_line import ExitCode

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'\x1b[31m\u202e"


def rows(right: int, total: int = 10, **more: Any) -> list[dict[str, Any]]:
    return [row(f"t{n}", int(n < right), original={"Level": n % 2}, **more) for n in range(total)]


@pytest.fixture
def outputs(tmp_path: Path) -> tuple[str, str]:
    a = write_rows(tmp_path / "a.jsonl", rows(3))
    b = write_rows(tmp_path / "b.jsonl", rows(9))
    return str(a), str(b)


def test_one_output_is_shown_as_tables(
    outputs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert analyze.main([outputs[0]]) == ExitCode.DONE
    shown = capsys.readouterr().out
    for text in ("30.0 %", "11-60 %", "level", "wrong", "per task", "tokens", "failed tasks"):
        assert text in shown
    assert "B is" not in shown


def test_two_outputs_end_with_one_sentence(
    outputs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert analyze.main([*outputs, "--failures", "0"]) == ExitCode.DONE
    shown = capsys.readouterr().out
    last = " ".join(shown[shown.index("B is") :].split())
    assert last.startswith("B is 60.0 points better than A (30.0 % -> 90.0 % on 10 tasks;")
    assert last.endswith("the difference is probably not noise.")
    assert "failed tasks" not in shown


def test_an_output_compared_with_itself_is_a_and_b(
    outputs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert analyze.main([outputs[0], outputs[0]]) == 0
    shown = capsys.readouterr().out
    assert "per task of A" in shown and "per task of B" in shown


def test_groups_with_many_labels_are_shortened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_rows(tmp_path / "a.jsonl", [row(f"t{n:02}", 1) for n in range(100)])
    assert analyze.main([str(source), "--by", "id"]) == 0
    shown = capsys.readouterr().out
    assert "t39" in shown and "t40" not in shown and "--json has all" in shown


def test_json_has_everything(outputs: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert analyze.main([*outputs, "--json", "--by", "level"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparison"]["p"] == 0.03125
    assert [g["label"] for g in found["a"]["groups"]] == ["0", "1"]
    assert len(found["a"]["failures"]) == 7
    assert found["a"]["distributions"]["tokens"]["median"] == 110


@pytest.mark.integration
def test_plots_are_files_of_their_form(outputs: tuple[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    assert analyze.main([*outputs, "--plots", str(folder)]) == 0
    names = sorted(p.stem for p in folder.iterdir())
    assert names == sorted(
        ["scores", "endings", "comparison", "steps", "calls", "tokens", "money", "seconds"]
    )
    for path in folder.iterdir():
        ElementTree.fromstring(path.read_text())
    assert analyze.main([*outputs, "--plots", str(folder)]) == ExitCode.OUTPUT
    assert analyze.main([*outputs, "--plots", str(folder), "--format", "png"]) == 0
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in folder.glob("*.png"))
    assert len(list(folder.glob("*.png"))) == 8


def test_png_without_its_package_is_reported_in_one_line(
    outputs: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    code = analyze.main([outputs[0], "--plots", str(tmp_path / "p"), "--format", "png"])
    assert code == ExitCode.USAGE
    assert 'pip install "ck-pro[plots]"' in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


def test_texts_of_runs_are_inert_in_reports_plots_and_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = session([step(EVIL, error=EVIL)], output=EVIL, message=EVIL, agent=EVIL)
    evil = row(EVIL, 0, gold=EVIL, original={"Level": EVIL}, made=made)
    evil["task"] = EVIL
    source = write_rows(tmp_path / "a.jsonl", [evil, row("x", 1)])
    html, plots = tmp_path / "r.html", tmp_path / "p"
    assert analyze.main([str(source), str(source), "--html", str(html), "--plots", str(plots)]) == 0
    text = html.read_text()
    assert "<script" not in text and "<img" not in text and "\x1b" not in text
    assert "onerror=" not in re.sub(r"&lt;.*?&gt;", "", text)
    assert "default-src 'none'" in text
    assert not re.search(r'(?:src|href)\s*=\s*"?https?:', text)
    for path in plots.iterdir():
        ElementTree.fromstring(path.read_text())
        assert "<script" not in path.read_text()
    assert "\x1b[31m" not in capsys.readouterr().out


def test_an_input_without_runs_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, html = write_rows(tmp_path / "a.jsonl", []), tmp_path / "r.html"
    assert analyze.main([str(empty), "--html", str(html)]) == ExitCode.EMPTY
    assert "no run" in capsys.readouterr().err and "no run" in html.read_text()
    broken = write_rows(tmp_path / "b.jsonl", [{"id": 1}, row("x", 1)])
    assert analyze.main([str(broken), str(empty), "--force"]) == ExitCode.LINES
    assert "line 1: not an output row" in capsys.readouterr().err
    assert analyze.main([str(tmp_path / "missing")]) == ExitCode.USAGE


@pytest.mark.parametrize(
    "odd",
    [
        [row("x", 1)],
        [row("x", None, gold=None)],
        [row("x", 0, made=session(status="problem", stop_reason="steps"))],
        [{"id": "x", "session": {"steps": []}}],
        [{"session": {"steps": [{}, {"action": None}]}, "eval": {"corr": float("nan")}}],
        [row("x", 1e300), row("y", -3)],
    ],
)
def test_odd_rows_have_an_analysis(tmp_path: Path, odd: list[Any]) -> None:
    source = write_rows(tmp_path / "a.jsonl", odd)
    options = ["--html", str(tmp_path / "r.html"), "--plots", str(tmp_path / "p")]
    code = analyze.main([str(source), str(source), *options])
    assert code in (ExitCode.DONE, ExitCode.LINES)
    assert analyze.main([str(source), "--json"]) == code


def test_a_score_may_have_another_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [row("x", 0, judge={"score": 0.8}), row("y", 0, judge={"score": 0.3})]
    source = write_rows(tmp_path / "a.jsonl", found)
    options = ["--score-from", "judge.score", "--good-score", "0.7", "--json"]
    assert analyze.main([str(source), *options]) == 0
    overall = json.loads(capsys.readouterr().out)["a"]["overall"]
    assert overall["right"] == 1 and overall["interval"]["value"] == pytest.approx(0.55)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_the_lowest_right_score_is_a_number(
    outputs: tuple[str, str], capsys: pytest.CaptureFixture[str], value: str
) -> None:
    assert analyze.main([outputs[0], "--good-score", value]) == ExitCode.USAGE
    assert f"--good-score: {value} is not a score" in capsys.readouterr().err
