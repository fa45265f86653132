"""All commands that read runs: their inputs never change, and label files are not runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from analysis_rows import row, write_rows

from ck_main import analyze, score, share, view
from ck_main.viewer.runs.sources import sources_of
from ck_pro.command_line import ExitCode
from ck_pro.exceptions import InputError
from ck_pro.trajectory import load

LABELS = '{"label": "exclude", "id": "t0"}\n'
COMMANDS = {"analyze": analyze.main, "score": score.main, "share": share.main, "view": view.main}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_rows(tmp_path / "a.jsonl", [row("t0", 1)])
    (tmp_path / "a.labels.jsonl").write_text(LABELS)
    (tmp_path / "a/t0").mkdir(parents=True)
    (tmp_path / "a/t0/events.jsonl").write_text("{}\n")
    os.link(tmp_path / "a.jsonl", tmp_path / "same.jsonl")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "analyze a.jsonl --force --html a.jsonl",
        "analyze a.jsonl --force --html same.jsonl",
        "analyze a --force --html a.jsonl",
        "analyze a --force --html a/t0/events.jsonl",
        "score a.jsonl --force -o same.jsonl",
        "score a.jsonl -o new.jsonl --judge-model manual --cache a.jsonl",
        "share a.jsonl --force --html same.jsonl",
        "share a --force --markdown a.jsonl",
        "share a/t0 --force --html a/t0/events.jsonl",
        "view a.jsonl --no-open --labels a.jsonl",
    ],
)
def test_no_command_replaces_its_input(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    files = [folder / "a.jsonl", folder / "a/t0/events.jsonl"]
    before = [file.read_bytes() for file in files]
    name, *args = command.split()
    assert COMMANDS[name](args) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "is also an input; name another file" in error and error.count("\n") == 1
    assert [file.read_bytes() for file in files] == before


def test_label_files_among_the_inputs_are_skipped(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["a.jsonl", "a.labels.jsonl"]
    assert analyze.main(both) == ExitCode.DONE
    assert score.main([*both, "-o", "new.jsonl"]) == ExitCode.DONE
    error = capsys.readouterr().err
    assert error == "a.labels.jsonl has labels, not runs (skipped)\n" * 2
    assert [one.name for one in sources_of([Path(name) for name in both])] == ["a.jsonl"]
    runs = load(both)
    assert (len(runs), runs.problems) == (1, [])


@pytest.mark.parametrize("command", ["analyze", "score -o new.jsonl", "share --html x", "view"])
def test_an_input_with_labels_only_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    name, *args = command.split()
    assert COMMANDS[name]([*args, "a.labels.jsonl"]) == ExitCode.USAGE
    line = "error: a.labels.jsonl has labels, not runs; name the output a.jsonl\n"
    assert capsys.readouterr().err == line
    with pytest.raises(InputError, match="has labels, not runs"):
        load("a.labels.jsonl")


@pytest.mark.parametrize("command", ["analyze", "score -o new.jsonl", "share --html x", "view"])
def test_a_pipe_as_an_input_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    name, *args = command.split()
    assert COMMANDS[name]([*args, "pipe.jsonl"]) == ExitCode.USAGE
    assert "pipe.jsonl: it is neither a file nor a folder" in capsys.readouterr().err
