"""Reasoning text that a model puts into its reply, told from the reply itself. Pure."""

from __future__ import annotations

import re

_OPEN = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSE = re.compile(r"</(think|thinking)>", re.IGNORECASE)
_CLOSE_ALONE = re.compile(r"(?<![`'\"])</(think|thinking)>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str]:
    """Take `<think>...</think>` off the beginning of a reply.

    Open models write their reasoning so when the server does not parse it out. Three forms:
    closed blocks at the beginning; one that is never closed (the reply was cut off, so all of it
    is reasoning); and a closing tag alone (chat templates of DeepSeek-R1 and Qwen put the opening
    one into the prompt). Tags elsewhere, in quotes or in a code fence, are part of the reply.

    Returns:
        The reply and the reasoning, both stripped where something was taken off.
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
