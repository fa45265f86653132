"""How much of a prompt a prefix cache can save: what it begins like an earlier prompt."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import add, itemgetter
from typing import Any

from ck_pro.language import text_of

_REMEMBERED = 8
_ROLE, _CONTENT = itemgetter("role"), itemgetter("content")


class Prefixes:
    """The last prompts of the agents of one tree, to compare the next ones with. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._earlier: dict[tuple[str, ...], list[_Texts]] = {}

    def share(self, path: tuple[str, ...], messages: Sequence[Mapping[str, Any]]) -> float:
        """Share of a prompt's text that is a prefix of an earlier prompt of this agent, here or in
        another run of it within the tree; 0 to 1.

        Args:
            path: the agent's names from the main agent down.
            messages: the prompt, which is remembered for the next ones.
        """
        prompt = _Texts(messages)
        with self._lock:
            earlier = self._earlier.get(path, [])
            best = prompt.begins_like(earlier)
            self._earlier[path] = [*earlier[1 - _REMEMBERED :], prompt]
        return best / max(1, prompt.length(len(prompt.texts)))


class _Texts:
    """A prompt as one text, "role:text" with one character between messages, in its parts.

    It is never put together: the texts are those of the messages, and to compare two prompts that
    share most of them costs next to nothing.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]):
        try:
            self.roles = [*map(str, map(_ROLE, messages))]
            self.texts = [*map(_CONTENT, messages)]
        except KeyError:  # a message without text
            self.roles = [str(m.get("role")) for m in messages]
            self.texts = [m.get("content") for m in messages]
        if {*map(type, self.texts)} != {str}:  # the usual prompt is not gone through one by one
            self.texts = [c if c.__class__ is str else text_of(c) for c in self.texts]
        self._sums = [*accumulate(map(add, map(len, self.roles), map(len, self.texts)))]

    def length(self, count: int) -> int:
        """Characters of the first messages."""
        return self._sums[count - 1] + 2 * count - 1 if count else 0

    def begins_like(self, others: Sequence[_Texts]) -> int:
        """The most characters that it begins with as one of others does, of which the last are the
        likeliest."""
        best = whole = 0
        for other in reversed(others):
            if whole and self._part(whole - 1) != other._part(whole - 1):
                continue  # it parts before the best so far: nearly all do
            same = min(_common(self.texts, other.texts), _common(self.roles, other.roles))
            alike = self.length(same)
            if same < min(len(self.texts), len(other.texts)):
                alike += bool(same) + _common(self._part(same), other._part(same))
            if alike > best:
                best, whole = alike, same
        return best

    def _part(self, index: int) -> str:
        return f"{self.roles[index]}:{self.texts[index]}" if index < len(self.texts) else ""


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
