"""An export's memory does not grow with its input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sample_runs import data_url

pytestmark = [pytest.mark.slow, pytest.mark.long]

MEGABYTE = 2**20
RUN = """
import resource, sys
limit = int(sys.argv[1])
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from ck_pro.trajectory.export import main
code = main(sys.argv[2:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 MB of rows, 1 MB each: 20 calls of 50 kB, two tries of each task."""
    path = tmp_path_factory.mktemp("big") / "rows.jsonl"
    image = {"type": "image_url", "image_url": {"url": data_url(7)}}
    with path.open("w") as file:
        for n in range(200):
            steps = []
            for k in range(20):
                text = f"task {n // 2}, step {k}: " + f"{n // 2:04d}{k:04d} " * 5500
                content = [{"type": "text", "text": text}, image]
                action = {"llm_input": [{"role": "user", "content": content}]}
                steps.append({"action": {**action, "llm_output": f"reply {n} {k}"}})
            row = {"id": n, "task": str(n // 2), "session": {"steps": steps}}
            file.write(json.dumps({**row, "eval": {"corr": n % 2}}) + "\n")
    assert path.stat().st_size > 190_000_000
    return path


def run(limit: int, *args: object) -> int:
    """Export in a process of its own; returns its peak memory in bytes."""
    command = [sys.executable, "-c", RUN, str(limit), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.rpartition("peak ")[2])


@pytest.mark.parametrize("format_", ["sft", "dpo", "atif"])
def test_json(big: Path, tmp_path: Path, format_: str) -> None:
    out = tmp_path / "o.jsonl"
    run(300 * MEGABYTE, "-f", format_, "-i", big, "-o", out)
    with out.open("rb") as file:
        lines = sum(1 for _ in file)
    assert lines == {"sft": 4000, "dpo": 2000, "atif": 200}[format_]
    out.unlink()


def test_parquet(big: Path, tmp_path: Path) -> None:
    # Arrow reserves more addresses than it uses, so what it used is measured instead
    out = tmp_path / "o.parquet"
    assert run(0, "-f", "verl", "-i", big, "-o", out, "--best", 1) < 500 * MEGABYTE
    import pyarrow.parquet

    meta = pyarrow.parquet.read_metadata(out)
    assert meta.num_rows == 2000 and meta.num_row_groups > 2


def test_the_limit_would_be_felt(big: Path) -> None:
    """The test's own check: reading the file at once does not fit."""
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({300 * MEGABYTE},) * 2)\n"
        "try:\n    rows = open(sys.argv[1], 'rb').read().split(b'x') * 2\n"
        "except MemoryError:\n    print('felt')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(big)], capture_output=True, text=True)
    assert done.stdout == "felt\n", done.stderr
