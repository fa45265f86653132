"""Settings of an export, their checks, and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ck_pro.exceptions import InputError
from ck_pro.trajectory.exporting.filters import FilterSettings
from ck_pro.trajectory.exporting.html_form import report_html
from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import Columns, ImageMode, Reasoning
from ck_pro.trajectory.reading.sources import check_inputs, require_not_input


@dataclass(frozen=True)
class ExportSettings:
    """Input, output and format of an export.

    Args:
        format: one of `export_formats()`.
        inputs: files of rows, run directories.
        output: the file, or a folder for formats with one file per row.
        filters: what to keep.
        images: where to store images; None means the default of the format.
        columns, reasoning, max_pairs: see `Layout`.
        good_score: lowest score of a good reply (`dpo`, `kto`).
        shard_rows: rows per file.
        force: replace an existing output.
    """

    format: ExportFormat
    inputs: Sequence[Path]
    output: Path
    filters: FilterSettings = field(default_factory=FilterSettings)
    images: ImageMode | None = None
    columns: Columns = "prompt"
    reasoning: Reasoning = "drop"
    good_score: float = 1.0
    max_pairs: int = 1
    shard_rows: int | None = None
    force: bool = False

    @property
    def parquet(self) -> bool:
        """Whether the output is Parquet."""
        return self.output.suffix == ".parquet"

    @property
    def image_mode(self) -> ImageMode:
        """Where images are stored."""
        return self.images or self.format.image_modes(parquet=self.parquet)[0]

    @property
    def filters_in_use(self) -> FilterSettings:
        """The filters; preference formats also keep failed sub-sessions, as bad examples."""
        if self.format.preferences:
            return replace(self.filters, failed_subs="keep")
        return self.filters


@dataclass
class Report:
    """Counts of an export.

    Args:
        runs: rows and journals found.
        problems: of these, the unreadable ones.
        unfinished: of these, journals of runs that have not ended.
        restarted: further journals, of restarted attempts.
        calls_in: model calls found; for formats of whole runs, tries.
        dropped: of these, dropped calls by filter or reason.
        calls_used: of these, calls with a row; for pairs, calls whose prompt has a pair.
        rows_out: training rows written.
        images: image files written.
        files: paths of the output files.
        unmatched: filters whose path or name occurs nowhere in the input, one line each.
        labelled: what labels changed, by its name in the table.
        originals: added calls: replies before their correction, for preferences.
        lost_labels: labels that match no call of the input, one line each.
        label_problems: lines of label files that are not labels.
        unused_labels: label files beside the inputs that the export does not use, with the number
            of their labels.
        prompt_tokens, reply_tokens: estimated tokens of the rows written.
    """

    runs: int = 0
    problems: int = 0
    unfinished: int = 0
    restarted: int = 0
    calls_in: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    calls_used: int = 0
    rows_out: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    images: int = 0
    files: list[Path] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    labelled: Counter[str] = field(default_factory=Counter)
    originals: int = 0
    lost_labels: list[str] = field(default_factory=list)
    label_problems: int = 0
    unused_labels: list[tuple[Path, int]] = field(default_factory=list)

    def _repr_html_(self) -> str:
        """Show the counts and the first rows in a notebook."""
        return report_html(self)


def check_settings(settings: ExportSettings) -> None:
    """Check that the settings fit each other and the inputs exist.

    Raises:
        InputError: they do not; the message names the command-line option.
    """
    for message in _conflicts(settings):
        raise InputError(message)
    check_inputs(settings.inputs)
    if (settings.filters.label or settings.filters.unlabelled == "drop") and not (
        settings.filters.labels
    ):
        raise InputError("--label and --unlabelled drop need --labels FILE")
    require_not_input("--output", settings.output, (*settings.inputs, *settings.filters.labels))


def _conflicts(s: ExportSettings) -> Iterator[str]:
    """Yield a message for each setting that conflicts with the format."""
    f, option = s.format, f"--format {s.format.name}"
    if any(x is not None and x != x for x in (s.filters.min_score, s.filters.max_score)):
        yield "--min-score, --max-score: nan is not a score"
    if s.good_score != s.good_score:
        yield "--good-score: nan is not a score"
    if not s.parquet and not f.json_images:
        yield f"--output {s.output}: {option} writes Parquet, name a file ....parquet"
    if s.parquet and f.parquet_columns is None:
        yield f"--output {s.output}: {option} cannot write Parquet, name a file ....jsonl"
    modes = f.image_modes(parquet=s.parquet)
    if s.images not in (None, *modes):
        output = "Parquet" if s.parquet else option
        can_embed = s.images == "embed" and f.parquet_columns is not None
        advice = "; to embed images, name an output ....parquet" if can_embed else ""
        yield f"--images {s.images}: {output} supports only {' and '.join(modes)}{advice}"
    if s.columns not in f.columns:
        yield f"--columns {s.columns}: {option} has its own columns"
    if s.reasoning not in f.reasoning:
        yield f"--reasoning {s.reasoning}: {option} supports only {' and '.join(f.reasoning)}"
    if f.whole_runs and s.filters.of_calls:
        yield f"{option} exports whole runs: filters of single calls do not apply"
