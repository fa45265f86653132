"""Sample runs, made once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from sample_runs import make_agent, run_tasks


@dataclass(frozen=True)
class Samples:
    """Files of rows; beside each the folder of its journals, of the same name without ending."""

    good: Path
    wrong: Path
    plain: Path
    """Without images."""

    def journals(self, rows: Path) -> Path:
        return rows.with_suffix("")


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    folder = tmp_path_factory.mktemp("runs")
    names = ["capital", "sum"]
    return Samples(
        good=run_tasks(make_agent(), folder / "good.jsonl", names),
        wrong=run_tasks(make_agent(wrong=True), folder / "wrong.jsonl", names),
        plain=run_tasks(make_agent(images=False), folder / "plain.jsonl", names),
    )
