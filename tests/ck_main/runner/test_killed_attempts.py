"""Tries and reruns as a process that is interrupted or killed, with a real agent and a server that
plays its model: the same command continues, and nothing is lost, doubled or done twice."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from main_command import PLAN, write_lines

from ck_pro.testing import FakeChatServer
from ck_pro.testing.chat_server import ChatCall, Fault

pytestmark = [pytest.mark.worker, pytest.mark.slow]
PATIENCE = 900.0  # seconds; only a hang takes so long


class Model:
    """A model whose reply depends on the seed; it hangs at chosen calls until it is released."""

    def __init__(self) -> None:
        self.hang_at: tuple[str, int | None] | None = None
        self.reached, self.release = threading.Event(), threading.Event()
        self.answers: dict[int | None, str] = {}
        self.asked: list[tuple[str, int | None]] = []
        self.lock = threading.Lock()

    def __call__(self, call: ChatCall) -> Any:
        said = str(call.messages)
        name = next(n for n in ("task-a", "task-b", "task-c") if n in said)
        seed = call.body.get("seed")
        if "Verdict: right" in said:
            return "Reason. Verdict: " + ("wrong" if "bad" in said else "right")
        if "remembers nothing" in said:
            return f"Think of {name} again."
        if "Now plan" in str(call.messages[-1]):
            return PLAN
        with self.lock:
            self.asked.append((name, seed))
        if self.hang_at == (name, seed):
            self.reached.set()
            self.release.wait(PATIENCE)
            return Fault(drop="before")
        return f"Thought: x.\n```python\nstop({self.answers.get(seed, 'good')!r})\n```"


def command(folder: Path, url: str, *more: object) -> list[str]:
    names = ("task-a", "task-b", "task-c")
    tasks = [{"id": n, "question": n, "answer": "good"} for n in names]
    files = ["-i", write_lines(folder / "tasks.jsonl", tasks), "-o", folder / "out.jsonl"]
    args = [*files, "-m", f"{url}/v1", *more]
    return [sys.executable, "-m", "ck_main.main", *[str(a) for a in args]]


def interrupted(model: Model, args: list[str], number: signal.Signals) -> int:
    """Run until the model hangs, send a signal, and wait."""
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not model.reached.wait(0.1):
            assert process.poll() is None, process.communicate()
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        model.release.set()
        process.kill()
        process.communicate()
    assert "Traceback" not in err
    model.hang_at = None
    return process.returncode


def finished(args: list[str]) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(args, capture_output=True, text=True, timeout=PATIENCE)
    assert "Traceback" not in done.stderr
    return done


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({r["id"] for r in rows}) == len(rows)
    return {r["id"]: r for r in rows}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_tries_are_resumed(tmp_path: Path, number: signal.Signals) -> None:
    model = Model()
    model.answers, model.hang_at = {1: "bad", 2: "bad"}, ("task-b", 3)
    with FakeChatServer(model) as chat:
        how = ["--until", "llm_judge", "--reflect", "--seeds", "1,2,3", "--retries", 0]
        args = command(tmp_path, chat.url, *how)
        code = interrupted(model, args, number)
        assert code == (130 if number is signal.SIGINT else -9)
        assert set(rows_of(tmp_path / "out.jsonl")) == {"task-a"}
        model.asked.clear()
        done = finished(args)
    assert done.returncode == 0, done.stderr
    assert ("task-b", 1) not in model.asked and ("task-b", 2) not in model.asked
    assert model.asked.count(("task-b", 3)) == 1 and "task-b, try 3 of 3: 'good'" in done.stderr
    rows = rows_of(tmp_path / "out.jsonl")
    assert set(rows) == {"task-a", "task-b", "task-c"}
    for name, row in rows.items():
        assert row["sel_idx"] == 2 and row["eval"]["judge"] == 1 and row["eval"]["corr"] == 1
        assert [c["seed"] for c in row["sel_cands"]] == [1, 2, 3]
        assert row["session"]["info"]["seed"] == 3  # of the settings that the model got
        assert row["feedback"].count(f"Think of {name} again.") == 2
        assert len(row["previous_failed_sessions"]) == 2
        assert row["session"]["info"]["call_stat"]["judge"]["__ALL__"]["llm_call"] == 1


def test_a_killed_rerun_is_resumed(tmp_path: Path) -> None:
    model = Model()
    model.answers = {None: "bad"}
    with FakeChatServer(model) as chat:
        assert finished(command(tmp_path, chat.url)).returncode == 0
        before = rows_of(tmp_path / "out.jsonl")
        model.hang_at = ("task-b", None)
        args = command(tmp_path, chat.url, "--rerun", "wrong", "--order", "input")
        assert interrupted(model, args, signal.SIGKILL) == -9
        assert set(rows_of(tmp_path / "out.jsonl")) == {"task-a"}
        assert rows_of(tmp_path / "out.superseded.jsonl") == before
        model.answers = {}
        model.asked.clear()
        done = finished(args)
    assert done.returncode == 0 and "2 tasks of an earlier --rerun have no row yet" in done.stderr
    assert sorted(set(model.asked)) == [("task-b", None), ("task-c", None)]
    after = rows_of(tmp_path / "out.jsonl")
    assert list(after) == ["task-a", "task-b", "task-c"]
    assert [r["eval"]["corr"] for r in after.values()] == [0, 1, 1]
    assert rows_of(tmp_path / "out.superseded.jsonl") == before


def test_a_limit_of_the_run_over_several_commands(tmp_path: Path) -> None:
    with FakeChatServer(Model()) as chat:
        args = command(tmp_path, chat.url, "--run-max-steps", 1, "--run-max-seconds", 1000)
        codes = [finished(args).returncode for _ in range(3)]
    assert codes == [7, 7, 0] and len(rows_of(tmp_path / "out.jsonl")) == 3
