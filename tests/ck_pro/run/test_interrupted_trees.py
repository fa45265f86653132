"""Trees of agents, interrupted at a line of their journal, resume without repeating a call.

`CK_CUT_EVERY=1` interrupts at every line (minutes); the default is a selection of lines.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scripted_agents import code

from ck_pro import AgentSession, Journal, MultiStepAgent, Status, StopTool
from ck_pro.journal import EVENTS_FILE, read_events
from ck_pro.model import CallContext
from ck_pro.session import sessions_from_events
from ck_pro.testing import ScriptedLLM

EVERY = int(os.environ.get("CK_CUT_EVERY", "17"))

SPREAD = (
    "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(2) as pool:\n"
    "    found = list(pool.map({callee}, ['{task}-a', '{task}-b']))\n"
    "print(sorted(f['output'] for f in found))"
)


class Team:
    """Agents at several levels; each runs two of the next level at once, and the lowest pay."""

    def __init__(self, depth: int):
        self.paid: Counter[str] = Counter()
        self._lock = threading.Lock()
        model = ScriptedLLM(self._reply)

        def pay(name: str) -> str:
            """Pay."""
            with self._lock:
                self.paid[name] += 1
            return f"paid {name}"

        below: list[Any] = []
        for level in range(depth, -1, -1):
            tools = [StopTool(), *([pay] if level == depth else [])]
            agent = MultiStepAgent(name=f"a{level}", model=model, tools=tools, sub_agents=below)
            below = [agent]
        self.agent = agent
        self._depth = depth

    def _reply(self, messages: list[Any], context: CallContext) -> str:
        level, task = len(context.agent_path) - 1, context.task
        if context.step >= 1:
            return code(f"stop('{task} done')")
        if level < self._depth:
            return code(SPREAD.format(callee=f"a{level + 1}", task=task))
        return code(f"print(pay('{task}'))")


def started_payments(folder: Path) -> Counter[str]:
    """Return the payments that the journal recorded as started."""
    started = (e["data"] for e in read_events(folder) if e["kind"] == "started")
    return Counter(d["arguments"]["name"] for d in started if d["name"] == "pay")


def check_end(folder: Path, session: AgentSession, team: Team, before: Counter[str]) -> None:
    assert session.status is Status.DONE, session.message
    assert session.final_results == {"output": "t done", "log": ""}
    for name in team.paid:
        assert team.paid[name] == 1 and not before[name], f"{name} was paid twice"
    sessions = sessions_from_events(read_events(folder))
    assert json.dumps(sessions[session.id].to_dict()) == json.dumps(session.to_dict())
    assert all(s.final_results is not None for s in sessions.values())


@pytest.mark.worker
@pytest.mark.timeout(3600 if EVERY < 5 else 300)
@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_tree_resumes_and_completes(tmp_path: Path, depth: int) -> None:
    whole = tmp_path / "whole"
    team = Team(depth)
    with Journal(whole) as journal:
        session = team.agent.run("t", journal=journal, workdir=tmp_path / "w")
    check_end(whole, session, team, Counter())
    assert len(team.paid) == 2**depth
    lines = (whole / EVENTS_FILE).read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"kind":"session"' in line) + 1
    for count in range(first, len(lines), EVERY):
        folder, team = tmp_path / str(count), Team(depth)
        folder.mkdir()
        (folder / EVENTS_FILE).write_bytes(b"".join(lines[:count]) + b'{"kind": "ste')
        before = started_payments(folder)
        with Journal(folder) as journal:
            session = team.agent.resume(journal=journal, workdir=tmp_path / f"w{count}")
        check_end(folder, session, team, before)
        shutil.rmtree(folder)
