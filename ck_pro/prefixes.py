"""How much of a prompt a prefix cache can save: what it begins like an earlier prompt."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ck_pro.language import text_of

_REMEMBERED = 8

_Piece = tuple[str, str]
"""Role and text of a message."""


class Prefixes:
    """The last prompts of the agents of one tree, to compare the next ones with. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._earlier: dict[tuple[str, ...], list[list[_Piece]]] = {}

    def share(self, path: tuple[str, ...], messages: Sequence[Mapping[str, Any]]) -> float:
        """Share of a prompt's text that is a prefix of an earlier prompt of this agent, here or in
        another run of it within the tree; 0 to 1.

        Args:
            path: the agent's names from the main agent down.
            messages: the prompt, which is remembered for the next ones.
        """
        prompt = [(str(m.get("role")), text_of(m.get("content"))) for m in messages]
        # where each piece ends in the whole text, "role:text" with one character between pieces
        ends = [*accumulate(len(role) + len(text) + 2 for role, text in prompt)]
        with self._lock:
            earlier = self._earlier.get(path, [])
            if earlier:  # pieces that are one object are compared in no time
                same = _common(prompt, earlier[-1])
                prompt[:same] = earlier[-1][:same]
            best = max((_common_text(prompt, e, ends) for e in earlier), default=0)
            self._earlier[path] = [*earlier[1 - _REMEMBERED :], prompt]
        return best / max(1, ends[-1] - 1 if ends else 0)


def _common_text(a: Sequence[_Piece], b: Sequence[_Piece], ends: Sequence[int]) -> int:
    """Characters that two prompts begin with alike; `ends` are those of `a`."""
    same = _common(a, b)
    begin = ends[same - 1] if same else 0
    if same == len(a) or same == len(b):
        return max(0, begin - 1)
    return begin + _common(":".join(a[same]), ":".join(b[same]))


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Length of the common beginning, by bisection (comparing slices is fast)."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
