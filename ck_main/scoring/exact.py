"""The same text, except for white space at both ends."""

from __future__ import annotations

from ck_main.scoring.scorer import Scorer, matching, without_options


def exact(pred: str, gold: str) -> bool:
    """Whether two texts are equal without white space at their ends."""
    return pred.strip() == gold.strip()


SCORER = Scorer(
    name="exact",
    help="the same text, apart from white space at both ends",
    make=without_options("exact", matching(exact)),
)
