"""The calls of a reply and their results as messages of the history. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.language.prompt import Message, call_text, fenced, shown_name
from ck_pro.model.shorten import cut_middle
from ck_pro.session.observed import observation_text

_LABEL_CHARS = 60
"""Limit of a name in a label."""
_JOINT_RESULT = "The first result is that of all calls of this reply."


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
    labels = [f"Call {n}, {_shown_function(line)}:" for n, line in enumerate(lines, 1)]
    return "\n".join(f"{a}\n{fenced(t)}" for a, t in zip(labels, texts, strict=True))


def _shown_function(line: str) -> str:
    return shown_name(line.partition("(")[0])[:_LABEL_CHARS]


def native_calls(action: Mapping[str, Any], step_idx: int) -> list[dict[str, Any]]:
    """Return the calls of a step for its assistant message, each with a different id.

    Empty if the reply has calls only as text, if one of its calls is malformed, or if the row does
    not store model texts: such a step is shown as text.

    Args:
        action: the step's action.
        step_idx: number of the step, for calls without an id.
    """
    calls = action.get("llm_info", {}).get("tool_calls") or []
    if not action["code"] or len(action["code"].split("\n")) != len(calls):
        return []
    ids = [str(call.get("id") or "") for call in calls]
    if "" in ids or len({*ids}) < len(ids):
        ids = [f"call_{step_idx}_{n}" for n in range(len(calls))]
    return [_native_call(call, id_) for call, id_ in zip(calls, ids, strict=True)]


def _native_call(call: Mapping[str, Any], id_: str) -> dict[str, Any]:
    """Return a call as the service wrote it, with the fields that all services require."""
    given = call.get("function", call)
    arguments = given.get("arguments") or {}
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    rest = {k: v for k, v in call.items() if k not in ("name", "arguments")}
    function = {**(call.get("function") or {}), "name": str(given.get("name")), "arguments": text}
    return {**rest, "id": id_, "type": "function", "function": function}


def tool_turn(
    action: Mapping[str, Any], calls: Sequence[dict[str, Any]], shown: str
) -> list[Message]:
    """Return a step as an assistant message with its calls, and one tool message per call.

    Args:
        action: the step's action.
        calls: see `native_calls`.
        shown: the observation as one text, shortened for prompts.
    """
    texts = split_results(action.get("observation"), shown, len(calls))
    texts += [_JOINT_RESULT] * (len(calls) - len(texts))
    reply: Message = {"role": "assistant", "content": action["thought"], "tool_calls": [*calls]}
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": fenced(text)}
        for call, text in zip(calls, texts, strict=True)
    ]
    return [reply, *results]


def refused_calls(action: Mapping[str, Any]) -> str:
    """Return the native calls of a reply that could not be parsed, as text for its history."""
    calls = action.get("llm_info", {}).get("tool_calls") or []
    return "\n".join(map(call_text, calls))
