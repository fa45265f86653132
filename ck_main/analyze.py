"""`python -m ck_main.analyze A [B]`: analyse one output, or compare two. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ck_main.analysis.comparison import Comparison, compare
from ck_main.analysis.facts import DEFAULT_BY, read_runs
from ck_main.analysis.plots import write_plots
from ck_main.analysis.report import report_page
from ck_main.analysis.summary import Summary, analyse
from ck_main.analysis.tables import report_tables
from ck_pro.command_line import AnyPath, ExitCode, run_command, without_controls
from ck_pro.exceptions import OutputError
from ck_pro.trajectory.exporting.writers import require_no_device
from ck_pro.trajectory.labels import without_label_files
from ck_pro.trajectory.reading.sources import require_not_input

_SHOWN_PROBLEMS = 20
EPILOG = """
\b
A and B: a file of output rows, or the folder of a run with journals. With
several tries of a task, pass@k and pass^k are shown.

\b
--by names: level, agent (the main agent), sub_agent (those that took part),
tag, any field of the task, or a path in the row such as
session.info.config.model.call_target.

\b
Examples:
  python -m ck_main.analyze runs/a.jsonl
  python -m ck_main.analyze runs/a.jsonl runs/b.jsonl --html report.html
  python -m ck_main.analyze runs/a.jsonl --by level --json > a.json
  python -m ck_main.analyze runs/a.jsonl --plots plots --format png

\b
Exit codes:
  0    complete
  1    the input has no run
  2    the command line or an input cannot be used
  3    some lines or journals cannot be read; the rest was analysed
  4    a report or plot cannot be written
  6    an internal error; the message names the full log
  130  stopped by Ctrl-C
"""


def names_of(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Parse `a,b` (click callback)."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise click.BadParameter("no names")
    return names


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("inputs", metavar="A [B]", type=AnyPath(), nargs=-1, required=True)
@click.option(
    "--by",
    default=",".join(DEFAULT_BY),
    callback=names_of,
    show_default=True,
    metavar="NAME,...",
    help="Groups; see below.",
)
@click.option(
    "--score-from",
    default="eval.corr",
    show_default=True,
    metavar="PATH",
    help="Path of the score in a row.",
)
@click.option(
    "--good-score",
    type=float,
    default=1.0,
    show_default=True,
    metavar="N",
    help="Lowest score of a right answer.",
)
@click.option(
    "--failures",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum number of failed tasks to list.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--html", type=AnyPath(), metavar="FILE", help="Write a report as one HTML file.")
@click.option("--plots", type=AnyPath(), metavar="FOLDER", help="Write the plots to a folder.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "png"]),
    default="svg",
    show_default=True,
    help="Form of the plots; PNG needs ck-pro[plots].",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
def cli(
    inputs: tuple[Path, ...],
    by: tuple[str, ...],
    html: Path | None,
    plots: Path | None,
    **options: Any,
) -> ExitCode:
    """Show scores with confidence intervals, endings and costs of A; compare it with B by task."""
    if not math.isfinite(options["good_score"]):
        raise click.UsageError(f"--good-score: {options['good_score']} is not a score")
    runs = without_label_files(inputs, _report_label_file)
    if len(runs) > 2:
        raise click.UsageError(f"{len(runs)} inputs: analyze compares two; name A, or A and B")
    if html is not None:
        require_no_device(html)
        require_not_input("--html", html, runs)
    summaries = [_analysed(path, by, options) for path in runs]
    good, force = options["good_score"], options["force"]
    comparison = compare(summaries[0], summaries[1], good=good) if len(summaries) > 1 else None
    written: list[Path] = []
    if html is not None:
        written.append(_write(html, report_page(summaries, comparison), force))
    if plots is not None:
        written += write_plots(plots, summaries, comparison, form=options["form"], force=force)
    if options["as_json"]:
        click.echo(_as_json(summaries, comparison))
    else:
        _print(summaries, comparison, options["failures"])
        for path in written[:1] if plots is None else written:
            click.echo(f"written: {path}")
    problems = [p for s in summaries for p in s.problems]
    for problem in problems[:_SHOWN_PROBLEMS]:
        click.echo(f"{without_controls(problem)} (skipped)", err=True)
    if len(problems) > _SHOWN_PROBLEMS:
        click.echo(f"... and {len(problems) - _SHOWN_PROBLEMS:,} more", err=True)
    if not any(s.tasks for s in summaries):
        click.echo("the input has no run", err=True)
        return ExitCode.LINES if problems else ExitCode.EMPTY
    return ExitCode.LINES if problems else ExitCode.DONE


def _report_label_file(path: Path) -> None:
    click.echo(f"{path} has labels, not runs (skipped)", err=True)


def _analysed(path: Path, by: Sequence[str], options: dict[str, Any]) -> Summary:
    problems: list[str] = []
    runs = read_runs(
        [path],
        by,
        score_from=options["score_from"],
        good=options["good_score"],
        on_problem=lambda problem: problems.append(str(problem)),
    )
    summary = analyse(str(path), runs, good=options["good_score"])
    summary.problems = problems
    return summary


def _as_json(summaries: Sequence[Summary], comparison: Comparison | None) -> str:
    found: dict[str, Any] = {"a": summaries[0].to_dict()}
    if comparison is not None:
        found |= {"b": summaries[1].to_dict(), "comparison": comparison.to_dict()}
    return json.dumps(found, ensure_ascii=False, allow_nan=False)


def _print(summaries: Sequence[Summary], comparison: Comparison | None, shown: int) -> None:
    out = Console(highlight=False)
    for table in report_tables(
        summaries[0], summaries[1] if len(summaries) > 1 else None, comparison, shown=shown
    ):
        out.print(table)


def _write(path: Path, text: str, force: bool) -> Path:
    if path.exists() and not force:
        raise OutputError(f"{path} exists already; give --force to replace it")
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", errors="replace")
        partial.replace(path)
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}") from None
    return path


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
