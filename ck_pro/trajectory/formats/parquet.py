"""The rows of `sft` as Parquet with typed columns, for TRL and `datasets`."""

from __future__ import annotations

from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.trl import sft_columns, sft_rows

FORMAT = ExportFormat(
    name="parquet",
    help="the rows of sft as Parquet with typed columns",
    trainer="TRL, `datasets`",
    row="as `sft`, with typed columns",
    images="in the file; they load as images",
    call_rows=sft_rows,
    json_images=(),
    parquet_columns=sft_columns,
    columns=("prompt", "messages"),
    trained="all",
)
