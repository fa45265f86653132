"""Estimate the tokens of prompts, and shorten prompts that are too long. Pure.

System messages, and the end of the last message with its instructions, stay unchanged. Everything
else is shortened in stages, oldest first, until the prompt fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ck_pro.exceptions import ModelRefused
from ck_pro.model.types import Message

BYTES_PER_TOKEN = 3.5
"""A compromise: English prose has about 4 bytes per token, code and page trees about 3."""
MESSAGE_TOKENS = 4
"""Tokens for a message's role and separators in common chat formats."""
IMAGE_TOKENS = {"low": 85}
"""Tokens of an image by `detail`, as OpenAI counts them; otherwise `IMAGE_TOKENS_HIGH`."""
IMAGE_TOKENS_HIGH = 1105
"""A 1280 x 720 screenshot in high detail: 85 + 6 tiles of 170."""

KEEP_TAIL = 6000
"""Characters at the end of the last message that are always kept: the instructions."""
KEEP_TEXT = 600
"""Minimum length of any other shortened text, in characters."""
_NOTE = "[{} earlier messages omitted: the prompt was too long]"
_MARK_SIZE = 45  # upper bound of the mark that `cut_middle` inserts


def estimate_tokens(value: str | Sequence[Message]) -> int:
    """Return the approximate number of tokens of a text or of messages with their images."""
    if isinstance(value, str):
        # the size of an ASCII text is known without encoding it
        size = len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        return math.ceil(size / BYTES_PER_TOKEN)
    return sum(map(_message_tokens, value))


def _message_tokens(message: Message) -> int:
    content = message.get("content")
    if content.__class__ is str and content.isascii() and "tool_calls" not in message:
        return MESSAGE_TOKENS + math.ceil(len(content) / BYTES_PER_TOKEN)  # the common case, fast
    calls = message.get("tool_calls")
    total = MESSAGE_TOKENS + (estimate_tokens(str(calls)) if calls else 0)
    if isinstance(content, str):
        return total + estimate_tokens(content)
    return total + sum(_part_tokens(p) for p in content or [])


def _part_tokens(part: Any) -> int:
    if isinstance(part, str):
        return estimate_tokens(part)
    if _is_image(part):
        image = part.get("image_url")
        detail = image.get("detail", "") if isinstance(image, dict) else ""
        return IMAGE_TOKENS.get(detail, IMAGE_TOKENS_HIGH)
    return estimate_tokens(str(part.get("text", "")))


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("image_url", "input_image", "image")


def fit(messages: Sequence[Message], max_tokens: int | None) -> tuple[list[Message], bool]:
    """Shorten messages that exceed a limit.

    The stages, each from the oldest message and only as far as needed:

    1. Replace images of the history with a placeholder.
    2. Omit turns of the history: a reply and the messages up to the next one, so that roles and
       tool calls stay consistent. A note replaces them.
    3. Remove the middle of the longest texts.
    4. Replace images of the last message.

    Args:
        messages: chat messages; not modified.
        max_tokens: limit in estimated tokens; None: no limit.

    Returns:
        The messages to send, and whether they were shortened.

    Raises:
        ModelRefused: the parts that must stay exceed the limit.
    """
    if max_tokens is None or estimate_tokens(messages) <= max_tokens:
        return list(messages), False
    work = [dict(m) for m in messages]
    _drop_images(work[:-1], work, max_tokens)
    work = _drop_turns(work, max_tokens)
    _cut_texts(work, max_tokens)
    _drop_images(work[-1:], work, max_tokens)
    if estimate_tokens(work) > max_tokens:
        raise ModelRefused(
            f"the prompt's system text and instructions (about {estimate_tokens(work)} tokens) "
            f"exceed max_prompt_tokens={max_tokens}; raise it"
        )
    return work, True


def _drop_images(among: Sequence[Message], all_: Sequence[Message], max_tokens: int) -> None:
    for message in among:
        content = message.get("content")
        if _is_system(message) or not isinstance(content, list):
            continue
        for i, part in enumerate(content):
            if estimate_tokens(all_) <= max_tokens:
                return
            if _is_image(part):
                placeholder = {"type": "text", "text": "[image omitted]"}
                content = [*content[:i], placeholder, *content[i + 1 :]]
                message["content"] = content


def _drop_turns(messages: list[Message], max_tokens: int) -> list[Message]:
    """Omit the oldest turns between the task and the last message."""
    head = next((i for i, m in enumerate(messages) if not _is_system(m)), len(messages)) + 1
    turns = list(_turns(messages, head))
    if messages[-1].get("role") == "tool":  # keep the call that it is the output of
        turns = turns[:-1]
    excess = estimate_tokens(messages) - max_tokens
    omitted: set[int] = set()
    for turn in turns:
        if excess <= 0:
            break
        if not omitted:
            excess += estimate_tokens(_NOTE)
        droppable = [i for i in turn if not _is_system(messages[i])]
        excess -= estimate_tokens([messages[i] for i in droppable])
        omitted.update(droppable)
    if not omitted:
        return messages
    kept = [m for i, m in enumerate(messages) if i not in omitted]
    kept[head - 1] = _with_note(kept[head - 1], _NOTE.format(len(omitted)))
    return kept


def _turns(messages: Sequence[Message], head: int) -> Iterator[list[int]]:
    """Yield the turns of the history as lists of indices; each turn starts with a reply."""
    turn: list[int] = []
    for i in range(head, len(messages) - 1):
        if messages[i].get("role") == "assistant" and turn:
            yield turn
            turn = []
        turn.append(i)
    if turn:
        yield turn


def _with_note(message: Message, note: str) -> Message:
    """Append the note to the message before the gap: an extra message could break the alternation
    of roles that some chat templates require."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": note}]}
    return {**message, "content": f"{content or ''}\n\n{note}"}


def _cut_texts(messages: list[Message], max_tokens: int) -> None:
    """Remove the middle of the longest texts, longest first."""
    tail = int(min(KEEP_TAIL, max(KEEP_TEXT, 0.4 * max_tokens * BYTES_PER_TOKEN)))
    slots = [s for m in messages for s in _slots(m) if not _is_system(m)]
    if not slots:
        return
    last = slots[-1]
    floors = [(s, KEEP_TEXT // 2 + tail if s is last else KEEP_TEXT) for s in slots]
    while (excess := estimate_tokens(messages) - max_tokens) > 0:
        slot, floor = max(floors, key=lambda f: len(f[0].get()) - f[1])
        text = slot.get()
        if len(text) <= floor + _MARK_SIZE:
            return
        size = max(floor, len(text) - math.ceil(excess * BYTES_PER_TOKEN) - 2 * _MARK_SIZE)
        keep_tail = tail if slot is last else size // 2
        slot.set(cut_middle(text, size - keep_tail, keep_tail))


def cut_middle(text: str, head: int, tail: int) -> str:
    """Return the first `head` and the last `tail` characters, with a mark between them."""
    omitted = len(text) - head - tail
    if omitted <= 0:
        return text
    return f"{text[:head]}\n[... {omitted} characters omitted ...]\n{text[len(text) - tail :]}"


class _Slot:
    """A text in a message that can be replaced."""

    def __init__(self, message: Message, part: int | None):
        self.message, self.part = message, part

    def get(self) -> str:
        content = self.message["content"]
        return str(content if self.part is None else content[self.part]["text"])

    def set(self, text: str) -> None:
        if self.part is None:
            self.message["content"] = text
            return
        content = list(self.message["content"])
        content[self.part] = {**content[self.part], "text": text}
        self.message["content"] = content


def _slots(message: Message) -> list[_Slot]:
    content = message.get("content")
    if isinstance(content, str):
        return [_Slot(message, None)]
    parts = enumerate(content or [])
    return [_Slot(message, i) for i, p in parts if isinstance(p, dict) and p.get("text")]


def _is_system(message: Message) -> bool:
    return message.get("role") in ("system", "developer")
