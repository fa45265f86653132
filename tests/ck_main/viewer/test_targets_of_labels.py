"""Each model call that the viewer shows has one target, which names the same call in an export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_runs import make_agent, make_tried_agent, run_tasks

from ck_main.runner.choosing import TryOptions
from ck_main.runner.run_options import RunOptions
from ck_main.viewer.run_labels import Place, target_of
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.trajectory.labels.label import Target
from ck_pro.trajectory.labels.label_set import facts_of
from ck_pro.trajectory.reading.attempts import tries_of
from ck_pro.trajectory.reading.model_calls import Call, each_call
from ck_pro.trajectory.reading.sources import Record, read_records

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with screenshots, sub-agents, failures, an end phase, and several tries of a task."""
    folder = tmp_path_factory.mktemp("targets")
    agent = make_agent()
    agent.templates = {**agent.templates, "end": "agent_end"}
    run_tasks(agent, folder / "one.jsonl", ["capital", "sum"])
    options = RunOptions(tries=TryOptions(tries=3, until="em"))
    run_tasks(make_tried_agent(right=3), folder / "tries.jsonl", ["sum"], options)
    return folder


def exported(path: Path) -> list[Call]:
    records = [r for r in read_records([path]) if isinstance(r, Record)]
    found = [c for r in records for t in tries_of(r.where, r.row) for c in each_call(t)]
    return [c if isinstance(c, Call) else c.call for c in found]


def shown(path: Path) -> Iterator[tuple[Target, str, Any]]:
    """Yield target, mark and text of all model calls in the viewer, of all tries."""
    library = Library(sources_of([path]))
    library.scan()
    entries = {e.key: e for entry in library.entries() for e in library.parts(entry)}
    for entry in entries.values():
        with library.opened(entry) as reader:
            for session in reader.outline.sessions.values():
                for step in session.steps:
                    for call in step.model_calls:
                        target = target_of(reader, entry, Place(session.sid, step.i, call.n))
                        data = reader.call_event(call)["data"]
                        yield *target, data["output"]


@pytest.mark.parametrize("name", ["one.jsonl", "one", "tries.jsonl", "tries"])
def test_every_call_of_the_viewer_is_one_call_of_the_export(runs: Path, name: str) -> None:
    calls = exported(runs / name)
    hits: dict[int, str] = {}
    for target, mark, output in shown(runs / name):
        found = [n for n, c in enumerate(calls) if target.matches(facts_of(c))]
        if not found and name == "tries.jsonl":
            continue  # the tries before the last are in the journals alone
        assert len(found) == 1 and found[0] not in hits
        assert calls[found[0]].recorded_mark == mark and (calls[found[0]].output or "") == output
        hits[found[0]] = output
    assert len(hits) == len(calls) > 0
