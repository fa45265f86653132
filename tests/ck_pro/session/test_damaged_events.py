"""Events of a damaged journal: one clear error for every reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ck_pro import Journal, MultiStepAgent, StopTool
from ck_pro.exceptions import JournalError
from ck_pro.journal import EVENTS_FILE
from ck_pro.json_lines import json_line
from ck_pro.session import sessions_from_events
from ck_pro.testing import ScriptedLLM

START = {"kind": "session", "sid": "a", "time": 1.0, "data": {"task": "t"}}


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "session", "sid": "a", "data": {"task": "t"}},
        {"kind": "model_call", "sid": "a", "i": 0, "data": {}},
        {"kind": "status", "sid": "a", "data": []},
        {"kind": "step"},
        None,
    ],
)
def test_a_damaged_event_is_a_journal_error(event: Any, tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="a damaged event"):
        sessions_from_events([START, event])
    if event is None:
        return
    (tmp_path / EVENTS_FILE).write_bytes(b"".join(json_line(e) for e in (START, event)))
    agent = MultiStepAgent(model=ScriptedLLM([]), tools=[StopTool()])
    with Journal(tmp_path) as journal, pytest.raises(JournalError, match="damaged"):
        agent.resume(journal=journal, workdir=tmp_path / "work")
