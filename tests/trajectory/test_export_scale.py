"""Exports of big runs within 500 MB. `CK_EXPORT_MB` says how big: 10 by default, 2000 for the
long form; `CK_EXPORT_TASKS=1` puts all of it into one journal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import big_run
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.integration]

MEGABYTES = float(os.environ.get("CK_EXPORT_MB", "10"))
TASKS = int(os.environ.get("CK_EXPORT_TASKS", "1"))
ALLOWED = 500 * 2**20
# of `getrusage` a process inherits what its parent, pytest, once had in memory
RUN = """
import re, sys
from ck_pro.trajectory.export import main
code = main(sys.argv[1:])
status = open("/proc/self/status").read()
print("peak", int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) * 1024)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("big") / "run"
    calls = big_run.write_run(folder, MEGABYTES, TASKS)
    assert sum(big_run.journal_sizes(folder)) >= MEGABYTES * 1e6
    return folder, calls


def export(format_: str, source: Path, out: Path) -> int:
    """Export in a process of its own; returns its peak memory in bytes."""
    command = [sys.executable, "-c", RUN, "-f", format_, "-i", str(source), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3500)
    no_rows = 1 if format_ == "dpo" else 0  # there may be no pair
    assert done.returncode in (0, no_rows), done.stdout + done.stderr
    peak = int(done.stdout.rpartition("peak ")[2])
    assert peak < ALLOWED
    print(f"{format_} of {source.name}: peak {peak / 2**20:.0f} MiB")
    return peak


def lines_of(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


@pytest.fixture(scope="module")
def big_rows(big: tuple[Path, int], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """The same run as rows: with one task, one row."""
    out = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    return out, export("ckpro", big[0], out)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_", ["sft", "dpo", "verl", "atif"])
def test_a_big_run(big: tuple[Path, int], tmp_path: Path, format_: str) -> None:
    run, calls = big
    out = tmp_path / ("o.parquet" if format_ == "verl" else "o.jsonl")
    peak = export(format_, run, out)
    if format_ == "verl":
        import pyarrow.parquet

        assert pyarrow.parquet.read_metadata(out).num_rows == calls
        return
    if format_ != "dpo":
        assert lines_of(out) == {"sft": calls, "atif": TASKS}[format_]
    # what is in memory is far less than the run, once that is more than the program itself
    assert peak < 100 * 2**20 + MEGABYTES * 1e6 / 4


@pytest.mark.timeout(3600)
def test_whole_runs_as_rows(big_rows: tuple[Path, int]) -> None:
    path, peak = big_rows
    assert lines_of(path) == TASKS and path.stat().st_size > MEGABYTES * 1e6
    assert peak < 100 * 2**20 + MEGABYTES * 1e6 / 4


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_", ["sft", "atif", "ckpro"])
def test_big_rows(
    big: tuple[Path, int], big_rows: tuple[Path, int], tmp_path: Path, format_: str
) -> None:
    out = tmp_path / "o.jsonl"
    peak = export(format_, big_rows[0], out)
    assert lines_of(out) == (big[1] if format_ == "sft" else TASKS)
    # a row is read at once up to 16 MB, which take some times that much when parsed
    assert peak < 200 * 2**20 + MEGABYTES * 1e6 / 4
    if format_ == "ckpro":
        assert out.stat().st_size == big_rows[0].stat().st_size
