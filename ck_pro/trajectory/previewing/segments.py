"""A training row as texts in order, each with its role and what the trainer does with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.reading.messages import calls_as_text

Use = Literal["context", "trained", "chosen", "rejected"]
"""Only read; trained on; preferred; preferred less."""

_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "function_call": "assistant",
    "observation": "tool",
}
_MODEL = ("gpt", "function_call")
IMAGE = "[image]"


@dataclass(frozen=True)
class Segment:
    """A turn of a training row.

    Args:
        role: "system", "user", "assistant" or "tool".
        text: its text, with its tool calls, and `[image]` for each image.
        use: what the trainer does with it.
    """

    role: str
    text: str
    use: Use


def segments_of(row: Mapping[str, Any], form: ExportFormat) -> list[Segment]:
    """Return the turns of a row of one model call."""
    return list(_segments(row, form))


def _segments(row: Mapping[str, Any], form: ExportFormat) -> Iterator[Segment]:
    if "conversations" in row:
        if row.get("system"):
            yield Segment("system", row["system"], "context")
        for turn in row["conversations"]:
            use: Use = "trained" if turn["from"] in _MODEL else "context"
            yield Segment(_ROLES[turn["from"]], turn["value"], use)
        return
    for message in row.get("messages", ()):
        by_kind = {"all": True, "replies": message["role"] == "assistant"}
        trained = by_kind.get(form.trained, bool(message.get("training")))
        yield _segment(message, "trained" if trained else "context")
    columns: tuple[tuple[str, Use], ...] = (
        ("prompt", "context"),
        ("completion", "trained" if row.get("label", True) else "rejected"),
        ("chosen", "chosen"),
        ("rejected", "rejected"),
    )
    if row.get("label"):
        columns = (columns[0], ("completion", "chosen"))
    for name, use in columns:
        for message in row.get(name, ()):
            yield _segment(message, use)


def _segment(message: Mapping[str, Any], use: Use) -> Segment:
    texts = [_content(message["content"])]
    if message.get("reasoning_content"):
        texts.insert(0, f"<think>\n{message['reasoning_content']}\n</think>")
    text = "\n\n".join(t for t in texts if t) + calls_as_text(message.get("tool_calls") or ())
    return Segment(str(message["role"]), text, use)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] if p["type"] == "text" else IMAGE for p in content)
