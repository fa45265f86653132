"""Prompts: chat messages, laid out for prefix caches."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import eq, itemgetter
from typing import Any

Message = dict[str, Any]


class Prompt(list[Message]):
    """Chat messages, and the part of them that is the same in every run.

    Attributes:
        instructions: role, rules, functions and the phase's instruction. A replay compares them
            with the recorded ones.
    """

    def __init__(self, messages: Sequence[Message], instructions: str = ""):
        super().__init__(messages)
        self.instructions = instructions or "\n".join(
            text_of(m["content"]) for m in messages if m.get("role") == "system"
        )


def compose_prompt(
    system: str,
    task: str,
    history: Sequence[Message],
    current: str | Sequence[Mapping[str, Any]],
    instruction: str,
) -> Prompt:
    """Lay out a prompt for prefix caches, from the most stable to the most volatile part.

    Args:
        system: role, rules, functions and an example; the same in every phase and step.
        task: the task.
        history: chat messages of the previous steps.
        current: progress state, observation and notices: a text, or parts with images.
        instruction: the phase's instruction.
    """
    parts = [{"type": "text", "text": current}] if isinstance(current, str) else list(current)
    parts = [*parts, {"type": "text", "text": instruction}]
    if all(p["type"] == "text" for p in parts):
        last: Any = "\n\n".join(p["text"] for p in parts if p["text"].strip())
    else:
        last = parts
    messages: list[Message] = [
        {"role": "system", "content": system},
        {"role": "user", "content": f"# Task\n{task}"},
        *history,
        {"role": "user", "content": last},
    ]
    return Prompt(_alternating(messages), f"{system}\n\n{instruction}")


def _alternating(messages: Sequence[Message]) -> list[Message]:
    """Merge adjacent messages of one role, since many chat templates require alternating roles.

    Messages with other fields, such as calls and their outputs, stay separate.
    """
    roles = [*map(_ROLE, messages)]
    out: list[Message] = []
    done = 0
    for index in compress(count(1), map(eq, roles, roles[1:])):  # same role as the message before
        out += messages[done:index]
        done, message = index + 1, messages[index]
        if _plain(out[-1]) and _plain(message):
            joined = _joined(out[-1]["content"], message["content"])
            out[-1] = {**out[-1], "content": joined}
        else:
            out.append(message)
    return [*out, *messages[done:]]


def _plain(message: Message) -> bool:
    return message.keys() == {"role", "content"}


def _joined(a: Any, b: Any) -> Any:
    if isinstance(a, str) and isinstance(b, str):
        return f"{a}\n\n{b}"
    as_parts = [[{"type": "text", "text": x}] if isinstance(x, str) else list(x) for x in (a, b)]
    return as_parts[0] + as_parts[1]


_ROLE = itemgetter("role")
_RUN = re.compile("`+")
_LONGEST_RUN = 20
_TOKEN = re.compile(
    r"<(?=\|[\w/-]{1,40}\|>|\uff5c[^\uff5c\n]{1,40}\uff5c>|(?:start|end)_of_turn>|/s>)"
    r"|\[(?=/?INST\])"
)


def fenced(text: str) -> str:
    """Return a text between fences that are longer than any fence in the text.

    Special tokens of chat templates are escaped (`<|im_start|>` becomes `<\\|im_start|>`), since
    some servers would read them as the end of the message.
    """
    text = _TOKEN.sub(r"\g<0>\\", text)
    text = _RUN.sub(_short_run, text)
    fence = "`" * max(3, 1 + max((len(run) for run in _RUN.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _short_run(run: re.Match[str]) -> str:
    return run[0] if len(run[0]) <= _LONGEST_RUN else f"`[{len(run[0])} backticks]`"


def shown_name(name: str) -> str:
    """Return a file name on one printable line."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def text_of(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts, or None."""
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text", "") for p in content or () if p.get("type") == "text")


def call_text(call: Any) -> str:
    """Return a native call, well-formed or not, as text: `name(arguments)`."""
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return str(call)
    arguments = function.get("arguments") or ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{function.get('name', '')}({text})"


def message_text(message: Message) -> str:
    """Return the text of a message, with its calls."""
    calls = (call_text(call) for call in message.get("tool_calls") or ())
    return "\n".join(t for t in (text_of(message["content"]), *calls) if t)
