"""`--resume FOLDER`, with `--answer`: resume one run from the command line."""

import io
import json
import sys
from pathlib import Path

import pytest
from main_command import PLAN, code_reply, reply, run, write_lines

from ck_main.agent import CKAgent
from ck_pro import MultiStepAgent, StopTool
from ck_pro.command_line import ExitCode
from ck_pro.tools.human import AskHumanTool


@pytest.mark.worker
def test_a_question_is_answered_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = [reply("Open it.", "plan", PLAN)]
    replies.append(code_reply("Open it.", "found = ask_human('The code?')\nstop(found)"))
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(
        tmp_path / "tasks.jsonl", [{"id": "a", "question": "Open it.", "answer": 7}]
    )
    code, _, _ = run(capsys, "-i", tasks, "-o", "out.jsonl", "-m", model)
    assert code == ExitCode.PROBLEM
    row = json.loads(Path("out.jsonl").read_text())
    info = row["session"]["info"]
    assert info["status"] == "human-intervention" and info["message"].endswith("The code?")
    code, out, _ = run(capsys, "--resume", "out/a", "--answer", "7", "-m", model)
    assert (code, out.strip()) == (ExitCode.DONE, "7")
    row = json.loads(Path("runs/resumed.jsonl").read_text())
    assert row["id"] == "a" and row["eval"]["corr"] == 1
    assert len(row["session"]["steps"]) == 1 and row["session"]["info"]["resumed"] == 1
    code, _, err = run(capsys, "--resume", "out/a", "-m", model, "-o", "other.jsonl")
    assert code == ExitCode.USAGE and "is done" in err
    code, _, err = run(capsys, "--resume", "out/a", "-m", model)
    assert code == ExitCode.USAGE
    code, _, err = run(capsys, "-t", "Open it.", "-m", model)  # the answer is asked for by name
    assert code == ExitCode.PROBLEM and "answer it with --resume runs/main/task-" in err


class Delegating(CKAgent):
    """The main agent with a helper that needs no browser."""

    helper: MultiStepAgent = MultiStepAgent(name="helper", tools=[AskHumanTool(), StopTool()])
    sub_agents = ["helper"]


@pytest.mark.worker
def test_a_question_of_a_sub_agent_is_answered_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ck_main.main.CKAgent", Delegating)
    replies = [reply("Open it.", "plan", PLAN)]
    replies.append(code_reply("Open it.", "stop(helper('Ask.')['output'])"))
    asks = code_reply("Ask.", "stop(ask_human('The code?'))")
    replies.append({**asks, "agent": "ck_agent/helper"})
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Open it."}])
    code, _, err = run(capsys, "-i", tasks, "-o", "out.jsonl", "-m", model)
    assert code == ExitCode.PROBLEM
    assert "ck_agent/helper: a person must help: The code?" in " ".join(err.split())
    info = json.loads(Path("out.jsonl").read_text())["session"]["info"]
    assert info["status"] == "human-intervention"
    code, out, _ = run(capsys, "--resume", "out/a", "--answer", "7", "-m", model)
    assert (code, out.strip()) == (ExitCode.DONE, "7")
    session = json.loads(Path("runs/resumed.jsonl").read_text())["session"]
    (helper,) = session["steps"][0]["action"]["sub_sessions"]
    assert len(session["steps"]) == len(helper["steps"]) == 1


@pytest.mark.worker
def test_the_same_command_resumes_after_a_kill_that_came_with_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = [reply("Open it.", "plan", PLAN)]
    replies.append(code_reply("Open it.", "stop(ask_human('The code?'))"))
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Open it."}])
    run(capsys, "-i", tasks, "-o", "out.jsonl", "-m", model)
    events = Path("out/a/events.jsonl")
    before = len(events.read_bytes().splitlines())
    run(capsys, "--resume", "out/a", "--answer", "7", "-m", model)
    lines = events.read_bytes().splitlines(keepends=True)
    events.write_bytes(b"".join(lines[: before + 1]))
    code, _, err = run(capsys, "--resume", "out/a", "--answer", "8", "-m", model)
    assert code == ExitCode.USAGE and "already has the answer '7'" in err
    code, out, _ = run(capsys, "--resume", "out/a", "--answer", "7", "-m", model)
    assert (code, out.strip()) == (ExitCode.DONE, "7")
    assert Path("runs/resumed-2.jsonl").exists(), "the first output had a row of the task"


@pytest.mark.worker
def test_a_command_says_how_to_resume_a_run_that_waits_for_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = "print(ask_human('The code?'))\nprint(ask_human('The town?'))\nstop('bought')"
    replies = [reply("Open it.", "plan", PLAN), code_reply("Open it.", both)]
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Open it."}])
    given = ("-m", model, "-u", "approver={'stop': ['bought']}")
    _, _, err = run(capsys, "-i", tasks, "-o", "out.jsonl", *given)
    assert "a: answer it with --resume out/a --answer TEXT" in err.splitlines()
    _, _, err = run(capsys, "--resume", "out/a", "--answer", "7", *given)
    assert "answer it with --resume out/a --answer TEXT" in err.splitlines()
    code, _, err = run(capsys, "--resume", "out/a", "--answer", "Rome", *given)
    assert code == ExitCode.PROBLEM and "sensitive-action" in err
    assert "allow the action with --resume out/a --approve" in err.splitlines()
    code, out, _ = run(capsys, "--resume", "out/a", "--approve", *given)
    assert (code, out.strip()) == (ExitCode.DONE, "bought")


@pytest.mark.worker
def test_an_approval_runs_the_stopped_call_of_a_sub_agent_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ck_main.main.CKAgent", Delegating)
    replies = [reply("Open it.", "plan", PLAN)]
    replies.append(code_reply("Open it.", "stop(helper('Ask.')['output'])"))
    asks = code_reply("Ask.", "print(ask_human('pay 1'))\nstop(ask_human('pay 1'))")
    replies.append({**asks, "agent": "ck_agent/helper"})
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Open it."}])
    gated = ("-m", model, "-u", "approver={'stop': ['pay 1']}")
    run(capsys, "-i", tasks, "-o", "out.jsonl", *gated)
    code, _, err = run(capsys, "--resume", "out/a", "--approve", *gated)
    assert code == ExitCode.PROBLEM, "the approved question has no answer yet"
    code, _, err = run(capsys, "--resume", "out/a", "--approve", *gated)
    assert code == ExitCode.USAGE and "no action of this run waits for approval" in err
    code, _, err = run(capsys, "--resume", "out/a", "--answer", "yes", *gated)
    assert code == ExitCode.PROBLEM and "stopped for the user's decision" in " ".join(err.split())
    run(capsys, "--resume", "out/a", "--approve", *gated)
    code, out, _ = run(capsys, "--resume", "out/a", "--answer", "no", *gated)
    assert (code, out.strip()) == (ExitCode.DONE, "no")


@pytest.mark.worker
def test_an_answer_does_not_pass_for_an_approval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ck_main.main.CKAgent", Delegating)
    replies = [reply("Open it.", "plan", PLAN)]
    replies.append(code_reply("Open it.", "stop(helper('Ask.')['output'])"))
    replies.append({**code_reply("Ask.", "stop('bought')"), "agent": "ck_agent/helper"})
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Open it."}])
    gated = ("-m", model, "-u", "approver={'stop': ['bought']}")
    code, _, err = run(capsys, "-i", tasks, "-o", "out.jsonl", *gated)
    assert code == ExitCode.PROBLEM
    assert "ck_agent/helper: stopped for the user's decision" in " ".join(err.split())
    code, _, err = run(capsys, "--resume", "out/a", "--answer", "yes", *gated)
    assert code == ExitCode.USAGE and "did not ask a question (sensitive-action)" in err
    code, _, err = run(capsys, "--resume", "out/a", *gated, "-o", "again.jsonl")
    assert code == ExitCode.PROBLEM and "stopped for the user's decision" in " ".join(err.split())
    code, out, _ = run(capsys, "--resume", "out/a", "-m", model)
    assert (code, out.strip()) == (ExitCode.DONE, "bought")


@pytest.mark.worker
def test_a_fork_resumes_with_another_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = [reply("Count.", "plan", PLAN), code_reply("Count.", "print(1)")]
    replies += [reply("Count.", "plan", PLAN, step=1), code_reply("Count.", "stop('one')", step=1)]
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Count."}])
    assert run(capsys, "-i", tasks, "-o", "out.jsonl", "-m", model)[0] == ExitCode.DONE
    before = Path("out/a/events.jsonl").read_bytes()
    Path("edited.txt").write_text("```python\nstop('another')\n```")
    fork = ("--fork", "out/a", "--at", "1", "-m", model)
    code, out, _ = run(capsys, *fork, "--reply", "edited.txt")
    assert (code, out.strip()) == (ExitCode.DONE, "another")
    code, out, _ = run(capsys, *fork)  # again: another folder, another file of rows
    assert (code, out.strip()) == (ExitCode.DONE, "one")
    rows = [json.loads(p.read_text()) for p in sorted(Path("runs/forks").glob("a-at-1-*.jsonl"))]
    assert [row["eval"]["pred"] for row in rows] == ["another", "one"]
    assert {row["id"] for row in rows} == {"a"} and len(rows[0]["session"]["steps"]) == 2
    assert Path("out/a/events.jsonl").read_bytes() == before
    code, _, err = run(capsys, *fork, "-o", "runs/forks/a-at-1-2.jsonl")
    assert code == ExitCode.OUTPUT and "exists already" in err
    code, _, _ = run(capsys, *fork, "-m", "http://127.0.0.1:9/v1")
    assert code == ExitCode.UNREACHABLE and not Path("runs/forks/a-at-1-3").exists()
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, _, err = run(capsys, *fork, "-m", "manual")
    assert (
        code == ExitCode.UNREACHABLE and "use --resume runs/forks/a-at-1-3/a to run it again" in err
    )
    code, _, err = run(capsys, "--fork", "out/a", "--at", "7", "-m", model)
    assert code == ExitCode.USAGE and "there is no step 7" in err


@pytest.mark.worker
def test_a_fork_warns_about_another_way_of_planning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replies = [reply("Count.", "plan", PLAN), code_reply("Count.", "print(1)")]
    replies += [reply("Count.", "plan", PLAN, step=1), code_reply("Count.", "stop('one')", step=1)]
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    tasks = write_lines(tmp_path / "tasks.jsonl", [{"id": "a", "question": "Count."}])
    args = ("-i", tasks, "-o", "out.jsonl", "-m", model, "--planning", "separate")
    assert run(capsys, *args)[0] == ExitCode.DONE
    fork = ("--fork", "out/a", "--at", "1", "-m", model)
    said = "was made with planning=separate (ck_agent) and continues with planning=fused"
    code, _, err = run(capsys, *fork)
    assert code == ExitCode.DONE and said in err and "--planning separate keeps it" in err
    code, _, err = run(capsys, *fork, "--planning", "separate")
    assert code == ExitCode.DONE and "was made with" not in err


@pytest.mark.worker
def test_a_campaign_whose_replies_carry_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = f"Thought: so\n```python\n{PLAN}\n```\n```python\nn = 20\n```"
    replies = []
    for name in ("a", "b", "c"):
        replies.append(reply(f"Count {name}.", "action", plan))
        replies.append(code_reply(f"Count {name}.", f"stop('{name}')", step=1))
    model = f"replay:{write_lines(tmp_path / 'replies.jsonl', replies)}?check=off"
    lines = [{"id": n, "question": f"Count {n}.", "answer": n} for n in ("a", "b", "c")]
    tasks = write_lines(tmp_path / "tasks.jsonl", lines)
    args = ("-i", tasks, "-o", "out.jsonl", "-m", model, "-w", "2")
    assert run(capsys, *args)[0] == ExitCode.DONE
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert sorted(row["eval"]["pred"] for row in rows) == ["a", "b", "c"]
    for row in rows:
        first = row["session"]["steps"][0]
        assert first["plan"]["state"]["todo_list"] == ["compute"]
        assert "llm_input" not in first["plan"] and first["action"]["code"] == "n = 20"
        assert row["session"]["info"]["call_stat"]["__main__"]["llm_call"] == 2
    assert run(capsys, *args)[0] == ExitCode.DONE  # nothing is left
    assert len(Path("out.jsonl").read_text().splitlines()) == 3
    code, out, _ = run(capsys, "--fork", "out/a", "--at", "1", "-m", model)
    assert (code, out.strip()) == (ExitCode.DONE, "a")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--resume", "none"], "no run found"),
        (["--resume", "empty"], "does not name the task"),
        (["--resume", "odd"], "odd: a damaged event, 'session': KeyError"),
        (["--resume", "."], "with its events.jsonl, such as empty"),
        (["--resume", "none", "-t", "x"], "omit --input and --task"),
        (["--answer", "x"], "--answer needs --resume"),
        (["--approve"], "--approve needs --resume"),
        (["--fork", "none", "--at", "1"], "none"),
        (["--fork", "none"], "need each other"),
        (["--fork", "none", "--at", "1", "--resume", "none"], "not both"),
        (["--fork", "none", "--at", "1", "-t", "x"], "--fork resumes one run"),
        (["--reply", "none"], "--reply needs --fork"),
    ],
)
def test_a_run_that_cannot_be_resumed_is_one_line(
    args: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("empty/events.jsonl").write_text("")
    Path("odd").mkdir()
    Path("odd/events.jsonl").write_text('{"kind":"session","sid":"s","data":{}}\n')
    code, _, err = run(capsys, *args, "-m", "manual")
    assert code == ExitCode.USAGE and said in err and len(err.strip().splitlines()) == 1
