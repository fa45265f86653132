"""Run MiniWoB++ as a conformance suite of the browser server.

    python -m benchmarks.miniwob [--tasks click-button,enter-text] [--seeds 5] [--json FILE]

The page reports the reward to this program, and not to the policy. An episode succeeds with the
full reward.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import click

from benchmarks.miniwob.pages import task_names
from benchmarks.miniwob.suite import run, table
from benchmarks.miniwob.world import POLICIES


@click.command()
@click.option(
    "--tasks", default="", help="Names, separated by commas; by default all with a policy."
)
@click.option("--seeds", default=5, show_default=True, help="Episodes per task.")
@click.option("--first-seed", default=1, show_default=True)
@click.option("--at-once", default=2, show_default=True, help="Number of browsers.")
@click.option("--json", "json_file", type=click.Path(), help="Write all episodes to this file.")
@click.option("--trace", is_flag=True, help="Print each action, and the page after a failure.")
@click.option("--list", "list_only", is_flag=True, help="Print the tasks and exit.")
def main(
    tasks: str,
    seeds: int,
    first_seed: int,
    at_once: int,
    json_file: str | None,
    trace: bool,
    list_only: bool,
) -> None:
    """Run the policies and print the successes of each task."""
    try:
        known = task_names()
    except FileNotFoundError as e:
        raise click.ClickException(str(e)) from None
    chosen = [t.strip() for t in tasks.split(",") if t.strip()] or sorted(POLICIES)
    unknown = sorted(set(chosen) - set(POLICIES))
    if unknown:
        raise click.ClickException(f"no policy for: {', '.join(unknown)}; --list shows all")
    if list_only:
        for task in known:
            print(f"{task:30} {'policy' if task in POLICIES else '-'}")
        return
    log = (lambda line: print(line, flush=True)) if trace else (lambda line: None)
    start = time.monotonic()
    results = run(chosen, range(first_seed, first_seed + seeds), at_once=at_once, log=log)
    print(table(results))
    print(f"{time.monotonic() - start:.0f} s; {len(known) - len(POLICIES)} tasks have no policy")
    if json_file:
        rows = [{**asdict(r), "successes": r.successes} for r in results]
        Path(json_file).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
