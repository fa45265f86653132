"""The demo as its user runs it: real Chromium, real workers, a recorded model."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ck_main.demo import DEMO, demo_agent
from ck_main.demo_site import DemoSite
from ck_pro.config import iter_nested
from ck_pro.model import LLM
from ck_pro.model.recordings.recording import Recording
from ck_pro.session import Status, StopReason
from ck_pro.session.goals import Goal
from ck_pro.testing import CONTEXT_HEADERS, ChatCall, FakeChatServer, Fault, recorded_replies

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = DEMO.parent.parent
TASKS = [json.loads(line) for line in (DEMO / "tasks.jsonl").read_text().splitlines()]


def demo(folder: Path, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the demo's command in `folder`."""
    environ = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-m", "ck_main.demo", "--plain", *args],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=170,
    )


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs/demo.jsonl").read_text().splitlines()]


def sessions_of(session: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield session
    for step in session["steps"]:
        for sub in step["action"].get("sub_sessions", ()):
            yield from sessions_of(sub)


def test_every_task_is_right_by_real_browser_steps(tmp_path: Path) -> None:
    done = demo(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "is a recording" in done.stdout and "--model gpt:NAME" in done.stdout
    rows = rows_of(tmp_path)
    assert [r["id"] for r in rows] == [t["id"] for t in TASKS]
    for row, task in zip(rows, TASKS, strict=True):
        assert row["eval"] == {"pred": task["answer"], "gold": task["answer"], "corr": 1}
        assert task["id"] in done.stdout
    by_id = {r["id"]: r["session"] for r in rows}
    for name, session in by_id.items():
        browsers = [s for s in sessions_of(session) if s["info"]["agent"] == "web_agent"]
        pages = [s["action"]["web_state_before"] for b in browsers for s in b["steps"]]
        assert all("[1] RootWebArea '" in json.dumps(p) for p in pages)
        assert bool(pages) == (name != "computation")
    assert len(list(sessions_of(by_id["compare-two"]))) == 3
    assert {p.name for p in tmp_path.iterdir()} == {"runs"}


def test_a_changed_prompt_fails_and_the_message_names_the_difference() -> None:
    agent = demo_agent("http://127.0.0.1:9").updated({"goals": [Goal("polite", "Say please.")]})
    question = next(t["question"] for t in TASKS if t["id"] == "computation")
    session = agent.run(question)
    assert session.stop_reason is StopReason.MODEL_FAILURE
    assert "the prompt has changed" in session.message
    assert "+- polite: Say please." in session.message


def test_a_person_completes_a_task_through_a_pipe(tmp_path: Path) -> None:
    def reply(*lines: str) -> str:
        return "\n".join(["```python", *lines, "```", "/send", ""])

    typed = [
        reply("r = web_agent('Who leads the calibration laboratory?', '{{origin}}/')", "print(r)"),
        "/show\n" + reply("click(id={{link 'About'}})"),
        reply("stop('2009', 'read on the page About')"),
        reply("stop(r['output'], r['log'])"),
    ]
    done = demo(tmp_path, "--ids", "navigate", "--model", "manual", stdin="".join(typed))
    assert done.returncode == 0, done.stderr
    (row,) = rows_of(tmp_path)
    assert row["eval"]["corr"] == 1
    assert row["session"]["info"]["call_stat"]["__ALL__"]["llm_call"] == 4
    assert re.search(r"\[\d+\] link 'About'", done.stderr), "the prompt was not shown"


class Faulty:
    """The recording behind a real endpoint that fails now and then, each fault once a call."""

    FAULTS = (
        Fault(status=429, headers={"Retry-After": "0"}),
        Fault(status=500),
        Fault(drop="before"),
        Fault(drop="body"),
        Fault(status=503, headers={"Retry-After": "0"}),
    )

    def __init__(self, path: Path):
        self._answer = recorded_replies(path)
        self._lock = threading.Lock()
        self._failed: set[str] = set()
        self.faults = 0

    def __call__(self, call: ChatCall) -> str | Fault:
        key = json.dumps(call.body["messages"]) + str(call.headers.get("X-CK-Task"))
        with self._lock:
            if key not in self._failed and len(self._failed) % 2 == 0:
                self._failed.add(key)
                self.faults += 1
                return self.FAULTS[self.faults % len(self.FAULTS)]
            self._failed.add(key)
        return self._answer(call)


@pytest.mark.long
def test_the_same_answers_from_a_real_endpoint_with_faults(tmp_path: Path) -> None:
    script = Faulty(DEMO / "replies.jsonl")
    with FakeChatServer(script) as server, DemoSite() as site:
        agent = demo_agent(site.origin, model=server.url)
        for _, llm in iter_nested(agent, LLM):
            llm.headers, llm.wait = dict(CONTEXT_HEADERS), no_wait
        for task in TASKS:
            question = task["question"].replace("{site}", site.origin)
            session = agent.run(question, workdir=tmp_path / task["id"])
            assert session.status is Status.DONE, session.message
            assert session.final_results["output"] == task["answer"]
    assert script.faults >= 20


def no_wait(seconds: float, cancel: threading.Event | None) -> None:
    """Instead of waiting between attempts."""


def test_the_recording_names_elements_by_role_and_name_only() -> None:
    recording = Recording.load(DEMO / "replies.jsonl")
    for row in recording.replies.values():
        assert not re.search(r"\b(click|type|select)\((id=)?\d", row["reply"]), row["reply"]
        assert "127.0.0.1" not in row["reply"]
        assert row["instructions"] in recording.texts
