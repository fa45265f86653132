"""TRL, supervised fine-tuning: `prompt` and `completion`. TRL trains on the completion only."""

from __future__ import annotations

from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.trl import sft_columns, sft_rows

FORMAT = ExportFormat(
    name="sft",
    help="TRL: prompt + completion (--columns messages: one list)",
    trainer="TRL",
    row="`prompt` + `completion` (trained on the completion only); `--columns messages`: one list",
    images='`images`: paths; `{"type": "image"}` parts',
    call_rows=sft_rows,
    parquet_columns=sft_columns,
    columns=("prompt", "messages"),
    trained="all",
)
