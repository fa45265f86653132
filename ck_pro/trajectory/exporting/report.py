"""Format the report of an export: a table of counts, and messages."""

from __future__ import annotations

from rich.table import Table

from ck_pro.trajectory.exporting.job import ExportSettings, Report


def report_table(report: Report, settings: ExportSettings) -> Table:
    """Build the table of counts: input, dropped by each filter, output."""
    form = settings.format
    unit = "runs" if form.whole_runs else "model calls"
    table = Table(title=f"export: {form.name}", show_header=False)
    table.add_column("what")
    table.add_column("count", justify="right")
    table.add_row("rows and journals", f"{report.runs:,}")
    if report.problems:
        table.add_row("unreadable, skipped", f"{report.problems:,}", style="yellow")
    if report.unfinished:
        table.add_row("journals of unfinished runs, skipped", f"{report.unfinished:,}")
    if report.restarted:
        table.add_row("restarted attempts, skipped", f"{report.restarted:,}")
    table.add_row(f"{unit} in", f"{report.calls_in:,}", style="bold")
    if report.originals:
        table.add_row("  added: replies before correction", f"{report.originals:,}")
    for name, count in report.dropped.most_common():
        table.add_row(f"  dropped: {name}", f"{count:,}")
    if form.per_prompt:
        table.add_row("  with a pair for their prompt", f"{report.calls_used:,}")
    pairs = " (pairs)" if form.per_prompt else ""
    table.add_row(f"rows out{pairs}", f"{report.rows_out:,}", style="bold")
    table.add_row("prompt tokens, estimated", f"{report.prompt_tokens:,}")
    table.add_row("reply tokens, estimated", f"{report.reply_tokens:,}")
    for name, count in report.labelled.items():
        if count:
            table.add_row(name, f"{count:,}")
    if report.lost_labels:
        table.add_row("labels without a call", f"{len(report.lost_labels):,}", style="yellow")
    if report.images:
        table.add_row("images written", f"{report.images:,}")
    return table


def _why_empty(report: Report, settings: ExportSettings) -> str:
    if report.dropped:
        return "the table shows what was dropped"
    return f"the input has no {'runs' if settings.format.whole_runs else 'model calls'}"


def report_lines(report: Report, settings: ExportSettings) -> list[str]:
    """Say where the rows are, and why there are none."""
    files = report.files
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    lines = [f"written: {files[0]}{more}"]
    if not report.rows_out:
        lines.append(f"no rows: {_why_empty(report, settings)}")
        if settings.format.advice:
            lines.append(settings.format.advice)
    for path, count in report.unused_labels:
        what = "1 label; to use it" if count == 1 else f"{count:,} labels; to use them"
        lines.append(f"hint: {path} has {what}, add --labels {path}")
    return lines
