"""What an export is told, and what it tells: settings, their checks, the report."""

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
"""Formats with a row per model call."""
RUN_FORMATS = ("atif", "ckpro")
"""Formats with a row per try."""
FORMATS = (*CALL_FORMATS, *RUN_FORMATS)
PREFERENCES = ("dpo", "kto")
PARQUET_ONLY = ("verl", "parquet")


@dataclass(frozen=True)
class ExportSettings:
    """What to write and where.

    Args:
        format: one of `FORMATS`.
        inputs: files of rows, run directories.
        output: the file (or folder, for `atif`).
        filters: what to keep.
        images: where images go; None takes what fits the format.
        columns, reasoning, max_pairs: see `Layout`.
        good_score: the score from which on a reply counts as good (`dpo`, `kto`).
        shard_rows: rows per file.
        force: replace what is there.
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
        """The filters; failed sub-sessions are examples too where bad ones are wanted."""
        if self.format not in PREFERENCES or self.filters.failed_subs == "keep":
            return self.filters
        return replace(self.filters, failed_subs="keep")


@dataclass
class Report:
    """What came in, what went out, and where the rest stayed.

    Args:
        runs: rows and journals found.
        problems: of these, what could not be read.
        unfinished: of these, journals whose runs have not ended.
        aside: journals beside these, of attempts that the runner moved aside.
        calls_in: model calls found; tries, for formats of whole runs.
        dropped: of these, by the filter or the reason.
        calls_used: the others: of each, its row was written; for `dpo`, a pair of its prompt.
        rows_out: training rows written.
        images: images written to the folder of images.
        files: what was written.
        prompt_tokens, reply_tokens: of the rows written, by our estimate.
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
    """Return if the settings fit each other and the inputs are there.

    Raises:
        InputError: they do not; the message names the option of the command line.
    """
    s, f = settings, settings.filters
    whole = s.format in RUN_FORMATS
    scores = (f.min_score, f.max_score, s.good_score)
    allowed: dict[str, bool] = {
        "--min-score, --max-score, --good-score: nan is no score": (
            all(x is None or x == x for x in scores)
        ),
        f"--output {s.output}: --format {s.format} writes Parquet, name a file ....parquet": (
            s.parquet or s.format not in PARQUET_ONLY
        ),
        f"--output {s.output}: --format {s.format} writes no Parquet, name a file ....jsonl": (
            not s.parquet or s.format in (*PARQUET_ONLY, "sft", *PREFERENCES)
        ),
        "--images folder: Parquet and ckpro hold their images themselves": (
            s.images != "folder" or not (s.parquet or s.format == "ckpro")
        ),
        f"--images embed: --format {s.format} in JSON cannot; name an output ....parquet": (
            s.images != "embed" or s.parquet or s.format not in ("sft", *PREFERENCES)
        ),
        f"--images embed: --format {s.format} names its images by their paths": (
            s.images != "embed" or s.format not in ("sharegpt", "atif")
        ),
        "--images drop: ckpro's rows are whole": s.images != "drop" or s.format != "ckpro",
        f"--columns messages: --format {s.format} has its own columns": (
            s.columns == "prompt" or s.format in ("sft", "parquet")
        ),
        f"--reasoning: --format {s.format} has its own place for it": (
            s.reasoning == "drop" or not whole
        ),
        f"--reasoning field: --format {s.format} has no such field; inline can do it": (
            s.reasoning != "field" or s.format not in ("sharegpt", "verl")
        ),
        f"--format {s.format} takes whole runs: filters of single calls do not apply": (
            not whole or not f.of_calls
        ),
    }
    for message, holds in allowed.items():
        if not holds:
            raise InputError(message)
    check_inputs(s.inputs)
    for path in s.inputs:
        if s.output.exists() and s.output.samefile(path):
            raise InputError(f"--output {s.output} is an input too; name another")
