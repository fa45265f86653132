"""`ExportFormat`: the declaration of one format. Options, checks, help and docs derive from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ck_pro.trajectory.formats.layout import Columns, ImageMode, Layout, Reasoning, TrainingRow
from ck_pro.trajectory.reading.attempts import Try
from ck_pro.trajectory.reading.big_json import Pairs
from ck_pro.trajectory.reading.model_calls import Call
from ck_pro.trajectory.reading.survey import Replies

CallRows = Callable[[Call, Layout], list[TrainingRow]]
RunRow = Callable[[Try, Layout], Mapping[str, Any] | Pairs | None]


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """One format of training data. It has either `call_rows` or `run_row`.

    Args:
        name: value of the option `--format`.
        help: description of a row, for `--help`.
        trainer, row, images: cells of the format's line in the table of `docs/trajectories.md`.
        call_rows: makes the rows of one model call. Raises MessageError if it has none.
        run_row: makes the row of one run; None if the run has no complete step.
        json_images: supported image modes in JSON, the default first; empty: writes no JSON.
        parquet_columns: returns the columns of a Parquet file as features of `datasets`; None:
            writes no Parquet.
        columns: supported values of `--columns`.
        reasoning: supported values of `--reasoning`.
        one_file_per_row: whether the output is a folder, unless its name ends in `.jsonl`.
        kinds_of_rows: returns the special kinds (see `KINDS`) of a call's rows, given the replies
            to all prompts and `--max-pairs`; for formats of preferences, else None.
        per_prompt: whether all calls with one prompt give their rows together.
        reply_columns: columns with replies, if a row has several.
        trained: the turns of `messages` or `conversations` that the trainer trains on: "all",
            the model's "replies", or those "marked" with `training`.
        advice: message for an export without rows.
        finish: called with the written files and whether the rows have images.
    """

    name: str
    help: str
    trainer: str
    row: str
    images: str
    call_rows: CallRows | None = None
    run_row: RunRow | None = None
    json_images: tuple[ImageMode, ...] = ("folder", "drop")
    parquet_columns: Callable[[Layout], dict[str, Any]] | None = None
    columns: tuple[Columns, ...] = ("prompt",)
    reasoning: tuple[Reasoning, ...] = ("drop", "field", "inline")
    one_file_per_row: bool = False
    kinds_of_rows: Callable[[Call, Replies, int], Iterable[str]] | None = None
    per_prompt: bool = False
    reply_columns: tuple[str, ...] = ()
    trained: Literal["all", "replies", "marked"] = "replies"
    advice: str = ""
    finish: Callable[[Sequence[Path], bool], None] | None = None

    @property
    def whole_runs(self) -> bool:
        """Whether a row is a run, not a model call."""
        return self.run_row is not None

    @property
    def preferences(self) -> bool:
        """Whether rows compare replies of several tries."""
        return self.kinds_of_rows is not None

    def image_modes(self, *, parquet: bool) -> tuple[ImageMode, ...]:
        """Return the supported image modes of a kind of output, the default first."""
        return ("embed", "drop") if parquet else self.json_images

    def docs_line(self) -> str:
        """Return the format's line of the table in `docs/trajectories.md`."""
        return f"| `{self.name}` | {self.trainer} | {self.row} | {self.images} |"
