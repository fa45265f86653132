"""`python -m ck_pro.trajectory.preview`: show what an export would train on. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ck_pro.command_line import ExitCode, run_command, without_controls
from ck_pro.trajectory.exporting.options import (
    ProblemPrinter,
    export_options,
    first_lines,
    settings_of,
)
from ck_pro.trajectory.exporting.report import report_table
from ck_pro.trajectory.previewing.preview import Preview, PreviewRow, preview_export
from ck_pro.trajectory.previewing.token_counter import ESTIMATE, token_counter

_HEAD, _TAIL = 12, 6
_LINE = 2_000
_BAR = 40
_COLORS = {"system": "magenta", "user": "cyan", "assistant": "yellow", "tool": "blue"}
_USES = {
    "context": ("  ", ""),
    "trained": ("┃ ", "green"),
    "chosen": ("+ ", "green"),
    "rejected": ("- ", "red"),
}
EPILOG = """
\b
The options are those of `python -m ck_pro.trajectory.export`, except that
--max-tokens drops nothing: the preview counts the rows that are longer.

\b
Marks: ┃ trained on; + chosen or good; - rejected or bad. The rest of a row is
its prompt.

\b
Tokenizers: a name or folder that transformers loads, a tokenizer.json,
tiktoken:o200k_base, or "estimate" (3.5 bytes each). With a chat template, the
length of a row includes its special tokens.

\b
Exit codes: as for the export; it writes no files.
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@export_options
@click.option(
    "-n", "--rows", type=click.IntRange(min=0), default=3, show_default=True, help="Rows to show."
)
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Rows before these.")
@click.option("--longest", is_flag=True, help="Show the longest rows.")
@click.option("--full", is_flag=True, help="Show long texts completely.")
@click.option("--tokenizer", default=ESTIMATE, show_default=True, help="Counts the tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with full texts.")
def cli(
    rows: int,
    skip: int,
    longest: bool,
    full: bool,
    tokenizer: str,
    as_json: bool,
    **options: Any,
) -> ExitCode:
    """Show what an export would train on: rows, their trained part, token counts."""
    settings = settings_of(Path("preview"), **options)
    counter = token_counter(tokenizer)
    found = preview_export(
        settings, counter, show=rows, skip=skip, show_longest=longest, on_problem=ProblemPrinter()
    )
    report = found.report
    for name in (*report.unmatched, *first_lines(report.lost_labels)):
        click.echo(f"warning: {name}", err=True)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False).encode("utf-8", "replace"))
    else:
        out = Console()
        for row in found.shown:
            _print_row(out, row, full)
        out.print(report_table(report, settings))
        _print_counts(out, found)
        if not found.rows and settings.format.advice:
            out.print(settings.format.advice, markup=False)
    if report.problems or report.label_problems:
        return ExitCode.LINES
    return ExitCode.DONE if found.rows else ExitCode.EMPTY


def _print_row(out: Console, row: PreviewRow, full: bool) -> None:
    facts = {k: v for k, v in row.place.items() if k not in ("row", "tokens", "trained")}
    place = ", ".join(f"{k} {v}" for k, v in facts.items())
    label = row.metadata.get("label") or row.metadata.get("chosen_label")
    label = "corrected" if row.metadata.get("corrected") else label
    tokens = f"{row.tokens:,} tokens, {row.trained:,} trained"
    title = f"row {row.number}: {place}; {tokens}{f'; label: {label}' if label else ''}"
    out.print(Text(without_controls(title), style="bold"), soft_wrap=True)
    for segment in row.segments:
        gutter, style = _USES[segment.use]
        head = Text(gutter, style=style)
        head.append(segment.role, style=f"bold {_COLORS.get(segment.role, '')}")
        out.print(head)
        for line in _lines(segment.text, full or segment.use != "context"):
            out.print(Text.assemble((gutter, style), (line, style)), soft_wrap=True)
    out.print()


def _lines(text: str, full: bool) -> list[str]:
    lines = [without_controls(line) for line in text.split("\n")]
    if full:
        return lines
    lines = [line if len(line) <= _LINE else f"{line[:_LINE]} ..." for line in lines]
    if len(lines) > _HEAD + _TAIL + 1:
        left = lines[_HEAD:-_TAIL]
        size = sum(map(len, left))
        omitted = f"[... {len(left):,} lines, {size:,} characters ...]"
        lines = [*lines[:_HEAD], omitted, *lines[-_TAIL:]]
    return lines


def _print_counts(out: Console, found: Preview) -> None:
    facts = found.to_json()
    if not found.rows:
        return
    table = Table(title=f"tokens per row ({found.tokenizer})", show_edge=False)
    table.add_column("")
    names = list(facts["tokens"])
    for name in names:
        table.add_column(name, justify="right")
    for title, key in (("length", "tokens"), ("trained", "trained")):
        table.add_row(title, *(f"{facts[key][name]:,}" for name in names))
    out.print(table)
    highest = max(count for _, _, count in facts["histogram"])
    for low, high, count in facts["histogram"]:
        bar = "█" * max(round(_BAR * count / highest), 1 if count else 0)
        out.print(f"  {low:>9,} to {high - 1:>9,}  {count:>7,}  {bar}", highlight=False)
    if found.limit is not None:
        share = 100 * found.over / found.rows
        what = "1 row exceeds" if found.over == 1 else f"{found.over:,} rows exceed"
        out.print(f"{what} {found.limit:,} tokens ({share:.1f} %)", highlight=False)
    if found.refused:
        out.print(f"warning: {found.refused:,} rows: {found.refusal}", markup=False)
    out.print("longest rows:")
    for row in found.longest:
        place = ", ".join(f"{k} {v}" for k, v in row.place.items())
        out.print(f"  {without_controls(place)}", markup=False, highlight=False, soft_wrap=True)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
