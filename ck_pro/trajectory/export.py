"""`python -m ck_pro.trajectory.export`: convert runs to training data. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ck_pro.command_line import AnyPath, ExitCode, run_command
from ck_pro.trajectory.exporting.job import check_settings
from ck_pro.trajectory.exporting.options import (
    FORMATS,
    ProblemPrinter,
    export_options,
    first_lines,
    formats_help,
    settings_of,
)
from ck_pro.trajectory.exporting.pipeline import export
from ck_pro.trajectory.exporting.report import report_lines, report_table

__all__ = ["FORMATS", "cli", "main"]

EPILOG = f"""
\b
{formats_help()}

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


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-o", "--output", type=AnyPath(), required=True, help="Path of the output.")
@export_options
@click.option("--force", is_flag=True, help="Replace an existing output.")
@click.option("--shard-rows", type=click.IntRange(min=1), help="Rows per file.  [one file]")
def cli(output: Path, force: bool, shard_rows: int | None, **options: Any) -> ExitCode:
    """Convert runs to training data."""
    settings = settings_of(output, **options)
    settings = replace(settings, shard_rows=shard_rows, force=force)
    check_settings(settings)
    report = export(settings, ProblemPrinter())
    for name in (*report.unmatched, *first_lines(report.lost_labels)):
        click.echo(f"warning: {name}", err=True)
    out = Console()
    out.print(report_table(report, settings))
    for line in report_lines(report, settings):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    if report.problems or report.label_problems:
        return ExitCode.LINES
    return ExitCode.DONE if report.rows_out else ExitCode.EMPTY


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
