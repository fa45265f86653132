"""Rows and Parquet columns that the formats of TRL share, as its version 1.16 loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.trajectory.formats.arrow_schema import (
    IMAGES,
    JSON,
    METADATA,
    NUMBER,
    TEXT,
    list_of,
)
from ck_pro.trajectory.formats.layout import (
    Layout,
    TrainingRow,
    parts_of,
    tools_column,
    with_text_arguments,
)
from ck_pro.trajectory.reading.messages import Message, text_of
from ck_pro.trajectory.reading.model_calls import Call

OF_REPLY = ("try", "session", "status", "reward", "scored", "label", "corrected")
"""Keys of the metadata that describe one reply, not its prompt."""


def trl_row(call: Call, layout: Layout, parts: Mapping[str, list[Message]]) -> TrainingRow:
    """Make a row.

    Args:
        call: the model call.
        layout: of the export.
        parts: columns of messages.
    """
    columns = {k: [_message(m, layout) for m in v] for k, v in parts.items()}
    if layout.columns == "messages":
        columns = {"messages": [m for v in columns.values() for m in v]}
    row: TrainingRow = {**columns, **tools_column(call, layout)}
    if layout.has_images:
        row["images"] = layout.stored(call.images)
    return {**row, "metadata": call.metadata}


def sft_rows(call: Call, layout: Layout) -> list[TrainingRow]:
    """Make a row with `prompt` and `completion`, or with `messages`."""
    reply = layout.reply(call.reply, call.reasoning)
    return [trl_row(call, layout, {"prompt": call.prompt, "completion": [reply]})]


def _message(message: Message, layout: Layout) -> Message:
    if layout.text_arguments and "tool_calls" in message:
        message = {**message, "tool_calls": with_text_arguments(message["tool_calls"])}
    if not layout.has_images:
        return {**message, "content": text_of(message)}
    return {**message, "content": parts_of(message, layout)}


def trl_columns(layout: Layout, parts: Sequence[str]) -> dict[str, Any]:
    """Return the Parquet columns of rows with these columns of messages."""
    message: dict[str, Any] = {"role": TEXT}
    message["content"] = list_of({"type": TEXT, "text": TEXT}) if layout.has_images else TEXT
    if layout.has_tool_calls:
        function = {"name": TEXT, "arguments": JSON}
        message["tool_calls"] = list_of({"id": TEXT, "type": TEXT, "function": function})
        message["tool_call_id"] = TEXT
    if layout.has_reasoning and layout.reasoning == "field":
        message["reasoning_content"] = TEXT
    names = ("messages",) if layout.columns == "messages" else parts
    out: dict[str, Any] = {name: list_of(message) for name in names}
    if layout.has_tools:
        out["tools"] = TEXT
    if layout.has_images:
        out["images"] = IMAGES
    return {**out, "metadata": dict(METADATA)}


def sft_columns(layout: Layout) -> dict[str, Any]:
    """Return the Parquet columns of `sft_rows`."""
    return trl_columns(layout, ("prompt", "completion"))


def pair_metadata() -> dict[str, Any]:
    """Return the columns of the metadata of a pair."""
    kept = {k: v for k, v in METADATA.items() if k not in OF_REPLY}
    rewards = {"chosen_reward": NUMBER, "rejected_reward": NUMBER}
    return {**kept, **rewards, "chosen_label": TEXT, "rejected_label": TEXT}
