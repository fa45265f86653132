"""`LocalIndex`: a search in a list of documents."""

from __future__ import annotations

from collections.abc import Sequence

from ck_pro.ranking import Ranking


class LocalIndex:
    """Documents ranked by BM25 (Robertson and Zaragoza 2009). Words of the title count three times.

    Args:
        documents: dicts with `title`, `url` and `text`.
    """

    def __init__(self, documents: Sequence[dict[str, str]]):
        self.documents = list(documents)
        self._ranking = Ranking(f"{d['title']} " * 3 + d["text"] for d in documents)

    def search(self, query: str) -> list[dict[str, str]]:
        """Return the documents with a word of the query, the best first; ties keep their order."""
        return [self.documents[i] for i in self._ranking.best(query)]
