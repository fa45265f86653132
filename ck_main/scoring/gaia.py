"""Quasi-exact match after the published rules of the GAIA benchmark.

The rules depend on the right answer (Mialon et al. 2023, "GAIA: a benchmark for General AI
Assistants", section 3, and the notes on scoring of its leaderboard):

- A number: remove `$`, `%` and `,` from the answer and compare as numbers.
- A list, if the right answer contains `,` or `;`: split both at these; there must be equally many
  items. Compare each pair as numbers if the right item is one, else as texts with punctuation.
- A text: compare without white space, case and punctuation.

A right answer such as "1,234" is a list here, because it contains a comma. Numbers must be finite
and written with the digits 0 to 9.
"""

from __future__ import annotations

import math
import re
import string

from ck_main.scoring.scorer import Scorer, matching, without_options

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?", re.IGNORECASE | re.ASCII)
_SEPARATOR = re.compile(r"[,;]")
_UNITS = str.maketrans("", "", "$%,")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def gaia(pred: str, gold: str) -> bool:
    """Whether an answer matches the right one by GAIA's rules."""
    if _as_number(gold) is not None:
        return _same_number(pred, gold)
    if _SEPARATOR.search(gold):
        given, right = _SEPARATOR.split(pred), _SEPARATOR.split(gold)
        if len(given) != len(right):
            return False
        return all(map(_same_item, given, right))
    return normal_text(pred) == normal_text(gold)


def normal_text(text: str, *, punctuation: bool = False) -> str:
    """Return a text without white space and case, and without punctuation unless it is kept.

    Punctuation also stays if the text has nothing else.
    """
    text = "".join(text.split()).lower()
    return text if punctuation else text.translate(_PUNCTUATION) or text


def _same_item(pred: str, gold: str) -> bool:
    if _as_number(gold) is not None:
        return _same_number(pred, gold)
    return normal_text(pred, punctuation=True) == normal_text(gold, punctuation=True)


def _same_number(pred: str, gold: str) -> bool:
    return _as_number(pred.translate(_UNITS)) == _as_number(gold)


def _as_number(text: str) -> float | None:
    text = text.strip()
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


SCORER = Scorer(
    name="gaia",
    help="the published rules of GAIA: numbers, lists item by item, or texts",
    make=without_options("gaia", matching(gaia)),
)
