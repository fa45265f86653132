"""Compare the runner on Ray with the runner on threads, for `collection.py --only ray`."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collection_tasks import STEPS, write_tasks

from ck_main.agent import CKAgent
from ck_main.cluster.node import Desk
from ck_main.cluster.scale import RayRunner
from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task, read_tasks

ROW_BYTES = 100_000


class Silent:
    """A watcher without output."""

    def started(self, task: Task) -> None: ...
    def event(self, task_id: str, event: dict[str, Any]) -> None: ...
    def ended(self, outcome: Outcome) -> None: ...
    def note(self, text: str) -> None: ...


def run_with(make: Callable[..., TaskRunner], url: str, workers: int, count: int) -> dict[str, Any]:
    """Run tasks. Returns the total seconds, and those from the first start to the last end."""
    settings = {"templates": {"plan": None}, "active_functions": ["stop"]}
    agent = CKAgent(**settings, model=f"{url}/v1")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_tasks(folder / "tasks.jsonl", count)
        tasks = (t for t in read_tasks(folder / "tasks.jsonl") if isinstance(t, Task))
        with RowFile(folder / "out.jsonl") as rows:
            began = time.monotonic()
            make(agent, rows, RunOptions(workers=workers), Silent()).run(tasks)
            whole = time.monotonic() - began
        infos = [
            json.loads(line)["session"]["info"]
            for line in (folder / "out.jsonl").read_text().splitlines()
        ]
    span = max(i["end_time"] for i in infos) - min(i["start_time"] for i in infos)
    return {"whole": whole, "span": span}


def ray_part(url: str, latency: float, *, quick: bool) -> dict[str, Any]:
    """Measure tasks per minute on Ray and on threads, and rows per second of the desk."""
    workers, count = 4, 8 if quick else 24
    ideal = -(-count // workers) * STEPS * latency
    found: dict[str, list[dict[str, Any]]] = {"threads": [], "ray": []}
    for _ in range(1 if quick else 3):
        found["threads"].append(run_with(TaskRunner, url, workers, count))
        found["ray"].append(
            run_with(lambda *a: RayRunner(*a, address="local"), url, workers, count)
        )
    out: dict[str, Any] = {"workers": workers, "tasks": count}
    for name, results in found.items():
        span = statistics.median(r["span"] for r in results)
        start = statistics.median(r["whole"] - r["span"] for r in results)
        out[name] = {
            "per_minute": round(60 * count / span, 1),
            "ideal": round(ideal / span, 3),
            "start_and_end_seconds": round(start, 2),
        }
    out["desk_rows_per_second"] = round(desk_rate(50 if quick else 300), 1)
    return out


def desk_rate(count: int) -> float:
    """Return the rows of about 100 KB that a desk appends and syncs to the disk per second."""
    import ray

    info = {"status": "done", "call_stat": {"__ALL__": {"total_tokens": 0}}}
    row = {
        "task": "x" * ROW_BYTES,
        "eval": {"pred": "", "gold": None, "corr": None},
        "session": {"info": info, "steps": []},
    }
    with tempfile.TemporaryDirectory() as made:
        ray.init(address="local", include_dashboard=False, log_to_driver=False)
        try:
            desk = ray.remote(Desk).options(num_cpus=0).remote(Path(made) / "out.jsonl")
            ray.get(desk.has.remote("none"))
            began = time.monotonic()
            ray.get([desk.commit.remote({**row, "id": str(n)}) for n in range(count)])
            return count / (time.monotonic() - began)
        finally:
            ray.shutdown()
