"""Settings of an export, their checks, and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ck_pro.exceptions import InputError
from ck_pro.trajectory.exporting.filters import FilterSettings
from ck_pro.trajectory.formats.rows import Columns, ImageMode, Reasoning
from ck_pro.trajectory.reading.sources import check_inputs

CALL_FORMATS = ("sft", "dpo", "kto", "sharegpt", "axolotl", "verl", "parquet")
"""Formats with one row per model call."""
RUN_FORMATS = ("atif", "ckpro")
"""Formats with one row per try."""
FORMATS = (*CALL_FORMATS, *RUN_FORMATS)
PREFERENCES = ("dpo", "kto")
PARQUET_ONLY = ("verl", "parquet")


@dataclass(frozen=True)
class ExportSettings:
    """Input, output and format of an export.

    Args:
        format: one of `FORMATS`.
        inputs: files of rows, run directories.
        output: the file (or folder, for `atif`).
        filters: what to keep.
        images: where to store images; None selects what suits the format.
        columns, reasoning, max_pairs: see `Layout`.
        good_score: lowest score of a good reply (`dpo`, `kto`).
        shard_rows: rows per file.
        force: replace an existing output.
    """

    format: str
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
        """Where images go."""
        return self.images or ("embed" if self.parquet or self.format == "ckpro" else "folder")

    @property
    def filters_in_use(self) -> FilterSettings:
        """The filters; preference formats also keep failed sub-sessions, as bad examples."""
        if self.format not in PREFERENCES or self.filters.failed_subs == "keep":
            return self.filters
        return replace(self.filters, failed_subs="keep")


@dataclass
class Report:
    """Counts of an export.

    Args:
        runs: rows and journals found.
        problems: of these, the unreadable ones.
        unfinished: of these, journals of runs that have not ended.
        aside: further journals, of restarted attempts.
        calls_in: model calls found; for formats of whole runs, tries.
        dropped: of these, dropped calls by filter or reason.
        calls_used: of these, calls with a row; for `dpo`, calls whose prompt has a pair.
        rows_out: training rows written.
        images: image files written.
        files: paths of the output files.
        prompt_tokens, reply_tokens: estimated tokens of the rows written.
    """

    runs: int = 0
    problems: int = 0
    unfinished: int = 0
    aside: int = 0
    calls_in: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    calls_used: int = 0
    rows_out: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    images: int = 0
    files: list[Path] = field(default_factory=list)


def check_settings(settings: ExportSettings) -> None:
    """Check that the settings fit each other and the inputs exist.

    Raises:
        InputError: they do not; the message names the command-line option.
    """
    s, f = settings, settings.filters
    whole = s.format in RUN_FORMATS
    scores = (f.min_score, f.max_score, s.good_score)
    allowed: dict[str, bool] = {
        "--min-score, --max-score, --good-score: nan is not a score": (
            all(x is None or x == x for x in scores)
        ),
        f"--output {s.output}: --format {s.format} writes Parquet, name a file ....parquet": (
            s.parquet or s.format not in PARQUET_ONLY
        ),
        f"--output {s.output}: --format {s.format} cannot write Parquet, name a file ....jsonl": (
            not s.parquet or s.format in (*PARQUET_ONLY, "sft", *PREFERENCES)
        ),
        "--images folder: Parquet and ckpro rows contain their images": (
            s.images != "folder" or not (s.parquet or s.format == "ckpro")
        ),
        f"--images embed: --format {s.format} in JSON cannot; name an output ....parquet": (
            s.images != "embed" or s.parquet or s.format not in ("sft", *PREFERENCES)
        ),
        f"--images embed: --format {s.format} refers to images by path": (
            s.images != "embed" or s.format not in ("sharegpt", "atif")
        ),
        "--images drop: ckpro rows always contain their images": (
            s.images != "drop" or s.format != "ckpro"
        ),
        f"--columns messages: --format {s.format} has its own columns": (
            s.columns == "prompt" or s.format in ("sft", "parquet")
        ),
        f"--reasoning: --format {s.format} always stores it in its own field": (
            s.reasoning == "drop" or not whole
        ),
        f"--reasoning field: --format {s.format} has no such field; use --reasoning inline": (
            s.reasoning != "field" or s.format not in ("sharegpt", "verl")
        ),
        f"--format {s.format} exports whole runs: filters of single calls do not apply": (
            not whole or not f.of_calls
        ),
    }
    for message, holds in allowed.items():
        if not holds:
            raise InputError(message)
    check_inputs(s.inputs)
    for path in s.inputs:
        if s.output.exists() and s.output.samefile(path):
            raise InputError(f"--output {s.output} is also an input; name another file")
