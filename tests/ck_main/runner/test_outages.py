"""Services that are lost or refuse: the run stops, no task is used up, and it can be continued."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_agent import Call, FakeAgent, Watching, make_task
from main_command import PLAN, code_reply, reply, run, write_lines

from ck_main.output.row_file import RowFile
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.runner.service_checks import check_services, probe_services
from ck_pro.exceptions import BrowserServerError, CKError, ManualAbort, ModelRefused
from ck_pro.session import AgentSession, StopReason
from ck_pro.testing import FakeChatServer
from ck_pro.testing.chat_server import ChatCall, Fault

pytestmark = pytest.mark.integration


def answers(call: ChatCall) -> str:
    return PLAN if "Now plan" in str(call.messages[-1]) else STOP


STOP = "Thought: done.\n```python\nstop('42')\n```"


def ids(output: Path) -> list[str]:
    return [json.loads(line)["id"] for line in output.read_text().splitlines()]


def tasks_of(folder: Path, number: int = 12) -> Path:
    rows = [{"id": f"t{n}", "question": f"Task {n}"} for n in range(number)]
    return write_lines(folder / "tasks.jsonl", rows)


@pytest.mark.worker
def test_a_refusal_stops_the_run_and_writes_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing = threading.Event()
    refusing.set()

    def script(call: ChatCall) -> Any:
        return Fault(status=401, message="wrong key") if refusing.is_set() else answers(call)

    output = tmp_path / "out.jsonl"
    with FakeChatServer(script) as chat:
        args = ["-i", tasks_of(tmp_path, 3), "-o", output, "-m", f"{chat.url}/v1"]
        code, _, err = run(capsys, *args)
        assert (code, ids(output)) == (5, []), err
        assert len(chat.calls) == 2  # the task's call, and the probe
        assert "error: " in err and "wrong key" in err
        refusing.clear()
        code, _, err = run(capsys, *args)
    assert (code, ids(output)) == (0, ["t0", "t1", "t2"]), err


@pytest.mark.worker
def test_the_end_of_manual_input_writes_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    output = tmp_path / "out.jsonl"
    code, _, err = run(capsys, "-i", tasks_of(tmp_path, 3), "-o", output, "-m", "manual")
    assert (code, ids(output)) == (5, []) and "the input ended" in err
    assert "manual model stopped, no row written; repeat the command to run it again" in err
    typed = tmp_path / "typed.jsonl"
    code, _, err = run(capsys, "-t", "x", "-o", typed, "-m", "manual")  # it will have another id
    (folder,) = (p for p in (tmp_path / "typed").iterdir() if p.is_dir())
    assert code == 5 and f"no answer; resume it with --resume {folder}\n" in err
    assert "same command" not in err


@pytest.mark.worker
def test_a_recording_that_does_not_match_ends_only_its_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = [reply("Task 1", "plan", PLAN), code_reply("Task 1", "stop('1')")]
    model = f"replay:{write_lines(tmp_path / 'r.jsonl', replies)}?check=off"
    output = tmp_path / "out.jsonl"
    code, _, err = run(capsys, "-i", tasks_of(tmp_path, 3), "-o", output, "-m", model)
    assert (code, ids(output)) == (1, ["t0", "t1", "t2"]), err


def runner_for(folder: Path, behaviour: Any, probe: Any) -> TaskRunner:
    rows = RowFile(folder / "out.jsonl")
    agent = FakeAgent(behaviour=behaviour)
    return TaskRunner(agent, rows, RunOptions(probe=probe), Watching())


def gone() -> None:
    raise BrowserServerError("gone")


@pytest.mark.parametrize("lost", [True, False])
def test_a_service_lost_in_a_sub_agent_of_a_completed_task(tmp_path: Path, lost: bool) -> None:
    def behaviour(call: Call) -> str:
        child, below = AgentSession(agent="web"), AgentSession(agent="deep")
        below.stop_reason = StopReason.ENVIRONMENT_FAILURE
        child.children[below.id] = below
        call.session.children[child.id] = child
        return "a guess"

    runner = runner_for(tmp_path, behaviour, gone if lost else lambda: None)
    with runner.rows:
        if lost:
            with pytest.raises(BrowserServerError):
                runner.run([make_task("a"), make_task("b")])
        else:
            runner.run([make_task("a"), make_task("b")])
    assert ids(tmp_path / "out.jsonl") == ([] if lost else ["a", "b"])


@pytest.mark.parametrize(
    ("failed", "kind"),
    [("ModelRefused: no quota", BrowserServerError), ("ManualAbort: bye", ManualAbort)],
)
def test_a_refused_call_of_a_tool_counts_too(
    tmp_path: Path, failed: str, kind: type[CKError]
) -> None:
    def behaviour(call: Call) -> str:
        call.record("model_failed", {"error": failed}, phase="tool:ask_llm")
        return "a guess"

    runner = runner_for(tmp_path, behaviour, gone)
    with runner.rows, pytest.raises(kind):
        runner.run([make_task("a"), make_task("b")])
    assert ids(tmp_path / "out.jsonl") == []


def test_a_probe_asks_what_a_recording_wraps_and_leaves_the_recording_alone(
    tmp_path: Path,
) -> None:
    recording = tmp_path / "r.jsonl"
    with FakeChatServer([Fault(status=403, message="no")]) as chat:
        agent = FakeAgent(model=f"record:{recording}:{chat.url}/v1")
        check_services(agent)
        with pytest.raises(ModelRefused):
            probe_services(agent)
    with FakeChatServer([Fault(status=500), "ok"]) as chat:
        probe_services(FakeAgent(model=f"record:{recording}:{chat.url}/v1"))
    assert not recording.exists()


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["-u", "web_agent.web_env.chromium=/nonexist"], 2, "chromium: '/nonexist' is not an exec"),
        (["-u", "templates.plan=ck_paln"], 2, "no template 'ck_paln'; did you mean 'ck_plan'?"),
        (["--max-money", "1", "-m", "gpt:unknown"], 2, "the price of 'unknown'"),
        (["--max-money", "1", "-m", "gpt:no"], 2, "model.price=... and web_agent.model.price=..."),
        (
            ["--max-money", "1", "-m", "gpt:gpt-5", "-u", "web_agent.model=gpt:unheard-of"],
            2,
            "web_agent.model.price",
        ),
    ],
)
def test_missing_services_are_found_before_the_first_task(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    model = ["-m", f"replay:{write_lines(tmp_path / 'r.jsonl', [])}"]
    output = tmp_path / "out.jsonl"
    got, _, err = run(capsys, "-i", tasks_of(tmp_path), "-o", output, *model, *more)
    assert got == code and said in err and err.count("\n") == 1
    assert ids(output) == [] and list((tmp_path / "out").glob("*")) == []


def test_agents_without_a_web_agent_need_no_chromium(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CK_CHROMIUM", "/nonexist")
    model = f"replay:{write_lines(tmp_path / 'r.jsonl', [])}"
    args = ["-t", "x", "-m", model, "-o", tmp_path / "o.jsonl"]
    code, _, err = run(capsys, *args, "-u", "active_functions=['stop']")
    assert code == 1, err
