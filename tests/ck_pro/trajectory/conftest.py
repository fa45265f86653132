"""Sample runs, created once per session."""

from __future__ import annotations

import pytest
from sample_runs import Samples, make_agent, run_tasks


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    folder = tmp_path_factory.mktemp("runs")
    names = ["capital", "sum"]
    return Samples(
        good=run_tasks(make_agent(), folder / "good.jsonl", names),
        wrong=run_tasks(make_agent(wrong=True), folder / "wrong.jsonl", names),
        plain=run_tasks(make_agent(images=False), folder / "plain.jsonl", names),
    )
