"""The report of an export as inert HTML, with its first rows, for notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ck_pro import markup

if TYPE_CHECKING:
    from ck_pro.trajectory.exporting.job import Report

_ROWS = 3
_MAX_BYTES = 200_000


def report_html(report: Report) -> str:
    """Return the counts of an export and its first rows."""
    counts = [("rows and journals", report.runs), ("model calls in", report.calls_in)]
    counts += [(f"dropped: {name}", count) for name, count in report.dropped.most_common()]
    counts += [("rows out", report.rows_out)]
    counts += [("prompt tokens, estimated", report.prompt_tokens)]
    counts += [("reply tokens, estimated", report.reply_tokens), ("images", report.images)]
    cells = [(name, f"{count:,}") for name, count in counts if count or name == "rows out"]
    files = "".join(markup.label(f"written: {path}") for path in report.files[:5])
    kind = "good" if report.rows_out else "bad"
    badges = [markup.badge(f"{report.rows_out:,} rows", kind)]
    if report.problems:
        badges.append(markup.badge(f"{report.problems:,} problems", "bad"))
    first = _first_rows(report.files[0]) if report.files else ""
    return markup.box("export", badges, markup.table(("", ""), cells) + files + first)


def _first_rows(path: Path) -> str:
    """Show the first rows of a file of JSON lines."""
    if path.suffix != ".jsonl":
        return ""
    shown = []
    try:
        with path.open("rb") as file:
            for number in range(1, _ROWS + 1):
                line = file.readline(_MAX_BYTES)
                if line:
                    shown.append(_row(number, line))
    except OSError:  # the file was moved since
        return ""
    return "".join(shown)


def _row(number: int, line: bytes) -> str:
    try:
        row = json.loads(line)
    except ValueError:  # longer than what was read
        return markup.folded(f"row {number}", markup.block(line.decode("utf-8", "replace")))
    fields = row.items() if isinstance(row, dict) else [("", row)]
    parts = (
        markup.block(v if isinstance(v, str) else json.dumps(v, indent=1, ensure_ascii=False), k)
        for k, v in fields
    )
    return markup.folded(f"row {number}", "".join(parts))
