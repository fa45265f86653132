"""`--chat`: a conversation on the command line becomes one row, and can be continued."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from main_command import code_reply, run, write_lines

from ck_pro.command_line import ExitCode

CODE = {0: "x = 40\nstop(x)", 1: "stop(x + 2)", 2: "stop('x' in globals())"}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    replies = [code_reply("Remember 40.", code, step) for step, code in CODE.items()]
    return f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.mark.worker
def test_a_conversation_is_one_row_and_continues(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_lines(monkeypatch, "Remember 40.", "", "Add 2.", "__END__", "not read")
    code, out, _ = run(capsys, "--chat", "-m", model, "-o", "chat.jsonl")
    assert (code, out) == (ExitCode.DONE, "40\n42\n")
    (row,) = [json.loads(line) for line in Path("chat.jsonl").read_text().splitlines()]
    assert row["task"] == "Remember 40." and row["eval"]["pred"] == "42"
    assert row["session"]["info"]["turns"] == [{"step": 1, "text": "Add 2."}]
    assert len(row["session"]["steps"]) == 2
    (folder,) = Path("chat").glob("chat-*")
    type_lines(monkeypatch, "Is x known?")
    code, out, _ = run(capsys, "--chat", "--resume", folder, "-m", model)
    assert code == ExitCode.DONE and out == "42\nFalse\n"  # the last answer, then the new one
    row = json.loads(Path("runs/resumed.jsonl").read_text())
    assert [t["text"] for t in row["session"]["info"]["turns"]] == ["Add 2.", "Is x known?"]
    assert row["eval"]["pred"] == "False" and row["session"]["info"]["resumed"] == 1


@pytest.mark.worker
def test_the_first_message_may_be_an_option(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_lines(monkeypatch, "Add 2.")
    code, out, _ = run(capsys, "--chat", "-t", "Remember 40.", "-m", model)
    assert (code, out) == (ExitCode.DONE, "40\n42\n")


@pytest.mark.worker
def test_a_turn_that_fails_can_be_continued(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_lines(monkeypatch, "Remember 40.", "Add 2.", "And?", "No more replies.")
    code, out, err = run(capsys, "--chat", "-m", model)
    assert code == ExitCode.PROBLEM and out == "40\n42\nTrue\n"
    assert "--chat --resume runs/main/chat-" in err


def test_no_message_runs_nothing(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_lines(monkeypatch)
    assert run(capsys, "--chat", "-m", model)[:2] == (ExitCode.DONE, "")


@pytest.mark.parametrize(
    "given", [["-i", "t.jsonl", "-o", "x.jsonl"], ["--tries", "2"], ["--fork", "x", "--at", "1"]]
)
def test_options_of_task_files_contradict_it(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "--chat", *given)
    assert code == ExitCode.USAGE and "give --chat or" in err
