"""Measure the cost of collecting trajectories without the model: throughput, memory, storage.

    python benchmarks/collection.py [--quick] [--json FILE] [--only steps,peer,sizes,tasks,ray]

The model is a separate process that answers over HTTP after a fixed time. Contenders take turns in
one run. Prints medians, ratios, and the targets of the design. See README.md. Linux only, because
memory is read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from collection_model import model_process  # noqa: E402
from collection_steps import journal_sizes, overhead  # noqa: E402
from collection_tasks import STEPS, run_tasks  # noqa: E402

LATENCY = 0.2
"""Seconds of a model call, for the throughput."""
WORKERS = (1, 2, 4, 8, 16)
SIZES = (10, 100, 300, 1000)
TARGETS = {"flushed": 5.0, "fsync": 15.0}
"""Milliseconds per step."""
FLAT = 1.3
"""Limit for the ratio of step 300 to step 10 in a flat series."""
DEFAULT_PARTS = ("steps", "peer", "sizes", "tasks")


def steps_part(quick: bool) -> dict[str, Any]:
    """Measure the overhead per step, flushed and with fsync, and its growth."""
    with model_process(0.0) as url:
        found = overhead(1 if quick else 5, 115 if quick else 300, url)
        if not quick:
            found["long"] = overhead(1, 1000, url)
    return found


def sizes_part(quick: bool) -> dict[str, Any]:
    """Measure the size of journals and of one JSON line with all prompts."""
    found = {}
    for steps in SIZES[:2] if quick else SIZES:
        with tempfile.TemporaryDirectory() as made:
            found[str(steps)] = journal_sizes(steps, Path(made))
    return found


def tasks_part(quick: bool) -> dict[str, Any]:
    """Measure tasks per minute and memory by number of workers."""
    rounds, per_worker = (1, 1) if quick else (3, 3)
    found: dict[int, list[dict[str, Any]]] = {n: [] for n in WORKERS}
    with model_process(LATENCY) as url:
        for _ in range(rounds):
            for workers in WORKERS:
                found[workers].append(run_tasks(url, workers, workers * per_worker, LATENCY))
    out: dict[str, Any] = {}
    for workers, results in found.items():
        out[str(workers)] = {
            key: round(statistics.median(r[key] for r in results), 3) for key in results[0]
        }
    first, last = out[str(WORKERS[0])], out[str(WORKERS[-1])]
    more = last["megabytes"] - first["megabytes"]
    out["megabytes_per_worker"] = round(more / (WORKERS[-1] - WORKERS[0]), 1)
    return out


def peer_part(quick: bool) -> dict[str, Any]:
    """Compare with the loop of smolagents; returns `missing` if it is not installed."""
    try:
        from collection_peer import peer_part
    except ImportError as e:
        return {"missing": f'{e}; pip install "ck-pro[bench]"'}
    return peer_part(quick=quick)


def show_peer(found: dict[str, Any]) -> None:
    """Print the overhead of both loops."""
    if "missing" in found:
        print(f"Peer not measured: {found['missing']}\n")
        return
    print("Overhead of a step, and of a loop without journal and isolation, ms")
    rows = [[name, *(f"{row[n]:.2f}" for n in row)] for name, row in found.items()]
    table(["", *(f"step {n}" for n in next(iter(found.values())))], rows)


def ray_part(quick: bool) -> dict[str, Any]:
    """Compare the runner on Ray (extra `ray`) with threads."""
    from collection_ray import ray_part

    with model_process(LATENCY) as url:
        return ray_part(url, LATENCY, quick=quick)


def show_ray(found: dict[str, Any]) -> None:
    """Print the throughput on Ray and on threads."""
    print(f"{found['tasks']} such tasks by {found['workers']} workers, on one machine")
    head = ["", "tasks / minute", "of the ideal", "start and end, s"]
    rows = []
    for name in ("threads", "ray"):
        row = found[name]
        share, around = f"{row['ideal']:.0%}", f"{row['start_and_end_seconds']:.1f}"
        rows.append([name, f"{row['per_minute']:.0f}", share, around])
    table(head, rows)
    print(f"rows of 100 KB that the desk stores per second: {found['desk_rows_per_second']:.0f}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table."""
    first = max(16, *(len(str(row[0])) for row in rows))
    for row in [head, *rows]:
        print("  ".join([f"{row[0]:>{first}}", *(f"{cell:>16}" for cell in row[1:])]))
    print()


def show_steps(found: dict[str, Any]) -> None:
    """Print the overhead: medians around steps, growth, verdict."""
    print(f"Overhead of a step, ms (its code alone: {found['code_ms']:.2f})")
    rows = []
    for name, target in TARGETS.items():
        times = {**found.get("long", {}).get(name, {}), **found[name]}
        times.pop(20, None)  # for the comparison with a peer
        first, last = times[10], times[max(found[name])]
        flat = "flat" if last <= FLAT * first else "GROWS"
        verdict = "met" if max(first, last) <= target else "MISSED"
        shown = [f"{times[n]:.2f}" for n in sorted(times)]
        rows.append([name, *shown, f"{last / first:.2f} x: {flat}", f"{target:g} ms: {verdict}"])
    head = ["", *(f"step {n}" for n in sorted(times)), "last / first", "target"]
    table(head, rows)
    for name in TARGETS:
        share = found[name][max(found[name])] / (1000 * LATENCY)
        print(f"{name}: {share:.1%} of a model call of {LATENCY:g} s")
    print()


def show_sizes(found: dict[str, Any]) -> None:
    """Print the sizes."""
    print("Size of a run, KB (each step observes 1,000 characters)")
    rows = [
        [
            steps,
            f"{size['journal'] / 1000:.0f}",
            f"{size['line'] / 1000:.0f}",
            f"{size['line'] / size['journal']:.1f} x",
        ]
        for steps, size in found.items()
    ]
    table(["steps", "journal", "one JSON line", "line / journal"], rows)


def show_tasks(found: dict[str, Any]) -> None:
    """Print throughput and memory."""
    print(f"Tasks of {STEPS} model calls of {LATENCY:g} s each, {os.cpu_count()} cores")
    rows = [
        [
            workers,
            f"{row['per_minute']:.0f}",
            f"{row['ideal']:.0%}",
            f"{row['per_minute'] / found['1']['per_minute']:.1f} x",
            f"{row['megabytes']:.0f}",
        ]
        for workers, row in found.items()
        if isinstance(row, dict)
    ]
    table(["workers", "tasks / minute", "of the ideal", "to 1 worker", "MB total"], rows)
    print(f"memory of each further worker: {found['megabytes_per_worker']:.1f} MB\n")


def main() -> None:
    """Measure the chosen parts, print tables and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round, as a smoke test")
    parser.add_argument("--json", type=Path, help="write the medians to this file")
    parser.add_argument(
        "--only", default=",".join(DEFAULT_PARTS), help="parts (default: %(default)s)"
    )
    options = parser.parse_args()
    parts: dict[str, tuple[Callable[[bool], Any], Callable[[Any], None]]] = {
        "steps": (steps_part, show_steps),
        "peer": (peer_part, show_peer),
        "sizes": (sizes_part, show_sizes),
        "tasks": (tasks_part, show_tasks),
        "ray": (ray_part, show_ray),
    }
    results: dict[str, Any] = {"cores": os.cpu_count()}
    for part in options.only.split(","):
        if part not in parts:
            parser.error(f"--only {part}: known parts: {', '.join(parts)}")
        measure, show = parts[part]
        results[part] = measure(options.quick)
        show(results[part])
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
