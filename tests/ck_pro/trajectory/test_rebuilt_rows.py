"""A row rebuilt from its journal has the same bytes, for random runs.

The runs are killed, forked and tried several times. They have tool calls, sub-agents, images and
arbitrary text.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from sample_runs import call, calls, make_agent, read_lines, run_tasks

from ck_main.output.row import row_from_events, row_line
from ck_main.runner.choosing import TryOptions
from ck_main.runner.run_options import RunOptions
from ck_pro import MultiStepAgent
from ck_pro.journal import EVENTS_FILE, compress_journal, journal_folders, read_events
from ck_pro.model import CallContext, Reply
from ck_pro.testing import ScriptedLLM
from ck_pro.trajectory.fork import fork_run
from ck_pro.trajectory.reading.big_json import plain
from ck_pro.trajectory.reading.sources import Record, read_records

pytestmark = pytest.mark.integration
RUNS = int(os.environ.get("CK_REBUILT_RUNS", "6"))
"""Number of random runs to kill, resume, fork and rebuild."""
ODD = ["42", "", "né\U0001f600", "\ud800 half", "nul \x00 here", "blob:x", "<image>", "x" * 3000]


def _agent(seed: int) -> MultiStepAgent:
    """An agent whose model gives random replies, equal for equal places in a run."""

    def say(messages: list[dict[str, Any]], context: CallContext) -> Any:
        rng = random.Random(f"{seed} {context.agent_path} {context.step} {len(messages)}")
        odd = rng.choice(ODD)
        tool = "look" if context.agent_path[-1] == "web_agent" else "add"
        values: dict[str, Any] = {"where": odd} if tool == "look" else {"a": rng.random(), "b": 1}
        return rng.choice(
            [
                Reply(odd or "42", reasoning=odd),
                call(tool, **values),
                call("nothing_of_that_name", x=odd),
                calls((tool, values), (tool, {"where": [1]})),
                calls(("web_agent", {"task": odd or "go"}), (tool, values)),
            ]
        )

    agent = make_agent()
    agent.model = ScriptedLLM(replies=say)
    for sub in agent.sub_agents:
        sub.model = agent.model
    agent.max_steps = 4
    return agent


def _check(output: Path) -> None:
    """Compare the row of the only task with the row rebuilt from its journals."""
    (line,) = output.read_bytes().splitlines(keepends=True)
    (row,) = read_lines(output)
    made = {}
    for folder in journal_folders(output.with_suffix("")):
        rebuilt = row_from_events(read_events(folder))
        made[rebuilt["session"]["id"]] = rebuilt
        (record,) = read_records([folder])
        assert isinstance(record, Record)
        assert plain(record.row["session"]) == rebuilt["session"]
    earlier = row.pop("previous_failed_sessions", [])
    if not earlier:
        assert row_line(made[row["session"]["id"]]) == line
    for session in [row["session"], *(e.get("session", e) for e in earlier)]:
        assert made[session["id"]]["session"] == session
    assert len(made) == 1 + len(earlier)


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_row_can_be_rebuilt_from_its_journal(tmp_path: Path, seed: int) -> None:
    tries, cut = (1, 1, 3)[seed % 3], random.Random(seed).random()
    output = tmp_path / "rows.jsonl"
    options = RunOptions(tries=TryOptions(tries=tries, until="em") if tries > 1 else None)
    run_tasks(_agent(seed), output, ["sum"], options)
    _check(output)
    journals = journal_folders(output.with_suffix(""))
    last = journals[-1]
    _kill_and_go_on(output, last, cut, seed, options)
    if tries == 1:
        _fork_and_go_on(output, last, seed)
        compress_journal(last)
        _check(output)


def _kill_and_go_on(output: Path, journal: Path, cut: float, seed: int, options: Any) -> None:
    """Truncate the journal of the last try and remove its row, as a kill would."""
    events = (journal / EVENTS_FILE).read_bytes()
    (journal / EVENTS_FILE).write_bytes(events[: int(len(events) * cut)])
    output.unlink()
    run_tasks(_agent(seed), output, ["sum"], options)
    _check(output)


def _fork_and_go_on(output: Path, journal: Path, seed: int) -> None:
    (row,) = read_lines(output)
    at = random.Random(seed).randrange(len(row["session"]["steps"]))
    forked = output.with_name("fork.jsonl")
    shutil.rmtree(forked.with_suffix(""), ignore_errors=True)
    fork_run(journal, at, forked.with_suffix("") / "sum")
    run_tasks(_agent(seed + 1), forked, ["sum"])
    _check(forked)
