"""Options that the commands `export` and `preview` share: inputs, format, filters."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from ck_pro.command_line import AnyPath
from ck_pro.session import PHASES
from ck_pro.session.status import Status
from ck_pro.trajectory.exporting.filters import Condition, FilterSettings
from ck_pro.trajectory.exporting.job import ExportSettings
from ck_pro.trajectory.formats import ExportFormat, export_formats
from ck_pro.trajectory.labels import without_label_files
from ck_pro.trajectory.reading.sources import Problem

SHOWN_PROBLEMS = 20
FORMATS = export_formats()
_PATH = AnyPath()
_KEEP_DROP = click.Choice(["keep", "drop"])
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _names(has: Callable[[ExportFormat], Any]) -> str:
    """List the formats with a property: "dpo, kto and sft"."""
    names = [f.name for f in FORMATS.values() if has(f)]
    return " and ".join([", ".join(names[:-1]), *names[-1:]]).removeprefix(" and ")


def formats_help() -> str:
    """Describe the formats, for `--help`."""
    width = max(map(len, FORMATS)) + 4
    lines = ["Formats (one row per model call, from agents at every depth, unless stated):"]
    for f in FORMATS.values():
        first = f"  {f.name}".ljust(width)
        lines += textwrap.wrap(f.help, 79, initial_indent=first, subsequent_indent=" " * width)
    names = _names(lambda f: f.json_images and f.parquet_columns)
    return "\n".join([*lines, f"{names} write Parquet if OUTPUT ends in .parquet."])


def phases_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Check the phases of `--phase` (click callback)."""
    for phase in given:
        if phase in PHASES or (phase.startswith("tool:") and len(phase) > len("tool:")):
            continue
        near = difflib.get_close_matches(phase, PHASES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise click.BadParameter(f"{phase!r} is not {', '.join(PHASES)} or tool:NAME{hint}")
    return given


OPTIONS = (
    click.option(
        "-f",
        "--format",
        "format_",
        type=click.Choice(list(FORMATS)),
        required=True,
        help="The format; see below.",
    ),
    click.option(
        "-i", "--input", "inputs", type=_PATH, multiple=True, help="Rows or run directory."
    ),
    click.argument("more", type=_PATH, nargs=-1, metavar="[MORE_INPUTS]..."),
    click.option(
        "--images",
        type=click.Choice(["folder", "embed", "drop"]),
        help="Store images in a folder beside the output, in the rows, or not.  [by format]",
    ),
    click.option(
        "--columns",
        type=click.Choice(["prompt", "messages"]),
        default="prompt",
        show_default=True,
        help=f"For {_names(lambda f: 'messages' in f.columns)}: prompt + completion, or one list.",
    ),
    click.option(
        "--reasoning",
        type=click.Choice(["drop", "field", "inline"]),
        default="drop",
        show_default=True,
        help="The model's reasoning: omit it, as reasoning_content, or in <think> tags.",
    ),
    click.option(
        "--good-score",
        type=float,
        default=1.0,
        show_default=True,
        help=f"Lowest score of a good reply, for {_names(lambda f: f.preferences)}.",
    ),
    click.option(
        "--max-pairs",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help=f"Maximum pairs per prompt, for {_names(lambda f: f.per_prompt)}.",
    ),
    click.option(
        "--status",
        type=click.Choice([status.value for status in Status]),
        multiple=True,
        metavar="STATUS",
        help="Only runs with this status, such as done.",
    ),
    click.option("--min-score", type=float, help="Only runs with at least this score."),
    click.option("--max-score", type=float, help="Only runs with at most this score."),
    click.option(
        "--score-from",
        default="eval.corr",
        show_default=True,
        metavar="PATH",
        help="Path of the score in a row, such as a judge's score.",
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="COND",
        help="Only rows that match PATH OP VALUE; OP: == != >= <= > < ~ !~ (regex).",
    ),
    click.option("--best", type=click.IntRange(min=1), help="Only the best N tries of each task."),
    click.option("--agent", "agents", multiple=True, help="Only this agent, by name or path."),
    click.option(
        "--phase",
        "phases",
        callback=phases_of,
        multiple=True,
        help="Only plan, action, end or tool:NAME.",
    ),
    click.option(
        "--judges",
        type=_KEEP_DROP,
        default="drop",
        show_default=True,
        help="The runner's calls about a try: judge, reflect, choose. "
        "--phase tool:judge keeps them.",
    ),
    click.option(
        "--labels",
        type=_PATH,
        multiple=True,
        help="Labels of runs, steps and calls, and corrected replies (JSON lines).",
    ),
    click.option(
        "--label",
        type=click.Choice(["good", "bad", "include", "corrected"]),
        multiple=True,
        help="Only calls with this label.",
    ),
    click.option(
        "--unlabelled",
        type=_KEEP_DROP,
        default="keep",
        show_default=True,
        help="Calls without a label.",
    ),
    click.option(
        "--failed-subs",
        type=_KEEP_DROP,
        default="drop",
        show_default=True,
        help=f"Failed sub-sessions; {_names(lambda f: f.preferences)} always keep them, "
        "with reward 0.",
    ),
    click.option(
        "--not-chosen",
        type=_KEEP_DROP,
        default="drop",
        show_default=True,
        help="Tries of a sub-agent that its caller did not choose; their reward is unknown.",
    ),
    click.option(
        "--errors",
        type=_KEEP_DROP,
        default="keep",
        show_default=True,
        help="Steps whose action failed.",
    ),
    click.option(
        "--unreadable",
        type=_KEEP_DROP,
        default="drop",
        show_default=True,
        help="Replies (plan, action or end) that the agent could not fully parse.",
    ),
    click.option(
        "--duplicates",
        type=_KEEP_DROP,
        default="drop",
        show_default=True,
        help="Repeated calls with equal prompt and reply.",
    ),
    click.option(
        "--duplicate-reward",
        type=click.Choice(["first", "max", "min", "mean"]),
        default="first",
        show_default=True,
        help="Reward of the row that remains of calls with equal prompt and reply.",
    ),
    click.option(
        "--min-chars", type=click.IntRange(min=0), help="Minimum length of prompt and reply."
    ),
    click.option(
        "--max-chars", type=click.IntRange(min=0), help="Maximum length of prompt and reply."
    ),
    click.option(
        "--max-tokens", type=click.IntRange(min=1), help="Maximum tokens of both, estimated."
    ),
)
"""Decorators of the options, in order of the help."""


def export_options(command: _Command) -> _Command:
    """Add the options to a command (decorator)."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def settings_of(
    output: Path,
    *,
    format_: str,
    inputs: tuple[Path, ...],
    more: tuple[Path, ...],
    images: Any,
    columns: Any,
    reasoning: Any,
    good_score: float,
    max_pairs: int,
    where: tuple[str, ...],
    **filters: Any,
) -> ExportSettings:
    """Return the settings of an export from the values of the options.

    Raises:
        InputError: a condition cannot be parsed.
        click.UsageError: there is no input.
    """
    return ExportSettings(
        FORMATS[format_],
        _runs((*inputs, *more)),
        output,
        FilterSettings(where=[Condition.parse(w) for w in where], **filters),
        images=images,
        columns=columns,
        reasoning=reasoning,
        good_score=good_score,
        max_pairs=max_pairs,
    )


def _runs(paths: Sequence[Path]) -> list[Path]:
    """Return the inputs without label files, which `runs/*.jsonl` also names."""
    if not paths:
        raise click.UsageError("give at least one --input")

    def report(path: Path) -> None:
        click.echo(f"{path} has labels, not runs (skipped); to use it, add --labels", err=True)

    return without_label_files(paths, report)


def first_lines(lines: Sequence[str]) -> list[str]:
    """Return the first lines, and how many follow."""
    more = len(lines) - SHOWN_PROBLEMS
    return [*lines[:SHOWN_PROBLEMS], *([f"... and {more:,} more labels"] if more > 0 else [])]


class ProblemPrinter:
    """Print the first problems on standard error."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, problem: Problem) -> None:
        self._count += 1
        if self._count <= SHOWN_PROBLEMS:
            click.echo(f"{problem} (skipped)", err=True)
        elif self._count == SHOWN_PROBLEMS + 1:
            click.echo("... and more; the table has the total", err=True)
