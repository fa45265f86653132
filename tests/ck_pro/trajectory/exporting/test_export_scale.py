"""Exports of big runs need at most 500 MB.

`CK_EXPORT_MB` is the size of the run: 10 by default, 1000 for the long form. `CK_EXPORT_TASKS=1`
(the default) writes it to one journal.
"""

from __future__ import annotations

import os
from pathlib import Path

import big_run
import pytest
from loaders import ending
from peaks import MEBIBYTE, peak_of_export

from ck_pro.trajectory.export import FORMATS

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.integration]

MEGABYTES = float(os.environ.get("CK_EXPORT_MB", "10"))
TASKS = int(os.environ.get("CK_EXPORT_TASKS", "1"))
OF_ROWS = 100 * MEBIBYTE
"""Memory of a parsed row of less than 16 MB, which is loaded as a whole."""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("big") / "run"
    calls = big_run.write_run(folder, MEGABYTES, TASKS)
    assert sum(big_run.journal_sizes(folder)) >= MEGABYTES * 1e6
    return folder, calls


@pytest.fixture(scope="module")
def big_rows(big: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run as rows, one per task."""
    out = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    check_peak("ckpro", peak_of_export("ckpro", big[0], out, timeout=3500))
    assert out.stat().st_size > MEGABYTES * 1e6
    return out


def check_peak(format_: str, peak: int, more: float = 0) -> None:
    """Check that a peak meets the requirement and hardly depends on the input."""
    arrow = 250 * MEBIBYTE if ending(format_) == "parquet" else 0  # Arrow itself and a row group
    assert peak < min(500e6, 60 * MEBIBYTE + arrow + more + MEGABYTES * 1e6 / 20)


def lines_of(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("of", ["journals", "rows"])
def test_a_big_run_is_exported_in_bounded_memory(
    big: tuple[Path, int], big_rows: Path, tmp_path: Path, format_: str, of: str
) -> None:
    run, calls = big
    source, more = (run, 0) if of == "journals" else (big_rows, OF_ROWS)
    out = tmp_path / f"o.{ending(format_)}"
    check_peak(format_, peak_of_export(format_, source, out, timeout=3500), more)
    if ending(format_) == "parquet":
        import pyarrow.parquet

        assert pyarrow.parquet.read_metadata(out).num_rows == calls
    elif format_ not in ("dpo", "kto", "sharegpt"):  # these use only some of the calls
        assert lines_of(out) == (TASKS if FORMATS[format_].whole_runs else calls)
    if format_ == "ckpro":
        assert out.stat().st_size == big_rows.stat().st_size
