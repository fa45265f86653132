"""The share of a prompt that a prefix cache can reuse from an earlier prompt."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import add, itemgetter
from typing import Any

from ck_pro.language import text_of

_STORED_PROMPTS = 8
_ROLE, _CONTENT = itemgetter("role"), itemgetter("content")


class Prefixes:
    """The recent prompts of all agents in one tree of runs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._earlier: dict[tuple[str, ...], list[_Texts]] = {}

    def share(self, path: tuple[str, ...], messages: Sequence[Mapping[str, Any]]) -> float:
        """Return the share of a prompt that is a prefix of an earlier prompt of the agent; 0 to 1.

        The earlier prompt may come from another run of this agent in the tree.

        Args:
            path: the names of the agents, from the main agent down.
            messages: the prompt; it is stored for later calls.
        """
        prompt = _Texts(messages)
        with self._lock:
            earlier = self._earlier.get(path, [])
            best = prompt.longest_common_prefix(earlier)
            self._earlier[path] = [*earlier[1 - _STORED_PROMPTS :], prompt]
        return best / max(1, prompt.length(len(prompt.texts)))


class _Texts:
    """The text of a prompt: "role:text" for each message, with one character in between.

    The parts are never joined, so comparing two prompts with equal messages is cheap.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]):
        try:
            self.roles = [*map(str, map(_ROLE, messages))]
            self.texts = [*map(_CONTENT, messages)]
        except KeyError:  # a message without text
            self.roles = [str(m.get("role")) for m in messages]
            self.texts = [m.get("content") for m in messages]
        if {*map(type, self.texts)} != {str}:  # most prompts contain only text
            self.texts = [c if c.__class__ is str else text_of(c) for c in self.texts]
        self._sums = [*accumulate(map(add, map(len, self.roles), map(len, self.texts)))]

    def length(self, count: int) -> int:
        """Return the number of characters of the first `count` messages."""
        return self._sums[count - 1] + 2 * count - 1 if count else 0

    def longest_common_prefix(self, others: Sequence[_Texts]) -> int:
        """Return the number of characters of the longest prefix shared with one of `others`.

        Args:
            others: earlier prompts; later ones are more similar.
        """
        best = whole = 0
        for other in reversed(others):
            if whole and self._part(whole - 1) != other._part(whole - 1):
                continue  # it differs before the end of the best prefix, as most do
            same = min(_common(self.texts, other.texts), _common(self.roles, other.roles))
            shared = self.length(same)
            if same < min(len(self.texts), len(other.texts)):
                shared += bool(same) + _common(self._part(same), other._part(same))
            if shared > best:
                best, whole = shared, same
        return best

    def _part(self, index: int) -> str:
        return f"{self.roles[index]}:{self.texts[index]}" if index < len(self.texts) else ""


def _common(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the length of the common prefix, by bisection (comparing slices is fast)."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
