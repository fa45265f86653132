"""Lists in any order. Items are compared as in `em`; repeated items count once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ck_main.scoring.em import em
from ck_main.scoring.list import OPTIONS, split
from ck_main.scoring.scorer import Case, Check, Score, Scorer, options_in

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge

_MAX_ITEMS = 1000
"""Of the items that are not equal literally, those beyond this number count as wrong: comparing all
pairs would take too long."""


def make(text: str, judge: Judge | None) -> Check:
    """Return the check for `partial` (the F1 score) and `sep=TEXT`."""
    found = options_in("set", text, OPTIONS)
    sep, partial = found.get("sep", ""), "partial" in found

    def check(case: Case) -> Score:
        if case.gold is None:
            return Score(None)
        given, right = unique(split(case.pred, sep)), unique(split(case.gold, sep))
        hits = matches(given, right)
        size = len(given) + len(right)
        value = 2 * hits / size if size else 1.0
        reason = f"{hits} of {len(right)} items found, {len(given) - hits} others"
        return Score(value if partial else float(value == 1), reason)

    return check


def unique(items: list[str]) -> list[str]:
    """Drop items that are written like an earlier one, apart from case."""
    return list({item.casefold(): item for item in reversed(items)}.values())[::-1]


def matches(given: list[str], right: list[str]) -> int:
    """Count the pairs of equal items; each item is in at most one pair.

    Every right item gets the first free answer that matches it. Literal matches go first, so that
    a loose match cannot take the place of an exact one.
    """
    same = {g.casefold() for g in given} & {r.casefold() for r in right}
    given = [g for g in given if g.casefold() not in same][:_MAX_ITEMS]
    right = [r for r in right if r.casefold() not in same][:_MAX_ITEMS]
    hits = len(same)
    for item in right:
        found = next((n for n, answer in enumerate(given) if em(answer, item)), None)
        if found is not None:
            del given[found]
            hits += 1
    return hits


SCORER = Scorer(
    name="set",
    help="a list in any order; partial gives the F1 score, sep=TEXT the separator",
    make=make,
)
