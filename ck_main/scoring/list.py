"""Lists in order. Items are compared as in `em`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ck_main.scoring.em import em, items
from ck_main.scoring.scorer import Case, Check, Score, Scorer, options_in

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge

OPTIONS = {"partial": "yes", "sep": "TEXT"}
"""Options of `list` and `set`."""


def make(text: str, judge: Judge | None) -> Check:
    """Return the check for `partial` and `sep=TEXT`."""
    found = options_in("list", text, OPTIONS)
    sep, partial = found.get("sep", ""), "partial" in found

    def check(case: Case) -> Score:
        if case.gold is None:
            return Score(None)
        given, right = split(case.pred, sep), split(case.gold, sep)
        same = sum(em(p, g) for p, g in zip(given, right, strict=False))
        longest = max(len(given), len(right))
        value = same / longest if longest else 1.0
        reason = f"{same} of {longest} places are right"
        return Score(value if partial else float(value == 1), reason)

    return check


def split(text: str, sep: str) -> list[str]:
    """Split a text at a separator, by default at commas, semicolons and line breaks.

    Brackets and quotes around lists and items are removed, and so are empty items.
    """
    if not sep:
        lines = [line.strip().lstrip("-*\u2022").strip() for line in text.splitlines()]
        text = "; ".join(line for line in lines if line)
        return [item for item in items(text) if item]
    return [item for part in text.split(sep) if (item := part.strip().strip("'\"").strip())]


SCORER = Scorer(
    name="list",
    help="a list in order; partial gives the share of right places, sep=TEXT the separator",
    make=make,
)
