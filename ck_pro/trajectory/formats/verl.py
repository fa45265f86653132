"""verl (0.9): Parquet `messages` of plain text with tags `<image>`, and `images[{bytes}]`.

Tool calls are text, in the form of Qwen and Hermes models: verl passes messages on unchanged, and
Parquet has no column type for arguments of any shape.
"""

from __future__ import annotations

from typing import Any

from ck_pro.trajectory.formats.arrow_schema import BYTES, METADATA, TEXT, list_of
from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import Layout, TrainingRow, conversation, tagged_text
from ck_pro.trajectory.reading.messages import calls_as_text
from ck_pro.trajectory.reading.model_calls import Call


def verl_rows(call: Call, layout: Layout) -> list[TrainingRow]:
    """Make a row with `messages`."""
    messages = []
    for message in conversation(call, layout):
        text = tagged_text(message, layout) + calls_as_text(message.get("tool_calls", ()))
        messages.append({"role": message["role"], "content": text})
    row: TrainingRow = {"messages": messages, "metadata": call.metadata}
    if layout.has_images:
        row["images"] = [{"bytes": i["bytes"]} for i in layout.stored(call.images)]
    return [row]


def verl_columns(layout: Layout) -> dict[str, Any]:
    """Return the Parquet columns of `verl_rows`."""
    out: dict[str, Any] = {"messages": list_of({"role": TEXT, "content": TEXT})}
    out["metadata"] = dict(METADATA)
    if layout.has_images:
        out["images"] = list_of({"bytes": BYTES})
    return out


FORMAT = ExportFormat(
    name="verl",
    help="Parquet: messages, images[{bytes}]",
    trainer="verl",
    row="Parquet `messages`",
    images="`<image>` tags, `images[{bytes}]`",
    call_rows=verl_rows,
    json_images=(),
    parquet_columns=verl_columns,
    reasoning=("drop", "inline"),
)
