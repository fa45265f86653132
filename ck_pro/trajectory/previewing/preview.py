"""Run an export without files, and collect what it would train on."""

from __future__ import annotations

import heapq
import tempfile
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.exporting.job import ExportSettings, Report, check_settings
from ck_pro.trajectory.exporting.pipeline import export
from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.previewing.segments import Segment, segments_of
from ck_pro.trajectory.previewing.token_counter import TokenCounter, tools_of
from ck_pro.trajectory.reading.sources import Problem

LONGEST = 5
_QUANTILES = (0.0, 0.5, 0.9, 0.99, 1.0)
_NAMES = ("min", "median", "p90", "p99", "max")
_PLACE = ("task_id", "try", "agent_path", "step", "phase")


@dataclass(frozen=True)
class PreviewRow:
    """A row of the export.

    Args:
        number: its index in the export.
        tokens: length of its longest sequence: the prompt with one reply.
        trained: tokens of the parts that the trainer trains on.
        segments: its turns.
        metadata: the row's.
    """

    number: int
    tokens: int
    trained: int
    segments: list[Segment]
    metadata: Mapping[str, Any]

    @property
    def place(self) -> dict[str, Any]:
        """The row's number, place in the runs, and tokens."""
        facts = {k: self.metadata[k] for k in _PLACE if k in self.metadata}
        return {"row": self.number, **facts, "tokens": self.tokens, "trained": self.trained}


@dataclass
class Preview:
    """What an export would train on.

    Args:
        format, tokenizer: their names.
        limit: length in tokens; longer rows count as `over`.
        rows: number of rows.
        lengths, trained: tokens of each row.
        over: number of rows longer than `limit`.
        refused: number of rows that the chat template refuses, whose tokens are those of the
            texts; `refusal` is the first reason.
        shown: the rows to show.
        longest: the longest rows, longest first.
        report: counts of the export.
        partial: whether the preview stopped before the end of the input.
    """

    format: str
    tokenizer: str
    limit: int | None = None
    rows: int = 0
    lengths: array[int] = field(default_factory=lambda: array("q"))
    trained: array[int] = field(default_factory=lambda: array("q"))
    over: int = 0
    refused: int = 0
    refusal: str = ""
    shown: list[PreviewRow] = field(default_factory=list)
    longest: list[PreviewRow] = field(default_factory=list)
    report: Report = field(default_factory=Report)
    partial: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the preview as JSON values."""
        return {
            "format": self.format,
            "tokenizer": self.tokenizer,
            "rows": self.rows,
            "partial": self.partial,
            "tokens": distribution(self.lengths),
            "trained": distribution(self.trained),
            "histogram": histogram(self.lengths),
            "over": {"limit": self.limit, "rows": self.over},
            "refused": {"rows": self.refused, "reason": self.refusal},
            "dropped": dict(self.report.dropped),
            "labelled": {k: n for k, n in self.report.labelled.items() if n},
            "longest": [row.place for row in self.longest],
            "shown": [
                {
                    **row.place,
                    "metadata": dict(row.metadata),
                    "segments": [
                        {"role": s.role, "use": s.use, "text": s.text} for s in row.segments
                    ],
                }
                for row in self.shown
            ],
        }


def distribution(values: Sequence[int]) -> dict[str, int | float]:
    """Return the sum, mean and quantiles of token counts; empty without rows."""
    if not values:
        return {}
    ordered = sorted(values)
    last = len(ordered) - 1
    quantiles = [ordered[round(q * last)] for q in _QUANTILES]
    total = sum(ordered)
    named = dict(zip(_NAMES, quantiles, strict=True))
    return {"sum": total, "mean": round(total / len(ordered), 1), **named}


def histogram(values: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return `(low, high, count)` with `low <= tokens < high`; powers of two between the ends."""
    if not values:
        return []
    counts: dict[int, int] = {}
    for value in values:
        power = value.bit_length()
        counts[power] = counts.get(power, 0) + 1
    return [
        (2 ** (p - 1) if p else 0, 2**p, counts.get(p, 0))
        for p in range(min(counts), max(counts) + 1)
    ]


def preview_export(
    settings: ExportSettings,
    counter: TokenCounter,
    *,
    show: int = 3,
    skip: int = 0,
    show_longest: bool = False,
    max_rows: int | None = None,
    on_problem: Callable[[Problem], None] = lambda p: None,
) -> Preview:
    """Run an export without writing files.

    Args:
        settings: of the export; its output is ignored, and `max_tokens` is a limit that rows may
            exceed: they are counted, not dropped.
        counter: counts tokens.
        show: number of rows to show.
        skip: number of rows before these.
        show_longest: show the longest rows instead.
        max_rows: stop after so many rows.
        on_problem: called with each problem of the input.

    Raises:
        InputError: the format exports whole runs, or the settings do not fit.
    """
    form = settings.format
    if form.whole_runs:
        raise InputError(f"--format {form.name} exports whole runs; preview another format")
    limit = settings.filters.max_tokens
    preview = Preview(form.name, counter.name, limit)
    sink = _Sink(form, counter, preview, (skip, skip + show), max_rows, show if show_longest else 0)
    with tempfile.TemporaryDirectory(prefix="ck-preview-") as folder:
        suffix = "jsonl" if form.json_images else "parquet"
        settings = replace(
            settings,
            output=Path(folder) / f"preview.{suffix}",
            filters=replace(settings.filters, max_tokens=None),
        )
        check_settings(settings)
        try:
            preview.report = export(settings, on_problem, sink)
        except _EnoughError:
            preview.partial = True
    preview.longest = [row for _, _, row in sorted(sink.heap, key=lambda one: one[:2])][::-1]
    if show_longest:
        preview.shown = preview.longest[:show]
    preview.longest = preview.longest[:LONGEST]
    return preview


class _EnoughError(Exception):
    """Stops an export after `max_rows`."""


class _Sink:
    """A `RowSink` that counts rows and keeps some of them."""

    def __init__(
        self,
        form: ExportFormat,
        counter: TokenCounter,
        preview: Preview,
        shown: tuple[int, int],
        max_rows: int | None,
        keep_longest: int,
    ):
        self.form, self.counter, self.preview = form, counter, preview
        self.shown, self.max_rows = range(*shown), max_rows
        self.heap: list[tuple[int, int, PreviewRow]] = []
        self.keep = max(LONGEST, keep_longest)
        self.files: list[Path] = []

    def write(self, row: Any, task_id: str = "") -> None:
        """Count a row."""
        preview = self.preview
        if self.max_rows is not None and preview.rows >= self.max_rows:
            raise _EnoughError
        number = preview.rows
        segments = segments_of(row, self.form)
        found = PreviewRow(
            number, self._length(row, segments), self._trained(segments), segments, row["metadata"]
        )
        preview.rows += 1
        preview.lengths.append(found.tokens)
        preview.trained.append(found.trained)
        preview.over += preview.limit is not None and found.tokens > preview.limit
        if number in self.shown:
            preview.shown.append(found)
        heapq.heappush(self.heap, (found.tokens, -number, found))
        if len(self.heap) > self.keep:
            heapq.heappop(self.heap)

    def _length(self, row: Mapping[str, Any], segments: list[Segment]) -> int:
        """Return the tokens of the longest sequence that the trainer makes from a row."""
        uses = {s.use for s in segments} & {"chosen", "rejected"}
        sequences = [[s for s in segments if s.use in ("context", u)] for u in uses] or [segments]
        try:
            return max(self.counter.length(s, tools_of(row)) for s in sequences)
        except InputError as e:
            self.preview.refused += 1
            self.preview.refusal = self.preview.refusal or str(e)
            return max(sum(self.counter.count(s.text) for s in one) for one in sequences)

    def _trained(self, segments: list[Segment]) -> int:
        return sum(self.counter.count(s.text) for s in segments if s.use != "context")

    def commit(self) -> None:
        """Do nothing: there are no files."""

    def abandon(self) -> None:
        """Do nothing: there are no files."""
