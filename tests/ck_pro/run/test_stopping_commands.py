"""A cancel while an agent with function calls runs a command."""

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
    """Run an agent that first calls this command, and cancel the run when the command starts."""
    cancel = threading.Event()

    def watch(event: dict[str, Any]) -> None:
        if event["kind"] == "call_ended":  # the worker now runs the command
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


def test_a_running_command_may_finish_after_a_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ck_pro.run.run._GRACE_SECONDS", 600.0)
    session = stopped_during("echo finished", tmp_path)
    assert "finished" in session.steps[0]["action"]["observation"]


def test_a_long_command_is_killed_and_its_step_stays_in_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ck_pro.run.run._GRACE_SECONDS", 0.0)
    session = stopped_during("sleep 7100", tmp_path)
    assert session.steps[0]["action"]["observation"] == ""
    assert "observation" not in {e["kind"] for e in read_events(tmp_path)}
