"""The form of a step's observation: a text, a reference to a sub-agent's result, or a list.

In a list, adjacent texts and references form one text: the output of a code action, with references
in place of the results. Other adjacent entries are observations of separate actions, each on its
own lines.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def append_part(parts: list[Any], part: Any) -> None:
    """Append a text or a reference to the parts of one text."""
    if not parts or isinstance(part, str) != isinstance(parts[-1], str):
        parts.append(part)
    elif isinstance(part, str):
        parts[-1] += part
    else:
        parts += ["", part]


def combine_observations(observed: Sequence[Any]) -> Any:
    """Combine the observations of several actions, each on its own lines."""
    if len(observed) == 1:
        return observed[0]
    entries = list(observed)
    for n, (one, other) in enumerate(itertools.pairwise(observed)):
        if isinstance(one, str) and isinstance(other, Mapping):
            entries[n] += "\n"
        elif isinstance(one, Mapping) and isinstance(other, str):
            entries[n + 1] = f"\n{other}"
    return entries


def observation_text(value: Any) -> str:
    """Return an observation as the model sees it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "repr" in value:
        return str(value["repr"])
    if isinstance(value, list):
        return join_entries(value, observation_text)
    return json.dumps(value, ensure_ascii=False, default=str)


def join_entries(entries: Sequence[Any], show: Callable[[Any], str]) -> str:
    """Return the text of an observation that is a list.

    Args:
        entries: entries of the list.
        show: returns the text of an entry.
    """
    texts = []
    for n, entry in enumerate(entries):
        if n and not _continue_each_other(entries[n - 1], entry):
            texts.append("\n")
        texts.append(show(entry))
    return "".join(texts)


def _continue_each_other(one: Any, other: Any) -> bool:
    return (isinstance(one, str) and isinstance(other, Mapping)) or (
        isinstance(one, Mapping) and isinstance(other, str)
    )
