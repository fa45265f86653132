"""Run task files by the command line: tasks per minute and memory, for `collection.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from web_server.chromium.memory import tree_bytes

ROOT = Path(__file__).resolve().parent.parent
STEPS = 5
"""Number of steps of a task, with one model call each."""
_SAMPLE_SECONDS = 0.1


def write_tasks(path: Path, count: int, steps: int = STEPS) -> None:
    """Write a task file."""
    lines = (
        json.dumps({"id": f"t{n:03d}", "question": f"Count in {steps} steps.", "answer": steps - 1})
        for n in range(count)
    )
    path.write_text("\n".join(lines) + "\n")


def run_tasks(url: str, workers: int, count: int, latency: float) -> dict[str, Any]:
    """Run tasks with a number of workers.

    Returns:
        tasks per minute from the start of the first task to the end of the last; `ideal`, the share
        of the throughput without any cost but the model; the peak memory of all processes, shared
        pages counted once.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_tasks(folder / "tasks.jsonl", count)
        command = [sys.executable, "-m", "ck_main.main", "--plain"]
        command += ["-i", str(folder / "tasks.jsonl"), "-o", str(folder / "out.jsonl")]
        command += ["-m", f"{url}/v1", "-w", str(workers)]
        # one call per step, without a plan; without the web agent, which needs a browser
        command += ["-u", "{'templates': {'plan': None}, 'active_functions': ['stop']}"]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (folder / "log").open("wb") as log:
            runner = subprocess.Popen(command, env=environ, cwd=folder, stdout=log, stderr=log)
            peak = _peak_memory(runner)
        rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
        if runner.returncode != 0 or len(rows) != count:
            raise RuntimeError((folder / "log").read_text()[-2000:])
    times = [row["session"]["info"] for row in rows]
    seconds = max(t["end_time"] for t in times) - min(t["start_time"] for t in times)
    rounds = -(-count // workers)
    return {
        "tasks": count,
        "per_minute": 60 * count / seconds,
        "ideal": rounds * STEPS * latency / seconds,
        "megabytes": peak,
    }


def _peak_memory(runner: subprocess.Popen[bytes]) -> float:
    """Wait for a process and return the peak memory of it and its descendants in megabytes."""
    peak = 0.0
    ended = threading.Event()
    while runner.poll() is None:
        peak = max(peak, tree_bytes(runner.pid) / 2**20)
        ended.wait(_SAMPLE_SECONDS)
    return peak
