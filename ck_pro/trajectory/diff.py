"""`python -m ck_pro.trajectory.diff A B`: compare two runs. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ck_pro.command_line import (
    IDS_HELP,
    IDS_METAVAR,
    AnyPath,
    ExitCode,
    ids_of,
    run_command,
    without_controls,
)
from ck_pro.exceptions import CKError, InputError
from ck_pro.trajectory.compare import Difference, first_difference
from ck_pro.trajectory.reading.attempts import Try, status_of, tries_of
from ck_pro.trajectory.reading.sources import (
    Problem,
    Record,
    check_inputs,
    record_index,
    unreadable,
)

EPILOG = """
\b
A and B: a run's folder, a task's folder, or a file of output rows. Journals may
be compressed, and their runs need not have ended. The command matches tasks by
id; if each input has one task, it compares these whatever their ids.

\b
Ports, dates, ids, temporary paths and screenshots differ in every run. They
count only with --exact.

\b
Exit codes:
  0    the runs are the same
  1    the runs differ, or a task is in only one of them
  2    the command line or an input cannot be used
  3    no difference, but some lines or journals cannot be read
  6    an internal error; the message names the full log
  130  stopped by Ctrl-C
"""
_Read = Callable[[], Record | Problem]
_STYLES = {"-": "red", "+": "green", "@": "cyan"}


@dataclass
class Comparison:
    """The result of comparing two runs.

    Args:
        same: ids of the tasks that are the same in both.
        differing: task id, number of the try, and first difference.
        only_a, only_b: ids of the tasks that are in only one run.
        problems: lines and journals that cannot be read.
    """

    same: list[str] = field(default_factory=list)
    differing: list[tuple[str, int, Difference]] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def code(self) -> ExitCode:
        """The command's exit code."""
        if self.differing or self.only_a or self.only_b:
            return ExitCode.DIFFERENT
        return ExitCode.LINES if self.problems else ExitCode.DONE

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        differing = [{"task_id": t, "try": n, **d.to_dict()} for t, n, d in self.differing]
        return {
            "same": self.same,
            "parted": differing,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "problems": [str(p) for p in self.problems],
        }


def compare_runs(
    a: Path,
    b: Path,
    *,
    ids: Sequence[str] = (),
    exact: bool = False,
    on_try: Callable[[str, int, Difference | None], None] = lambda *_: None,
) -> Comparison:
    """Compare two runs task by task, two rows in memory at a time.

    Args:
        a, b: see `read_records`.
        ids: compare only these tasks; empty means all.
        exact: see `first_difference`.
        on_try: called for each try with the task id, the try's number and the first difference.

    Raises:
        InputError: a path does not exist, or neither run has a task of `ids`.
    """
    check_inputs([a, b])
    found = Comparison()
    of_a, of_b = record_index(a), record_index(b)
    if len(of_a) == len(of_b) == 1:
        of_b = dict(zip(of_a, of_b.values(), strict=True))
    unknown = [i for i in ids if i not in of_a and i not in of_b]
    if unknown:
        raise InputError(f"no task {unknown[0]!r} in {a} or {b}")
    for task_id, read in of_a.items():
        if ids and task_id not in ids:
            continue
        if task_id not in of_b:
            _note_alone(found, found.only_a, task_id, read)
            continue
        _compare_task(found, task_id, (_all(read), _all(of_b[task_id])), exact, on_try)
    for task_id, read in of_b.items():
        if task_id not in of_a and (not ids or task_id in ids):
            _note_alone(found, found.only_b, task_id, read)
    return found


def _all(reads: Sequence[_Read]) -> list[Record | Problem]:
    return [read() for read in reads]


def _note_alone(found: Comparison, alone: list[str], task_id: str, reads: Sequence[_Read]) -> None:
    """Note a task that only one run has; unreadable rows, which may be any task, as problems."""
    problems = [record for record in _all(reads) if isinstance(record, Problem)]
    found.problems += problems
    if len(problems) < len(reads):
        alone.append(task_id)


def _compare_task(
    found: Comparison,
    task_id: str,
    records: tuple[Sequence[Record | Problem], Sequence[Record | Problem]],
    exact: bool,
    on_try: Callable[[str, int, Difference | None], None],
) -> None:
    tries: tuple[list[Try], list[Try]] = ([], [])
    for side, of_side in zip(records, tries, strict=True):
        for record in side:
            if isinstance(record, Problem):
                found.problems.append(record)
                return
            try:
                row = {**record.row, "eval": None}
                of_side += tries_of(record.where, row, on_disk=record.on_disk)
            except InputError as e:
                found.problems.append(Problem(record.where, str(e)))
                return
        of_side.sort(key=lambda t: t.number)
    differing = False
    try:
        for number, difference in _tries(tries[0], tries[1], exact):
            differing = differing or difference is not None
            if difference is not None:
                found.differing.append((task_id, number, difference))
            on_try(task_id, number, difference)
    except (CKError, AttributeError, TypeError, KeyError) as e:
        wheres = " or ".join(t[0].where for t in tries)
        found.problems.append(Problem(wheres, unreadable(e)))
        return
    if not differing:
        found.same.append(task_id)


def _tries(
    a: Sequence[Try], b: Sequence[Try], exact: bool
) -> Iterator[tuple[int, Difference | None]]:
    if len(a) == len(b):
        pairs = list(zip(a, b, strict=True))
    else:
        of_b = {t.number: t for t in b}
        pairs = [(t, of_b[t.number]) for t in a if t.number in of_b]
    for x, y in pairs:
        yield x.number, first_difference(x.session, y.session, exact=exact)
    if len(a) != len(b):
        counts = [f"{len(t)} tries, the last {status_of(t[-1].session)}" for t in (a, b)]
        yield min(len(a), len(b)), Difference("the task", None, "", "tries", *counts)


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("a", type=AnyPath())
@click.argument("b", type=AnyPath())
@click.option("--ids", callback=ids_of, metavar=IDS_METAVAR, help=IDS_HELP)
@click.option("--exact", is_flag=True, help="Compare every byte, screenshots too.")
@click.option(
    "--lines",
    type=click.IntRange(min=0),
    default=12,
    show_default=True,
    help="Maximum lines of each difference.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with full texts.")
def cli(a: Path, b: Path, ids: tuple[str, ...], exact: bool, lines: int, as_json: bool) -> ExitCode:
    """Show the first difference of the runs A and B: agent, step, phase and text."""
    out = Console(highlight=False, soft_wrap=True)

    def print_try(task_id: str, number: int, difference: Difference | None) -> None:
        if not as_json:
            for line in report_lines(task_id, number, difference, lines, exact):
                out.print(line)

    found = compare_runs(a, b, ids=ids, exact=exact, on_try=print_try)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        for line in summary_lines(found):
            out.print(Text(line))
    for problem in found.problems:
        click.echo(f"{problem} (skipped)", err=True)
    return found.code


def report_lines(
    task_id: str, number: int, difference: Difference | None, limit: int, exact: bool
) -> list[Text]:
    """Format the result for one try of a task."""
    name = f"{task_id}, try {number}" if number else task_id
    if difference is None:
        return [Text(f"{without_controls(name)}: the same")]
    head = Text(f"{without_controls(name)}: differs at ", style="bold")
    out = [head + Text(without_controls(difference.where), style="bold yellow")]
    for line in difference.lines(limit, exact=exact):
        out.append(Text(f"  {without_controls(line)}", style=_STYLES.get(line[:1], "dim")))
    return out


def summary_lines(found: Comparison) -> list[str]:
    """Format the totals."""
    differing = len({task_id for task_id, _, _ in found.differing})
    lines = [
        f"only in {n}: {', '.join(i)}" for n, i in (("A", found.only_a), ("B", found.only_b)) if i
    ]
    total = len(found.same) + differing
    plural = "task" if total == 1 else "tasks"
    return [*map(without_controls, lines), f"{total} {plural} compared: {differing} differ"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
