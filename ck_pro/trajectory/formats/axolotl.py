"""axolotl's `chat_template` (0.19): `messages`, images as parts; `training` marks the reply."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import (
    Layout,
    TrainingRow,
    conversation,
    parts_of,
    tools_column,
    with_text_arguments,
)
from ck_pro.trajectory.reading.messages import Message, text_of
from ck_pro.trajectory.reading.model_calls import Call


def axolotl_rows(call: Call, layout: Layout) -> list[TrainingRow]:
    """Make a row with `messages`."""
    stored = iter(layout.stored(call.images))
    messages = []
    for message in conversation(call, layout):
        content = _content(message, layout, stored)
        out = {"role": message["role"], "content": content, "training": False}
        if "tool_calls" in message:
            out["tool_calls"] = with_text_arguments(message["tool_calls"])
        out.update({k: message[k] for k in ("tool_call_id", "reasoning_content") if k in message})
        messages.append(out)
    messages[-1]["training"] = True
    return [{"messages": messages, **tools_column(call, layout), "metadata": call.metadata}]


def _content(message: Message, layout: Layout, stored: Iterator[Any]) -> Any:
    if not layout.has_images:
        return text_of(message)
    out: list[dict[str, str]] = []
    for part in parts_of(message, layout):
        if part["type"] == "text":
            out.append(part)
        elif layout.images == "embed":
            encoded = base64.b64encode(next(stored)["bytes"]).decode()
            out.append({"type": "image", "base64": encoded})
        else:
            out.append({"type": "image", "path": next(stored)})
    return out


FORMAT = ExportFormat(
    name="axolotl",
    help="messages; set `message_field_training: training` to train on the reply only",
    trainer="axolotl",
    row="`messages`, `tools`",
    images="parts with `path` (`--images embed`: `base64`)",
    call_rows=axolotl_rows,
    json_images=("folder", "embed", "drop"),
    trained="marked",
)
