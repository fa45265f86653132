"""A run that is told to stop while an agent of function calls has a command under way."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ck_pro import AgentSession, Journal, MultiStepAgent, Status, StopReason
from ck_pro.journal import read_events
from ck_pro.model import Reply
from ck_pro.testing import ScriptedLLM

pytestmark = pytest.mark.worker


def stopped_during(command: str, folder: Path) -> AgentSession:
    """Run an agent whose first call is this command, and tell it to stop as the command begins."""
    cancel = threading.Event()

    def watch(event: dict[str, Any]) -> None:
        if event["kind"] == "call_ended":  # what the call gave is done by the worker now
            cancel.set()

    arguments = json.dumps({"command": command})
    call = {"id": "1", "function": {"name": "run_command", "arguments": arguments}}
    model = ScriptedLLM([Reply("", tool_calls=[call])] * 2)
    agent = MultiStepAgent(model=model, language="function_calls", tools=["run_command"])
    with Journal(folder) as journal:
        session: AgentSession = agent.run("Do.", journal=journal, cancel=cancel, on_event=watch)
    assert (session.status, session.stop_reason) == (Status.IN_PROGRESS, StopReason.CANCELLED)
    assert len(session.steps) == 1
    return session


def test_it_may_finish_as_code_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ck_pro.run.run._GRACE_SECONDS", 600.0)
    session = stopped_during("echo finished", tmp_path)
    assert "finished" in session.steps[0]["action"]["observation"]


def test_it_is_killed_in_the_end_and_its_step_stays_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ck_pro.run.run._GRACE_SECONDS", 0.0)
    session = stopped_during("sleep 7100", tmp_path)
    assert session.steps[0]["action"]["observation"] == ""
    assert "observation" not in {e["kind"] for e in read_events(tmp_path)}
