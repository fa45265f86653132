"""Prompts that are too long, made to fit: pure functions over chat messages.

Never touched: system messages and the end of the last message, where the instructions are.
Everything between goes step by step, the oldest first, until the prompt fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ck_pro.exceptions import ModelRefused
from ck_pro.model.types import Message

BYTES_PER_TOKEN = 3.5
"""English prose has about 4 bytes per token, code and page trees about 3: between, on purpose."""
MESSAGE_TOKENS = 4
"""What the frame of a message (role, separators) costs in the chat formats of the field."""
IMAGE_TOKENS = {"low": 85}
"""Tokens of an image by `detail`, as OpenAI counts them; see `IMAGE_TOKENS_HIGH`."""
IMAGE_TOKENS_HIGH = 1105
"""A 1280 x 720 screenshot in high detail: 85 + 6 tiles of 170."""

KEEP_TAIL = 6000
"""Characters at the end of the last message that are never cut: the instructions."""
KEEP_TEXT = 600
"""Characters that stay of any other text that is cut."""
_NOTE = "[{} earlier messages omitted: the prompt was too long]"
_CUT_SIZE = 45  # more than the mark that `cut_middle` puts in


def estimate_tokens(value: str | Sequence[Message]) -> int:
    """About how many tokens a text or a list of messages has. Images count."""
    if isinstance(value, str):
        # of most texts the number of bytes is known without encoding them
        size = len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        return math.ceil(size / BYTES_PER_TOKEN)
    return sum(map(_message_tokens, value))


def _message_tokens(message: Message) -> int:
    content = message.get("content")
    if content.__class__ is str and content.isascii() and "tool_calls" not in message:
        return MESSAGE_TOKENS + math.ceil(len(content) / BYTES_PER_TOKEN)  # as most are
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
    """The messages, shortened where they are longer than allowed.

    In this order, each from the oldest on and only as far as needed: images of the history become
    a word; turns of the history are left out (a reply with what followed it, so that roles and
    tool calls still fit together), which a note in their place says; the longest texts lose their
    middle; images of the last message go.

    Args:
        messages: chat messages; they are not changed.
        max_tokens: by our estimate; None means no limit.

    Returns:
        The messages to send, and whether they were shortened.

    Raises:
        ModelRefused: what must not be cut is by itself too long.
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
            f"the prompt's system text and final instructions alone (about "
            f"{estimate_tokens(work)} tokens) exceed max_prompt_tokens={max_tokens}; raise it"
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
                word = {"type": "text", "text": "[image omitted]"}
                content = [*content[:i], word, *content[i + 1 :]]
                message["content"] = content


def _drop_turns(messages: list[Message], max_tokens: int) -> list[Message]:
    """Leave out the oldest turns between the task and the last message."""
    head = next((i for i, m in enumerate(messages) if not _is_system(m)), len(messages)) + 1
    turns = list(_turns(messages, head))
    if messages[-1].get("role") == "tool":  # it must not lose the call that it answers
        turns = turns[:-1]
    excess = estimate_tokens(messages) - max_tokens
    gone: set[int] = set()
    for turn in turns:
        if excess <= 0:
            break
        if not gone:
            excess += estimate_tokens(_NOTE)
        droppable = [i for i in turn if not _is_system(messages[i])]
        excess -= estimate_tokens([messages[i] for i in droppable])
        gone.update(droppable)
    if not gone:
        return messages
    kept = [m for i, m in enumerate(messages) if i not in gone]
    kept[head - 1] = _with_note(kept[head - 1], _NOTE.format(len(gone)))
    return kept


def _turns(messages: Sequence[Message], head: int) -> Iterator[list[int]]:
    """Indices of the history, cut before every reply of the model."""
    turn: list[int] = []
    for i in range(head, len(messages) - 1):
        if messages[i].get("role") == "assistant" and turn:
            yield turn
            turn = []
        turn.append(i)
    if turn:
        yield turn


def _with_note(message: Message, note: str) -> Message:
    """The note goes into the message before the gap: an extra one could break the order of roles
    that some chat templates insist on."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": note}]}
    return {**message, "content": f"{content or ''}\n\n{note}"}


def _cut_texts(messages: list[Message], max_tokens: int) -> None:
    """Take the middle out of the longest texts, the longest first."""
    tail = int(min(KEEP_TAIL, max(KEEP_TEXT, 0.4 * max_tokens * BYTES_PER_TOKEN)))
    slots = [s for m in messages for s in _slots(m) if not _is_system(m)]
    if not slots:
        return
    last = slots[-1]
    floors = [(s, KEEP_TEXT // 2 + tail if s is last else KEEP_TEXT) for s in slots]
    while (excess := estimate_tokens(messages) - max_tokens) > 0:
        slot, floor = max(floors, key=lambda f: len(f[0].get()) - f[1])
        text = slot.get()
        if len(text) <= floor + _CUT_SIZE:
            return
        size = max(floor, len(text) - math.ceil(excess * BYTES_PER_TOKEN) - 2 * _CUT_SIZE)
        keep_tail = tail if slot is last else size // 2
        slot.set(cut_middle(text, size - keep_tail, keep_tail))


def cut_middle(text: str, head: int, tail: int) -> str:
    """The first `head` and the last `tail` characters, with a mark that says what is gone."""
    gone = len(text) - head - tail
    if gone <= 0:
        return text
    return f"{text[:head]}\n[... {gone} characters omitted ...]\n{text[len(text) - tail :]}"


class _Slot:
    """A text in a message, to be read and replaced."""

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
