"""`python -m ck_web.main`: rows, continuing, and one clear line for every bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_wire import FakeWire
from scripted import NOTHING_YET, code

from ck_pro.exceptions import TaskFileError
from ck_pro.testing import FakeChatServer
from ck_pro.testing.chat_server import ChatCall
from ck_web.main import main, read_web_tasks

STOP = code("stop('42', 'seen')")


def _answer(call: ChatCall) -> str:
    """A plan, then an action that stops at once."""
    return code(NOTHING_YET) if "Now plan." in str(call.messages[-1]) else STOP


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.worker
def test_a_task_file(wire: FakeWire, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tasks, output = tmp_path / "tasks.jsonl", tmp_path / "runs" / "web.jsonl"
    tasks.write_bytes(
        b'\xef\xbb\xbf{"task": "count", "id": "../a", "target_url": "http://shop.test/lamps"}\r\n'
        b'{"question": "sum", "answer": 7}\n{"task": 3}\nnot json\n'
    )
    with FakeChatServer(_answer) as chat:
        args = ["-i", str(tasks), "-o", str(output), "-m", chat.url]
        args += ["-u", f"web_env.server_url={wire.url}", "--target-url", "http://shop.test/"]
        assert main(args) == 3
        first, second = _rows(output)
        with output.open("ab") as file:
            file.write(b'{"id": "cut o')
        assert main(args) == 3
    assert output.read_bytes().endswith(b'\n{"id": "cut o\n')
    assert (first["id"], second["id"], second["answer"]) == ("../a", "task0001", 7)
    states = [r["session"]["steps"][0]["action"]["web_state_before"] for r in (first, second)]
    assert [s["target_url"] for s in states] == ["http://shop.test/lamps", "http://shop.test/"]
    assert (tmp_path / "runs" / "web" / "a" / "events.jsonl").is_file()
    said = capfd.readouterr()
    assert said.out.split() == ["42", "42"]
    assert f"error: {tasks}, line 3: field 'task' is missing" in said.err
    assert f"error: {tasks}, line 4: not JSON" in said.err
    assert not wire.browsers


@pytest.mark.worker
def test_one_task(wire: FakeWire, capfd: pytest.CaptureFixture[str]) -> None:
    with FakeChatServer(_answer) as chat:
        assert main(["-t", "count", "-m", chat.url, "-u", f"web_env={wire.url}"]) == 0
    assert capfd.readouterr().out == "42\n"


def test_a_run_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-t", "count", "-u", "web_env.server_url=127.0.0.1:9"]) == 1
    assert "nothing listens there; start one with" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], 2, "give --input or --task"),
        (["-i", "x.jsonl"], 2, "--input needs --output"),
        (["-i", "missing.jsonl", "-o", "o.jsonl"], 2, "missing.jsonl: cannot be read"),
        (["-t", "x", "-u", "web_env.servr_url=x"], 2, "did you mean 'server_url'"),
        (["-t", "x", "-c", "missing.yaml"], 2, "missing.yaml: cannot be read"),
        (["-t", "x", "--fast"], 2, "--fast"),
        (["-t", "x", "-o", "/dev/null/x.jsonl"], 4, "x.jsonl: cannot be"),
    ],
)
def test_bad_input_is_one_line(
    args: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(args) == code
    err = capfd.readouterr().err.strip()
    assert said in err and "\n" not in err and err.startswith("error: ")


def test_ids_are_unique_and_given_ones_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"task": "a", "id": 1}\n\n{"task": "b"}\n{"task": "c", "id": "1"}\n[1]\n')
    found = list(read_web_tasks(path))
    assert [t if isinstance(t, TaskFileError) else t.id for t in found][:2] == ["1", "task0001"]
    assert "line 4: the id '1' is there twice" in str(found[2])
    assert "line 5: not an object" in str(found[3])
