"""MiniWoB++ as a conformance suite of the browser server's eyes and hands.

    python benchmarks/miniwob.py [--tasks click-button,enter-text] [--seeds 5] [--json FILE]

A scripted policy for each task sees our observation text and the task's text, and acts by action
strings alone, through `WebEnv` and a real Chromium. The page itself says the reward, to this
program and not to the policy. An episode counts when that reward is the full one.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import click
from miniwob_pages import task_names
from miniwob_suite import run, table
from miniwob_world import POLICIES


@click.command()
@click.option("--tasks", default="", help="Names, separated by commas; all that have a policy.")
@click.option("--seeds", default=5, show_default=True, help="Episodes per task.")
@click.option("--first-seed", default=1, show_default=True)
@click.option("--at-once", default=2, show_default=True, help="Browsers at a time.")
@click.option("--json", "json_file", type=click.Path(), help="Write all episodes to this file.")
@click.option("--trace", is_flag=True, help="Print every action, and the page where it failed.")
@click.option("--list", "list_only", is_flag=True, help="Print the tasks and end.")
def main(
    tasks: str,
    seeds: int,
    first_seed: int,
    at_once: int,
    json_file: str | None,
    trace: bool,
    list_only: bool,
) -> None:
    """Run the policies and print successes per task."""
    try:
        there = task_names()
    except FileNotFoundError as e:
        raise click.ClickException(str(e)) from None
    chosen = [t.strip() for t in tasks.split(",") if t.strip()] or sorted(POLICIES)
    unknown = sorted(set(chosen) - set(POLICIES))
    if unknown:
        raise click.ClickException(f"no policy for: {', '.join(unknown)}; --list shows all")
    if list_only:
        for task in there:
            print(f"{task:30} {'policy' if task in POLICIES else '-'}")
        return
    say = (lambda line: print(line, flush=True)) if trace else (lambda line: None)
    begun = time.monotonic()
    results = run(chosen, range(first_seed, first_seed + seeds), at_once=at_once, say=say)
    print(table(results))
    print(f"{time.monotonic() - begun:.0f} s; {len(there) - len(POLICIES)} tasks have no policy")
    if json_file:
        rows = [{**asdict(r), "successes": r.successes} for r in results]
        Path(json_file).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
