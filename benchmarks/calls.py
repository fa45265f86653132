"""Count the model calls and tokens of runs, from their rows.

    python benchmarks/calls.py RUN.jsonl [OTHER.jsonl] [--tasks]

Prints calls by agent and phase, prompt and completion tokens, the cached share of prompt tokens and
the seconds of the tasks. With two runs, their columns stand side by side. `--tasks` adds a line per
task. Rows need their steps' `llm_info`, so runs with `store_io=False` count as 0 calls by phase.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PHASES = ("plan", "action", "end")


@dataclass
class Counts:
    """Model calls and their tokens."""

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def add(self, info: dict[str, Any]) -> None:
        """Add one call from the `llm_info` of its phase."""
        usage = info.get("usage") or {}
        self.calls += 1
        self.prompt += usage.get("prompt_tokens", 0)
        self.cached += usage.get("cached_tokens", 0)
        self.completion += usage.get("completion_tokens", 0)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )

    def cells(self) -> list[str]:
        """Return calls, tokens and cached share as text."""
        share = f"{self.cached / self.prompt:.0%}" if self.prompt else "-"
        return [f"{self.calls:,}", f"{self.prompt:,}", f"{self.completion:,}", share]


@dataclass
class TaskCounts:
    """One task: its calls by (agent, phase), its seconds and its score."""

    by_phase: dict[tuple[str, str], Counts]
    seconds: float
    correct: int | None

    @property
    def total(self) -> Counts:
        """The sum over agents and phases."""
        return sum(self.by_phase.values(), Counts())


def calls_of(session: dict[str, Any], agent: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (agent, phase, llm_info) of each model call of a session and its sub-sessions."""
    for step in session.get("steps", ()):
        for phase in PHASES:
            part = step.get(phase) or {}
            if part.get("llm_info"):
                yield agent, phase, part["llm_info"]
            for call in part.get("model_calls") or ():
                yield agent, call.get("phase", "tool"), call.get("llm_info") or {}
            for sub in part.get("sub_sessions") or ():
                yield from calls_of(sub, sub.get("info", {}).get("agent", "sub-agent"))


def read_run(path: Path) -> dict[str, TaskCounts]:
    """Read the rows of a run by task id.

    Raises:
        SystemExit: the file cannot be read, or a line is not a row.
    """
    found: dict[str, TaskCounts] = {}
    try:
        lines = path.read_text().splitlines()
    except OSError as e:
        raise SystemExit(f"{path}: {e.strerror}") from e
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            session = row["session"]
            info = session["info"]
            by_phase: dict[tuple[str, str], Counts] = {}
            for agent, phase, call in calls_of(session, info.get("agent", "agent")):
                by_phase.setdefault((agent, phase), Counts()).add(call)
            found[row["id"]] = TaskCounts(
                by_phase, info.get("duration", 0.0), (row.get("eval") or {}).get("corr")
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise SystemExit(f"{path}:{number}: not a row of a run: {e!r}") from e
    return found


def summary(run: dict[str, TaskCounts]) -> dict[str, list[str]]:
    """Return the cells of each line of the table for one run."""
    by_phase: dict[tuple[str, str], Counts] = {}
    for task in run.values():
        for key, counts in task.by_phase.items():
            by_phase[key] = by_phase.get(key, Counts()) + counts
    lines = {f"{agent}: {phase}": counts.cells() for (agent, phase), counts in by_phase.items()}
    total = sum(by_phase.values(), Counts())
    lines["all calls"] = total.cells()
    lines["per task"] = [
        f"{total.calls / len(run):.1f}",
        f"{total.prompt / len(run):,.0f}",
        f"{total.completion / len(run):,.0f}",
        "",
    ]
    lines["seconds per task"] = [
        f"{sum(t.seconds for t in run.values()) / len(run):.1f}",
        "",
        "",
        "",
    ]
    scored = [t.correct for t in run.values() if t.correct is not None]
    lines["tasks"] = [f"{len(run)}", "", "", ""]
    lines["right, of scored"] = [f"{sum(scored)}/{len(scored)}", "", "", ""]
    return lines


def task_lines(run: dict[str, TaskCounts]) -> dict[str, list[str]]:
    """Return one line of cells per task."""
    return {name: task.total.cells() for name, task in run.items()}


def print_table(paths: list[Path], tables: list[dict[str, list[str]]]) -> None:
    """Print the lines of one or two runs side by side."""
    names = list(dict.fromkeys(name for table in tables for name in table))
    head = ["calls", "prompt", "completion", "cached"]
    rows = [[""] + head * len(tables)]
    for name in names:
        rows.append([name] + [cell for table in tables for cell in table.get(name, ["-"] * 4)])
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    print("   ".join(f"[{n}] {path}" for n, path in enumerate(paths, 1)))
    for row in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([f"{row[0]:<{widths[0]}}", *cells]).rstrip())


def main() -> int:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(prog="python benchmarks/calls.py", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("runs", nargs="+", type=Path, help="one or two files of rows")
    parser.add_argument("--tasks", action="store_true", help="a line per task as well")
    options = parser.parse_args()
    if len(options.runs) > 2:
        parser.error("give one or two runs")
    runs = [read_run(path) for path in options.runs]
    if not all(runs):
        parser.error("a run has no rows")
    print_table(options.runs, [summary(run) for run in runs])
    if options.tasks:
        print()
        print_table(options.runs, [task_lines(run) for run in runs])
    return 0


if __name__ == "__main__":
    sys.exit(main())
