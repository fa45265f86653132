"""An export's memory does not grow with its input: a larger input needs no more memory.

What libraries need for themselves differs from machine to machine, so that the difference is
looked at, and not the peak.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loaders import ending
from peaks import MEBIBYTE, peak_of_export
from sample_runs import data_url

from ck_pro.trajectory.export import FORMATS

pytestmark = [pytest.mark.slow, pytest.mark.long]
SMALL, BIG = 40, 160
"""Rows, of 1 MB each."""
ALLOWED = 40 * MEBIBYTE
"""A third of the difference in size."""


def write_rows(path: Path, count: int) -> Path:
    """Rows of 20 calls of 50 kB, two tries of each task."""
    image = {"type": "image_url", "image_url": {"url": data_url(7)}}
    with path.open("w") as file:
        for n in range(count):
            steps = []
            for k in range(20):
                text = f"task {n // 2}, step {k}: " + f"{n // 2:04d}{k:04d} " * 5500
                content = [{"type": "text", "text": text}, image]
                action = {"llm_input": [{"role": "user", "content": content}]}
                steps.append({"action": {**action, "llm_output": f"reply {n} {k}"}})
            row = {"id": n, "task": str(n // 2), "session": {"steps": steps}}
            file.write(json.dumps({**row, "eval": {"corr": n % 2}}) + "\n")
    return path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("big")
    return write_rows(folder / "small.jsonl", SMALL), write_rows(folder / "big.jsonl", BIG)


@pytest.mark.parametrize("format_", FORMATS)
def test_memory_does_not_grow(inputs: tuple[Path, Path], tmp_path: Path, format_: str) -> None:
    small, big = (
        peak_of_export(format_, path, tmp_path / f"{path.stem}.{ending(format_)}")
        for path in inputs
    )
    assert big - small < ALLOWED
    if format_ == "verl":
        import pyarrow.parquet

        meta = pyarrow.parquet.read_metadata(tmp_path / "big.parquet")
        assert meta.num_rows == 20 * BIG and meta.num_row_groups > 2
    elif format_ in ("sft", "dpo", "atif"):
        with (tmp_path / "big.jsonl").open("rb") as file:
            lines = sum(1 for _ in file)
        assert lines == {"sft": 20 * BIG, "dpo": 10 * BIG, "atif": BIG}[format_]


def test_choosing_the_best_tries_needs_no_more_memory(
    inputs: tuple[Path, Path], tmp_path: Path
) -> None:
    small, big = (
        peak_of_export("sft", path, tmp_path / path.name, "--best", "1") for path in inputs
    )
    assert big - small < ALLOWED


def test_the_memory_test_detects_growth(tmp_path: Path) -> None:
    """Check the test itself: a row that is loaded as a whole raises the peak."""
    small = peak_of_export("sft", write_rows(tmp_path / "s.jsonl", 1), tmp_path / "a.jsonl")
    with (tmp_path / "s.jsonl").open() as file:
        row = json.loads(file.readline())
    row["session"]["steps"] *= 12
    (tmp_path / "b.jsonl").write_text(json.dumps(row) + "\n")
    big = peak_of_export("sft", tmp_path / "b.jsonl", tmp_path / "c.jsonl")
    assert big - small > 15 * MEBIBYTE
