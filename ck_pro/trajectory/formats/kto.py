"""TRL, unpaired preferences: `prompt, completion, label`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ck_pro.trajectory.formats.arrow_schema import BOOLEAN
from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import Layout, TrainingRow
from ck_pro.trajectory.formats.trl import sft_columns, sft_rows
from ck_pro.trajectory.reading.messages import MessageError
from ck_pro.trajectory.reading.model_calls import Call
from ck_pro.trajectory.reading.survey import Replies, kinds_of


def kto_rows(call: Call, layout: Layout) -> list[TrainingRow]:
    """Make a row with a label: whether the reply is good.

    Raises:
        MessageError: the reward is unknown, or both good and bad tries gave this reply.
    """
    assert layout.replies is not None
    judged = layout.replies.of(call)
    if judged is None:
        raise MessageError("no score")
    if judged.good and judged.bad:
        raise MessageError("reply of good and of bad tries")
    [row] = sft_rows(call, layout)
    return [{**row, "label": judged.good}]


def kto_columns(layout: Layout) -> dict[str, Any]:
    """Return the Parquet columns of `kto_rows`."""
    return {**sft_columns(layout), "label": BOOLEAN}


def _kinds_of_rows(call: Call, replies: Replies, max_pairs: int) -> Iterable[str]:
    judged = replies.of(call)
    return () if judged is None or judged.good == judged.bad else kinds_of(call)


FORMAT = ExportFormat(
    name="kto",
    help="TRL: prompt, completion, label (good or not: --good-score)",
    trainer="TRL",
    row="`prompt, completion, label`",
    images="as `sft`",
    call_rows=kto_rows,
    parquet_columns=kto_columns,
    kinds_of_rows=_kinds_of_rows,
)
