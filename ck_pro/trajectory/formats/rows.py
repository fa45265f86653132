"""Model calls as training rows: one function per format. See `docs/trajectories.md`.

What each trainer takes was measured with its own loader: TRL 1.16, axolotl 0.19, verl 0.9
(LLaMA-Factory's is in `ck_pro.trajectory.formats.sharegpt`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ck_pro.trajectory.exporting.images import ImageFolder, check_image
from ck_pro.trajectory.formats.chat import Image, Message, MessageError, calls_as_text, text_of
from ck_pro.trajectory.reading.model_calls import Call
from ck_pro.trajectory.reading.survey import Replies, pairs

Row = dict[str, Any]
ImageMode = Literal["folder", "embed", "drop"]
Columns = Literal["prompt", "messages"]
Reasoning = Literal["drop", "field", "inline"]
_PLACEHOLDERS = ("image", "video", "audio")


@dataclass
class Layout:
    """How rows are to be written; the same for all rows of an export.

    Args:
        images: where images go.
        columns: "prompt" and completion apart, or all "messages" in one list (`sft`, `parquet`).
        reasoning: what becomes of the model's reasoning text: left out, a field of its own
            (`reasoning_content`) or inline between <think> and </think>.
        has_images, has_tools: whether any row of the export has them: all rows then have the
            columns, and text of messages is a list of parts when there are images.
        text_arguments: write arguments of tool calls as JSON text, for Parquet.
        folder: for the mode "folder".
        replies: for preferences.
        max_pairs: of one prompt.
    """

    images: ImageMode
    columns: Columns = "prompt"
    reasoning: Reasoning = "drop"
    has_images: bool = False
    has_tools: bool = False
    text_arguments: bool = False
    folder: ImageFolder | None = None
    replies: Replies | None = None
    max_pairs: int = 1

    def stored(self, images: Sequence[Image]) -> list[Any]:
        """What rows hold of these images: paths, or `{"bytes", "path"}`."""
        if self.images == "drop":
            return []
        if self.images == "embed":
            for image in images:
                check_image(image)
            return [{"bytes": i.data, "path": i.name} for i in images]
        assert self.folder is not None
        return [self.folder.put(i) for i in images]

    def reply(self, reply: Message, reasoning: str) -> Message:
        """A reply with its reasoning, as the setting says."""
        if not reasoning or self.reasoning == "drop":
            return reply
        if self.reasoning == "field":
            return {**reply, "reasoning_content": reasoning}
        return {**reply, "content": f"<think>\n{reasoning}\n</think>\n\n{reply['content']}"}


Builder = Callable[[Call, Layout], list[Row]]


def sft_rows(call: Call, layout: Layout) -> list[Row]:
    """TRL, supervised: `prompt` and `completion` (only the latter is trained on), or `messages`."""
    reply = layout.reply(call.reply, call.reasoning)
    return [_trl_row(call, layout, {"prompt": call.prompt, "completion": [reply]})]


def dpo_rows(call: Call, layout: Layout) -> list[Row]:
    """TRL, preferences: `prompt, chosen, rejected`, all pairs of the call's prompt."""
    assert layout.replies is not None
    rows = []
    for good, bad in pairs(layout.replies.to(call), layout.max_pairs):
        chosen = layout.reply(good.reply, good.reasoning)
        rejected = layout.reply(bad.reply, bad.reasoning)
        parts = {"prompt": call.prompt, "chosen": [chosen], "rejected": [rejected]}
        row = _trl_row(call, layout, parts)
        row["metadata"] = {**_of_prompt(call), "chosen_reward": good.value}
        row["metadata"]["rejected_reward"] = bad.value
        rows.append(row)
    return rows


def kto_rows(call: Call, layout: Layout) -> list[Row]:
    """TRL, unpaired preferences: `prompt, completion, label`.

    Raises:
        MessageError: the worth of the reply is not known, or both good and bad tries gave it.
    """
    assert layout.replies is not None
    judged = layout.replies.of(call)
    if judged is None:
        raise MessageError("no score")
    if judged.good and judged.bad:
        raise MessageError("reply of good and of bad tries")
    [row] = sft_rows(call, layout)
    return [{**row, "label": judged.good}]


def axolotl_rows(call: Call, layout: Layout) -> list[Row]:
    """axolotl's `chat_template`: `messages`, images as parts; `training` marks the reply."""
    stored = iter(layout.stored(call.images))
    messages = []
    for message in (*call.prompt, layout.reply(call.reply, call.reasoning)):
        content = _axolotl_content(message, layout, stored)
        out = {"role": message["role"], "content": content, "training": False}
        if "tool_calls" in message:
            out["tool_calls"] = _textual_arguments(message["tool_calls"])
        out.update({k: message[k] for k in ("tool_call_id", "reasoning_content") if k in message})
        messages.append(out)
    messages[-1]["training"] = True
    return [{"messages": messages, **_tools(call, layout), "metadata": call.metadata}]


def _axolotl_content(message: Message, layout: Layout, stored: Any) -> Any:
    if not layout.has_images:
        return text_of(message)
    out: list[dict[str, str]] = []
    for part in _parts(message, layout):
        if part["type"] == "text":
            out.append(part)
        elif layout.images == "embed":
            encoded = base64.b64encode(next(stored)["bytes"]).decode()
            out.append({"type": "image", "base64": encoded})
        else:
            out.append({"type": "image", "path": next(stored)})
    return out


def verl_rows(call: Call, layout: Layout) -> list[Row]:
    """verl: `messages` of plain text, `<image>` where an image is, `images[{bytes}]`.

    Tool calls are text in the form that Qwen and Hermes models use, since verl's loader hands
    messages on as they are and Parquet has no column for arguments of any shape.
    """
    messages = []
    for message in (*call.prompt, layout.reply(call.reply, call.reasoning)):
        text = tagged_text(message, layout) + calls_as_text(message.get("tool_calls", ()))
        messages.append({"role": message["role"], "content": text})
    row: Row = {"messages": messages, "metadata": call.metadata}
    if layout.has_images:
        row["images"] = [{"bytes": i["bytes"]} for i in layout.stored(call.images)]
    return [row]


def tagged_text(message: Message, layout: Layout) -> str:
    """A message's text with `<image>` for each image; such tags in the text itself are defused."""
    out = []
    for part in _parts(message, layout):
        text = "<image>" if part["type"] == "image" else part["text"]
        if part["type"] == "text":
            for name in _PLACEHOLDERS:
                text = text.replace(f"<{name}>", f"&lt;{name}&gt;")
        out.append(text)
    return "\n".join(out)


def _trl_row(call: Call, layout: Layout, parts: Mapping[str, list[Message]]) -> Row:
    shown = {k: [_trl_message(m, layout) for m in v] for k, v in parts.items()}
    if layout.columns == "messages":
        shown = {"messages": [m for v in shown.values() for m in v]}
    row: Row = {**shown, **_tools(call, layout)}
    if layout.has_images:
        row["images"] = layout.stored(call.images)
    return {**row, "metadata": call.metadata}


def _trl_message(message: Message, layout: Layout) -> Message:
    if layout.text_arguments and "tool_calls" in message:
        message = {**message, "tool_calls": _textual_arguments(message["tool_calls"])}
    if not layout.has_images:
        return {**message, "content": text_of(message)}
    return {**message, "content": _parts(message, layout)}


def _parts(message: Message, layout: Layout) -> list[dict[str, Any]]:
    """The content as parts, without images where none are wanted."""
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [p for p in content if p["type"] == "text" or layout.images != "drop"]


def _tools(call: Call, layout: Layout) -> Row:
    return {"tools": json.dumps(call.tools, ensure_ascii=False)} if layout.has_tools else {}


def _textual_arguments(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**c, "function": {**c["function"], "arguments": json.dumps(c["function"]["arguments"])}}
        for c in calls
    ]


def _of_prompt(call: Call) -> Row:
    """What metadata says of a prompt, without what belongs to one reply."""
    own = ("try", "session", "status", "reward", "scored")
    return {k: v for k, v in call.metadata.items() if k not in own}
