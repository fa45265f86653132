"""Counts of model calls and tokens by agent, in the schema of output rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ck_pro.session.rows import CallCounts, no_calls

MAIN = "__main__"
"""Key of an agent's own calls."""
ALL = "__ALL__"
"""Key of the sum over an agent and all below it."""
COUNTERS = ("llm_call", "completion_tokens", "prompt_tokens", "total_tokens")


def build_call_stat(
    calls: Mapping[str, CallCounts], children: Iterable[tuple[str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the call statistics of a session.

    Args:
        calls: counts of the session's own calls: under `MAIN`, or under the name of a tool.
        children: name and statistics of each sub-agent's session.
    """
    stat: dict[str, Any] = {MAIN: dict(calls.get(MAIN, no_calls()))}
    for name, counts in calls.items():
        if name != MAIN:
            stat[name] = {MAIN: dict(counts), ALL: dict(counts)}
    for name, child in children:
        stat[name] = _add(stat[name], child) if name in stat else child
    parts = [stat[MAIN], *(value[ALL] for key, value in stat.items() if key != MAIN)]
    stat[ALL] = {counter: sum(part[counter] for part in parts) for counter in COUNTERS}
    return stat


def _add(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Add the call statistics of two sessions of one agent."""
    added: dict[str, Any] = {}
    for key in dict.fromkeys((*a, *b)):
        x, y = a.get(key), b.get(key)
        if x is None or y is None:
            added[key] = x if y is None else y
        elif key in COUNTERS:
            added[key] = x + y
        else:
            added[key] = _add(x, y)
    return added
