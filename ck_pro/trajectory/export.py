"""`python -m ck_pro.trajectory.export`: convert runs to training data. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import difflib
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ck_pro.command_line import AnyPath, ExitCode, run_command
from ck_pro.session import PHASES
from ck_pro.session.status import Status
from ck_pro.trajectory.exporting.filters import Condition, FilterSettings
from ck_pro.trajectory.exporting.job import ExportSettings, check_settings
from ck_pro.trajectory.exporting.pipeline import export
from ck_pro.trajectory.exporting.report import report_lines, report_table
from ck_pro.trajectory.formats import ExportFormat, export_formats
from ck_pro.trajectory.labels import is_label_file
from ck_pro.trajectory.reading.sources import Problem

_SHOWN_PROBLEMS = 20
_PATH = AnyPath()
_KEEP_DROP = click.Choice(["keep", "drop"])
FORMATS = export_formats()


def _names(has: Callable[[ExportFormat], Any]) -> str:
    """List the formats with a property: "dpo, kto and sft"."""
    names = [f.name for f in FORMATS.values() if has(f)]
    return " and ".join([", ".join(names[:-1]), *names[-1:]]).removeprefix(" and ")


def _formats_help() -> str:
    """Describe the formats, for `--help`."""
    width = max(map(len, FORMATS)) + 4
    lines = ["Formats (one row per model call, from agents at every depth, unless stated):"]
    for f in FORMATS.values():
        first = f"  {f.name}".ljust(width)
        lines += textwrap.wrap(f.help, 79, initial_indent=first, subsequent_indent=" " * width)
    names = _names(lambda f: f.json_images and f.parquet_columns)
    return "\n".join([*lines, f"{names} write Parquet if OUTPUT ends in .parquet."])


EPILOG = f"""
\b
{_formats_help()}

\b
Inputs: files of output rows, and run directories (<run>/<task>/events.jsonl,
all tries). Restarted attempts are skipped; to export one, name its folder
<task>/attempt-N. Tries of one task are matched by the task's text.

\b
Examples:
  python -m ck_pro.trajectory.export -f sft -i runs/a.jsonl -o sft.jsonl \\
      --min-score 1 --status done
  python -m ck_pro.trajectory.export -f sft -i runs/a.jsonl runs/b.jsonl \\
      -o best.jsonl --min-score 1 --best 1            (rejection sampling)
  python -m ck_pro.trajectory.export -f dpo -i runs/*.jsonl -o pairs.jsonl
  python -m ck_pro.trajectory.export -f verl -i runs/a/ -o web.parquet \\
      --agent web_agent --phase action --max-tokens 16000
  ... --where 'feedback!~too slow' --where '_orig.Level<=2'

\b
Exit codes:
  0    the export is complete
  1    the export is complete, but has no rows
  2    the command line or an input cannot be used
  3    some lines or journals cannot be read; the rest was exported
  4    the output cannot be written; partial files were removed
  6    an internal error; the message names the full log
  130  stopped by Ctrl-C; partial files were removed
"""


def phases_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Check the phases of `--phase` (click callback)."""
    for phase in given:
        if phase in PHASES or (phase.startswith("tool:") and len(phase) > len("tool:")):
            continue
        near = difflib.get_close_matches(phase, PHASES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise click.BadParameter(f"{phase!r} is not {', '.join(PHASES)} or tool:NAME{hint}")
    return given


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(list(FORMATS)),
    required=True,
    help="The format; see below.",
)
@click.option("-i", "--input", "inputs", type=_PATH, multiple=True, help="Rows or run directory.")
@click.argument("more", type=_PATH, nargs=-1, metavar="[MORE_INPUTS]...")
@click.option("-o", "--output", type=_PATH, required=True, help="Path of the output.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--shard-rows", type=click.IntRange(min=1), help="Rows per file.  [one file]")
@click.option(
    "--images",
    type=click.Choice(["folder", "embed", "drop"]),
    help="Store images in a folder beside the output, in the rows, or not.  [by format]",
)
@click.option(
    "--columns",
    type=click.Choice(["prompt", "messages"]),
    default="prompt",
    show_default=True,
    help=f"For {_names(lambda f: 'messages' in f.columns)}: prompt + completion, or one list.",
)
@click.option(
    "--reasoning",
    type=click.Choice(["drop", "field", "inline"]),
    default="drop",
    show_default=True,
    help="The model's reasoning: omit it, as reasoning_content, or in <think> tags.",
)
@click.option(
    "--good-score",
    type=float,
    default=1.0,
    show_default=True,
    help=f"Lowest score of a good reply, for {_names(lambda f: f.preferences)}.",
)
@click.option(
    "--max-pairs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help=f"Maximum pairs per prompt, for {_names(lambda f: f.per_prompt)}.",
)
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status]),
    multiple=True,
    metavar="STATUS",
    help="Only runs with this status, such as done.",
)
@click.option("--min-score", type=float, help="Only runs with at least this score.")
@click.option("--max-score", type=float, help="Only runs with at most this score.")
@click.option(
    "--score-from",
    default="eval.corr",
    show_default=True,
    metavar="PATH",
    help="Path of the score in a row, such as a judge's score.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="COND",
    help="Only rows that match PATH OP VALUE; OP: == != >= <= > < ~ !~ (regex).",
)
@click.option("--best", type=click.IntRange(min=1), help="Only the best N tries of each task.")
@click.option("--agent", "agents", multiple=True, help="Only this agent, by name or path.")
@click.option(
    "--phase",
    "phases",
    callback=phases_of,
    multiple=True,
    help="Only plan, action, end or tool:NAME.",
)
@click.option(
    "--judges",
    type=_KEEP_DROP,
    default="drop",
    show_default=True,
    help="The runner's calls about a try: judge, reflect, choose. --phase tool:judge keeps them.",
)
@click.option(
    "--labels",
    type=_PATH,
    multiple=True,
    help="Labels of runs, steps and calls, and corrected replies (JSON lines).",
)
@click.option(
    "--label",
    type=click.Choice(["good", "bad", "include", "corrected"]),
    multiple=True,
    help="Only calls with this label.",
)
@click.option(
    "--unlabelled",
    type=_KEEP_DROP,
    default="keep",
    show_default=True,
    help="Calls without a label.",
)
@click.option(
    "--failed-subs",
    type=_KEEP_DROP,
    default="drop",
    show_default=True,
    help=f"Failed sub-sessions; {_names(lambda f: f.preferences)} always keep them, with reward 0.",
)
@click.option(
    "--not-chosen",
    type=_KEEP_DROP,
    default="drop",
    show_default=True,
    help="Tries of a sub-agent that its caller did not choose; their reward is unknown.",
)
@click.option(
    "--errors",
    type=_KEEP_DROP,
    default="keep",
    show_default=True,
    help="Steps whose action failed.",
)
@click.option(
    "--unreadable",
    type=_KEEP_DROP,
    default="drop",
    show_default=True,
    help="Replies (plan, action or end) that the agent could not fully parse.",
)
@click.option(
    "--duplicates",
    type=_KEEP_DROP,
    default="drop",
    show_default=True,
    help="Repeated calls with equal prompt and reply.",
)
@click.option(
    "--duplicate-reward",
    type=click.Choice(["first", "max", "min", "mean"]),
    default="first",
    show_default=True,
    help="Reward of the row that remains of calls with equal prompt and reply.",
)
@click.option("--min-chars", type=click.IntRange(min=0), help="Minimum length of prompt and reply.")
@click.option("--max-chars", type=click.IntRange(min=0), help="Maximum length of prompt and reply.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="Maximum tokens of both, estimated.")
def cli(
    format_: str,
    inputs: tuple[Path, ...],
    more: tuple[Path, ...],
    output: Path,
    force: bool,
    shard_rows: int | None,
    images: Any,
    columns: Any,
    reasoning: Any,
    good_score: float,
    max_pairs: int,
    where: tuple[str, ...],
    **filters: Any,
) -> ExitCode:
    """Convert runs to training data."""
    sources = _runs((*inputs, *more))
    settings = ExportSettings(
        FORMATS[format_],
        sources,
        output,
        FilterSettings(
            where=[Condition.parse(w) for w in where],
            **filters,
        ),
        images=images,
        columns=columns,
        reasoning=reasoning,
        good_score=good_score,
        max_pairs=max_pairs,
        shard_rows=shard_rows,
        force=force,
    )
    check_settings(settings)
    report = export(settings, _ProblemPrinter())
    for name in (*report.unmatched, *_first(report.lost_labels)):
        click.echo(f"warning: {name}", err=True)
    out = Console()
    out.print(report_table(report, settings))
    for line in report_lines(report, settings):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    if report.problems or report.label_problems:
        return ExitCode.LINES
    return ExitCode.DONE if report.rows_out else ExitCode.EMPTY


def _runs(paths: Sequence[Path]) -> list[Path]:
    """Return the inputs without label files, which `runs/*.jsonl` also names."""
    for path in filter(is_label_file, paths):
        click.echo(f"{path} has labels, not runs (skipped); to use it, add --labels", err=True)
    found = [path for path in paths if not is_label_file(path)]
    if not found:
        raise click.UsageError("give at least one --input")
    return found


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - _SHOWN_PROBLEMS
    return [*lines[:_SHOWN_PROBLEMS], *([f"... and {more:,} more labels"] if more > 0 else [])]


class _ProblemPrinter:
    """Print the first problems on standard error."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, problem: Problem) -> None:
        self._count += 1
        if self._count <= _SHOWN_PROBLEMS:
            click.echo(f"{problem} (skipped)", err=True)
        elif self._count == _SHOWN_PROBLEMS + 1:
            click.echo("... and more; the table has the total", err=True)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
