"""Separate a model's reasoning text from its reply. Pure."""

from __future__ import annotations

import re

_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking)>", re.IGNORECASE)
_CLOSE_ALONE = re.compile(r"(?<![`'\"])</(think|thinking)>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """Remove `<think>...</think>` from the beginning of a reply.

    Open models write reasoning in this form if the server does not extract it. Three forms occur:

    - closed blocks at the beginning;
    - a block without an end: the reply was truncated, and all of it is reasoning;
    - only an end tag: chat templates of DeepSeek-R1 and Qwen put the start tag into the prompt.

    Tags elsewhere, in quotes or in a code fence, are part of the reply.

    Returns:
        The reply and the reasoning; stripped if there was reasoning.
    """
    reasoning: list[str] = []
    rest = text
    while opened := _OPEN.match(rest):
        closed = _CLOSE.search(rest, opened.end())
        if closed is None:
            reasoning.append(rest[opened.end() :])
            rest = ""
        else:
            reasoning.append(rest[opened.end() : closed.start()])
            rest = rest[closed.end() :]
    if not reasoning:
        closed = _CLOSE_ALONE.search(rest)
        if closed is not None and rest[: closed.start()].count("```") % 2 == 0:
            reasoning.append(rest[: closed.start()])
            rest = rest[closed.end() :]
    if not reasoning:
        return text, ""
    return rest.strip(), "\n".join(r.strip() for r in reasoning).strip()
