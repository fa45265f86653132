"""How the rows of an export look: `Layout`, and the parts of rows that several formats share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ck_pro.trajectory.formats.images import ImageFolder, check_image
from ck_pro.trajectory.reading.messages import Image, Message
from ck_pro.trajectory.reading.model_calls import Call
from ck_pro.trajectory.reading.survey import Replies

TrainingRow = dict[str, Any]
ImageMode = Literal["folder", "embed", "drop"]
Columns = Literal["prompt", "messages"]
Reasoning = Literal["drop", "field", "inline"]
_PLACEHOLDERS = ("image", "video", "audio")


@dataclass
class Layout:
    """The layout of all rows of an export.

    Args:
        images: where images are stored.
        columns: "prompt" and completion, or one list of "messages".
        reasoning: where the model's reasoning goes: "drop", "field" (`reasoning_content`), or
            "inline" between <think> and </think>.
        has_images, has_tools, has_tool_calls, has_reasoning: whether any row of the export has
            them; every row then has the same columns. With images, message texts are lists of
            parts.
        text_arguments: whether arguments of tool calls are JSON text, for Parquet.
        keep_unreadable: whether runs keep replies that the agent could not read.
        folder: stores the images, in the mode "folder".
        replies: the replies to each prompt, for preferences.
        max_pairs: maximum number of pairs per prompt.
    """

    images: ImageMode
    columns: Columns = "prompt"
    reasoning: Reasoning = "drop"
    has_images: bool = False
    has_tools: bool = False
    has_tool_calls: bool = False
    has_reasoning: bool = False
    text_arguments: bool = False
    keep_unreadable: bool = False
    folder: ImageFolder | None = None
    replies: Replies | None = None
    max_pairs: int = 1

    def stored(self, images: Sequence[Image]) -> list[Any]:
        """Store images; return their paths, or `{"bytes", "path"}` for embedded images."""
        if self.images == "drop":
            return []
        if self.images == "embed":
            for image in images:
                check_image(image)
            return [{"bytes": i.data, "path": i.name} for i in images]
        assert self.folder is not None
        return [self.folder.put(i) for i in images]

    def reply(self, reply: Message, reasoning: str) -> Message:
        """Return a reply with its reasoning in the configured place."""
        if not reasoning or self.reasoning == "drop":
            return reply
        if self.reasoning == "field":
            return {**reply, "reasoning_content": reasoning}
        return {**reply, "content": f"<think>\n{reasoning}\n</think>\n\n{reply['content']}"}


def conversation(call: Call, layout: Layout) -> list[Message]:
    """Return the prompt and the reply as one list."""
    return [*call.prompt, layout.reply(call.reply, call.reasoning)]


def parts_of(message: Message, layout: Layout) -> list[dict[str, Any]]:
    """Return the content of a message as parts; without images if the layout drops them."""
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [p for p in content if p["type"] == "text" or layout.images != "drop"]


def tagged_text(message: Message, layout: Layout) -> str:
    """Return the text with a tag `<image>` per image; escape such tags in the text itself."""
    out = []
    for part in parts_of(message, layout):
        text = "<image>" if part["type"] == "image" else part["text"]
        if part["type"] == "text":
            for name in _PLACEHOLDERS:
                text = text.replace(f"<{name}>", f"&lt;{name}&gt;")
        out.append(text)
    return "\n".join(out)


def tools_column(call: Call, layout: Layout) -> TrainingRow:
    """Return the column `tools` as JSON text, if any row of the export has tools."""
    return {"tools": json.dumps(call.tools, ensure_ascii=False)} if layout.has_tools else {}


def with_text_arguments(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return tool calls with their arguments as JSON text."""
    return [
        {**c, "function": {**c["function"], "arguments": json.dumps(c["function"]["arguments"])}}
        for c in calls
    ]
