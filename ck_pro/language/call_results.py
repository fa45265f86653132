"""The results of several calls of one reply: one text for each call, labelled with it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.language.prompt import fenced, shown_name
from ck_pro.model.shorten import cut_middle
from ck_pro.session.observed import observation_text

_LABEL_CHARS = 60
"""Limit of a name or an id in a label."""


def split_results(observed: Any, shown: str, count: int) -> list[str]:
    """Return the results of a reply's calls, shortened to the length of `shown` in total.

    Args:
        observed: the step's observation: a list of results, or another value if the step has one
            call or was interrupted.
        shown: the observation as one text, shortened for prompts.
        count: number of calls.

    Returns:
        One text per result, or `[shown]` if the observation is not a list of `count` results.
    """
    if count < 2 or not isinstance(observed, list) or len(observed) != count:
        return [shown]
    texts = [observation_text(result).strip("\n") for result in observed]
    if sum(map(len, texts)) <= len(shown):
        return texts
    share = len(shown) // len(texts)
    return [cut_middle(t, share // 2, share // 2) if len(t) > share else t for t in texts]


def labelled_results(action: Mapping[str, Any], shown: str) -> str:
    """Return the observation of a step for its prompt: each result fenced, with its call as label.

    Args:
        action: the step's action. Its `code` has one line per call.
        shown: the observation as one text, shortened for prompts.
    """
    lines = action["code"].split("\n")
    texts = split_results(action.get("observation"), shown, len(lines))
    if len(texts) == 1:
        return fenced(texts[0])
    calls = action.get("llm_info", {}).get("tool_calls") or []
    labels = [_label(calls, lines, n) for n in range(len(texts))]
    return "\n".join(f"{a}\n{fenced(t)}" for a, t in zip(labels, texts, strict=True))


def _label(calls: Sequence[Mapping[str, Any]], lines: Sequence[str], n: int) -> str:
    """Return the label of a result: "Call 2, search (call_b):"."""
    name = shown_name(lines[n].partition("(")[0])[:_LABEL_CHARS]
    call_id = str(calls[n].get("id") or "") if len(calls) == len(lines) else ""
    shown_id = f" ({shown_name(call_id)[:_LABEL_CHARS]})" if call_id else ""
    return f"Call {n + 1}, {name}{shown_id}:"
