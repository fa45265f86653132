"""`LocalIndex`: a search in a list of documents."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_K1, _B = 1.2, 0.75


class LocalIndex:
    """Documents ranked by BM25 (Robertson and Zaragoza 2009). Words of the title count three times.

    Args:
        documents: dicts with `title`, `url` and `text`.
    """

    def __init__(self, documents: Sequence[dict[str, str]]):
        self.documents = list(documents)
        self._counts = [Counter(_words(f"{d['title']} " * 3 + d["text"])) for d in documents]
        self._sizes = [sum(c.values()) for c in self._counts]
        self._mean = sum(self._sizes) / max(1, len(self._sizes)) or 1.0
        self._frequencies = Counter(word for c in self._counts for word in c)

    def search(self, query: str) -> list[dict[str, str]]:
        """Return the documents with a word of the query, the best first; ties keep their order."""
        words = set(_words(query))
        scored = [(self._score(words, i), i) for i in range(len(self.documents))]
        best = sorted((s, i) for s, i in ((-s, i) for s, i in scored) if s < 0)
        return [self.documents[i] for _, i in best]

    def _score(self, words: set[str], i: int) -> float:
        total, counts = 0.0, self._counts[i]
        norm = _K1 * (1 - _B + _B * self._sizes[i] / self._mean)
        for word in words & counts.keys():
            frequency = self._frequencies[word]
            rarity = math.log(1 + (len(self.documents) - frequency + 0.5) / (frequency + 0.5))
            total += rarity * counts[word] * (_K1 + 1) / (counts[word] + norm)
        return total


def _words(text: str) -> list[str]:
    """Split into lower-case words without a plural `s`."""
    return [w[:-1] if len(w) > 3 and w.endswith("s") else w for w in _WORD.findall(text.lower())]
