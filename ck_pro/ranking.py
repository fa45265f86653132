"""Rank texts by the words of a query: BM25 over word stems."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\w+")
_K1, _B = 1.2, 0.75
_ENDINGS = (
    *(("ational", "ate"), ("ization", "ize"), ("iveness", "ive"), ("fulness", "ful")),
    *(("ations", ""), ("ation", ""), ("ments", ""), ("ment", ""), ("ings", ""), ("ness", "")),
    *(("ies", "y"), ("ied", "y"), ("ing", ""), ("ers", ""), ("ed", ""), ("er", ""), ("ly", "")),
    *(("es", ""), ("s", ""), ("e", "")),
)
"""Endings of English words and their replacements; the first that matches counts."""
_SHORTEST = 3
"""Characters that a word keeps."""


class Ranking:
    """Texts ranked by BM25 (Robertson and Zaragoza 2009).

    Args:
        texts: the texts.
    """

    def __init__(self, texts: Iterable[str]):
        self._counts = [Counter(stems(text)) for text in texts]
        self._sizes = [sum(c.values()) for c in self._counts]
        self._mean = sum(self._sizes) / max(1, len(self._sizes)) or 1.0
        self._frequencies = Counter(word for c in self._counts for word in c)

    def best(self, query: str) -> list[int]:
        """Return the indices of the texts with a word of the query, the best first.

        Ties keep their order.
        """
        words = set(stems(query))
        scored = sorted((-self._score(words, i), i) for i in range(len(self._counts)))
        return [i for score, i in scored if score < 0]

    def _score(self, words: set[str], i: int) -> float:
        total, counts = 0.0, self._counts[i]
        norm = _K1 * (1 - _B + _B * self._sizes[i] / self._mean)
        for word in words & counts.keys():
            frequency = self._frequencies[word]
            rarity = math.log(1 + (len(self._counts) - frequency + 0.5) / (frequency + 0.5))
            total += rarity * counts[word] * (_K1 + 1) / (counts[word] + norm)
        return total


def stems(text: str) -> Sequence[str]:
    """Return the lower-case words of a text without English endings: "Stopped" gives "stop".

    Equal stems matter, not readable ones. Words of other languages keep most of their letters.
    """
    return [_stem(word) for word in _WORD.findall(text.casefold())]


def _stem(word: str) -> str:
    if not word.isalpha() or (word.endswith("ss") and not word.endswith("ness")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            word = word[: -len(ending)] + instead
            break
    if word.endswith("i"):  # happi(ness)
        return word[:-1] + "y"
    if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word[:-1] if len(word) > _SHORTEST and word.endswith("e") else word
