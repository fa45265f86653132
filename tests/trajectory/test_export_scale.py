"""Exports of big runs within 500 MB. `CK_EXPORT_MB` says how big: 10 by default, 2000 for the
long form; `CK_EXPORT_TASKS=1` puts all of it into one journal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import big_run
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.integration]

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


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_", ["sft", "verl"])
def test_a_big_run(big: tuple[Path, int], tmp_path: Path, format_: str) -> None:
    run, calls = big
    out = tmp_path / ("o.parquet" if format_ == "verl" else "o.jsonl")
    command = [sys.executable, "-c", RUN, "-f", format_, "-i", str(run), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3500)
    assert done.returncode == 0, done.stdout + done.stderr
    peak = int(done.stdout.rpartition("peak ")[2])
    assert peak < ALLOWED
    if format_ == "sft":
        with out.open("rb") as file:
            assert sum(1 for _ in file) == calls
        # what is in memory is far less than the run, once that is more than the program itself
        assert peak < 100 * 2**20 + MEGABYTES * 1e6 / 4
    else:
        import pyarrow.parquet

        assert pyarrow.parquet.read_metadata(out).num_rows == calls
    print(f"{format_}: peak {peak / 2**20:.0f} MiB")
