"""`python -m ck_web.main`: the web agent alone, with the command line of the main agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_wire import FakeWire
from web_scripts import EMPTY_PLAN, code

from ck_main.cli.command import run_command
from ck_main.main import cli as main_cli
from ck_pro.testing import FakeChatServer
from ck_pro.testing.chat_server import ChatCall
from ck_web.main import cli

STOP = code("stop('42', 'seen')")


def main(*args: object) -> int:
    return run_command(cli, [str(a) for a in args])


def _answer(call: ChatCall) -> str:
    """Reply with a plan, then with a call of stop."""
    return code(EMPTY_PLAN) if "Now plan" in str(call.messages[-1]) else STOP


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.worker
def test_the_command_runs_a_task_file(
    wire: FakeWire, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks, output = tmp_path / "tasks.jsonl", tmp_path / "runs" / "web.jsonl"
    tasks.write_bytes(
        b'\xef\xbb\xbf{"task": "count", "id": "a/b", "target_url": "http://shop.test/lamps"}\r\n'
        b'{"question": "sum", "answer": 42}\n{"task": "x", "target_url": 3}\nnot json\n'
    )
    with FakeChatServer(_answer) as chat:
        args = ["-i", tasks, "-o", output, "-m", chat.url, "-w", 2]
        args += ["-u", f"web_env.server_url={wire.url}", "--target-url", "http://shop.test/"]
        assert main(*args) == 3
        with output.open("ab") as file:
            file.write(b'{"id": "cut o')
        assert main(*args) == 3
    rows = {r["id"]: r for r in _rows(output)}
    assert sorted(rows) == ["a/b", "task0001"] and rows["task0001"]["eval"]["corr"] == 1
    starts = {i: r["session"]["info"]["target_url"] for i, r in rows.items()}
    assert starts == {"a/b": "http://shop.test/lamps", "task0001": "http://shop.test/"}
    for name, row in rows.items():
        state = row["session"]["steps"][0]["action"]["web_state_before"]
        assert state["target_url"] == starts[name]
    said = capfd.readouterr()
    assert "2 from earlier runs" in said.out
    assert f"error: {tasks}, line 3, field 'target_url': is a number" in said.err
    assert f"error: {tasks}, line 4: is not JSON" in said.err
    assert not wire.browsers


@pytest.mark.worker
def test_the_command_runs_one_task(
    wire: FakeWire, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with FakeChatServer(_answer) as chat:
        args = ["-t", "count", "-m", chat.url, "-u", f"web_env={wire.url}"]
        assert main(*args, "-o", tmp_path / "o.jsonl") == 0
    assert capfd.readouterr().out == "42\n"
    (row,) = _rows(tmp_path / "o.jsonl")
    assert "target_url" not in row["session"]["info"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["-i", "x.jsonl"], 2, "--input needs --output"),
        (["-i", "missing.jsonl", "-o", "o.jsonl"], 2, "cannot read the task file missing.jsonl"),
        (["-i", "here.jsonl", "-o", "here.jsonl"], 2, "is the task file itself"),
        (["-t", "x", "-u", "web_env.servr_url=x"], 2, "did you mean 'server_url'"),
        (["-t", "x", "-c", "missing.yaml"], 2, "missing.yaml: cannot be read"),
        (["-t", "x", "--fast"], 2, "--fast"),
        (["-t", "x", "-o", "/dev/null/x.jsonl"], 4, "/dev/null is a file, not a folder"),
        pytest.param(
            ["-t", "x", "-u", "web_env=127.0.0.1:9"],
            5,
            "connection refused; start a server with",
            marks=pytest.mark.integration,  # it makes three attempts
        ),
        (["-t", "x", "-u", "web_env=not a url"], 2, "browser server address 'not a url'"),
    ],
)
def test_invalid_input_is_one_line(
    args: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CK_CHROMIUM", sys.executable)
    Path("here.jsonl").write_text('{"task": "x"}\n')
    assert main(*args) == code
    err = capfd.readouterr().err.strip()
    assert said in err and "\n" not in err and err.startswith("error: ")


@pytest.mark.worker
def test_tasks_stop_when_the_browser_server_is_lost(
    wire: FakeWire, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tasks, output = tmp_path / "tasks.jsonl", tmp_path / "out.jsonl"
    tasks.write_text("".join(f'{{"id": "t{n}", "task": "task {n}"}}\n' for n in range(3)))
    delegated: list[int] = []

    def answer(call: ChatCall) -> str:
        if "Now plan" in str(call.messages[-1]):
            return code(EMPTY_PLAN)
        if "ask_llm" not in str(call.messages):
            return STOP
        delegated.append(1)
        if len(delegated) == 2:
            wire.__exit__()
        return code("found = web_agent('look')\nstop(found['output'] or 'a guess')")

    with FakeChatServer(answer) as chat:
        args = ["-i", tasks, "-o", output, "-m", chat.url, "-u", f"web_agent.web_env={wire.url}"]
        assert run_command(main_cli, [str(a) for a in args]) == 5
    assert [r["id"] for r in _rows(output)] == ["t0"]
    said = capfd.readouterr()
    assert "1 of 3 tasks, 2 not run" in said.out and "connection refused" in said.err
