"""Score answers by normalised exact match, without a model.

The rules follow the idea of GAIA's scorer: compare numbers as numbers, lists item by item, and
other answers as text.

- Numbers: `1,234`, `1234.0` and `$1234` are equal, and so are `17` and `17 km`, or `50` and `50%`.
  If the right answer has a unit, the answer needs it too. Different units or currencies do not
  match. `3 million` is 3000000.
- Lists, split at `,` and `;`: the same length, and all pairs of items match.
- Text: compatibility forms (NFKC), case, articles, punctuation and white space are ignored.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ck_main.scoring.scorer import Scorer, matching, without_options

_CURRENCIES = "$€£¥₹"
# a unit or a part of one: km, km/h, m^2, %, €
_UNIT = rf"(?:[%°µ]?[^\W\d_]+(?:[./·^-][^\W\d_]+)*\.?(?:\^?[23])?|[%‰°{_CURRENCIES}]\.?)"
_QUANTITY = re.compile(
    rf"""
    (?P<sign>[-+]?)\s*(?P<currency>[{_CURRENCIES}]?)\s*(?P<sign2>[-+]?)
    (?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.?\d*|\.\d+)
    (?P<exponent>e[-+]?\d{{1,4}}(?![a-z0-9]))?
    \s*(?P<unit>(?:{_UNIT}(?:\s+{_UNIT}){{0,3}})?)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MINUS = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"))
_ARTICLES = frozenset({"a", "an", "the"})
_ITEM_BREAK = re.compile(r"[,;]")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True)
class Quantity:
    """A number with its normalised unit and currency, each "" if missing."""

    value: Decimal
    unit: str = ""
    currency: str = ""
    percent: bool = False


def em(pred: str, gold: str) -> bool:
    """Whether `pred` matches `gold` by normalised exact match; see the module's docstring."""
    pred, gold = pred.strip(), gold.strip()
    wanted = quantity(gold)
    if wanted is not None:
        given = quantity(pred.rstrip("."))
        if given is not None and _same_quantity(given, wanted):
            return True
        if not wanted.unit and _ITEM_BREAK.search(gold) is None:
            return False
    golds, preds = items(gold), items(pred)
    pairs = zip(preds, golds, strict=False)
    if len(golds) == len(preds) > 1 and all(em(p, g) for p, g in pairs):
        return True
    return (wanted is None or bool(wanted.unit)) and _same_text(pred, gold)


def quantity(text: str) -> Quantity | None:
    """Parse a text that is one number, with an optional currency and unit; else return None."""
    text = unicodedata.normalize("NFKC", text).translate(_MINUS).strip()
    found = _QUANTITY.fullmatch(text)
    if found is None or (found["sign"] and found["sign2"]):
        return None
    try:
        value = Decimal(found["number"].replace(",", "") + (found["exponent"] or ""))
    except InvalidOperation:
        return None
    if "-" in (found["sign"], found["sign2"]):
        value = -value
    words = found["unit"].casefold().split()
    if words and words[0] in _SCALES:
        value = value.scaleb(_SCALES[words.pop(0)])
    currency, percent = found["currency"], False
    if words and words[-1].rstrip(".") in ("%", "percent"):
        words.pop()
        percent = True
    unit = " ".join(words).rstrip(".")
    if unit and unit in _CURRENCIES and not currency:
        currency, unit = unit, ""
    return Quantity(value, _singular(unit), currency, percent)


def items(text: str) -> list[str]:
    """Split a text into list items, without brackets, quotes and a last `and`."""
    text = text.strip()
    if len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]:
        text = text[1:-1]
    parts = [p.strip() for p in _ITEM_BREAK.split(text)]
    if len(parts) == 1 and not _ITEM_BREAK.search(text):
        return parts
    if parts[-1].casefold().startswith("and "):
        parts[-1] = parts[-1][4:].strip()
    parts = [p[1:-1] if len(p) > 1 and p[0] == p[-1] and p[0] in "'\"" else p for p in parts]
    return parts if parts[-1] else parts[:-1]


def _same_quantity(given: Quantity, wanted: Quantity) -> bool:
    if given.value != wanted.value:
        return False
    if given.currency and wanted.currency and given.currency != wanted.currency:
        return False
    return given.unit == wanted.unit or not wanted.unit


def _same_text(pred: str, gold: str) -> bool:
    wanted, given = _words(gold), _words(pred)
    if not wanted:  # only punctuation or articles: compare these
        return pred.casefold() == gold.casefold()
    if wanted == given:
        return True
    # "sea gull" matches "seagull"; but "1 2" does not match "12", nor "pq, r" "p, qr"
    together = "".join(wanted)
    joinable = _ITEM_BREAK.search(gold) is None and not any(c.isdigit() for c in together)
    return joinable and together == "".join(given)


def _words(text: str) -> list[str]:
    text = unicodedata.normalize("NFKC", text).translate(_MINUS).casefold()
    out = []
    for i, char in enumerate(text):
        if char in "'`\u2018\u2019":
            continue
        inner = char in ".,:-" and text[i - 1 : i].isdigit() and text[i + 1 : i + 2].isdigit()
        sign = char == "-" and not text[i - 1 : i].strip() and text[i + 1 : i + 2].isdigit()
        dropped = unicodedata.category(char).startswith("P") and char not in "#%&@"
        out.append(" " if dropped and not inner and not sign else char)
    words = "".join(out).split()
    return [w for w in words if w not in _ARTICLES] if len(words) > 1 else words


def _singular(unit: str) -> str:
    return unit[:-1] if len(unit) > 3 and unit.endswith("s") and not unit.endswith("ss") else unit


SCORER = Scorer(
    name="em",
    help="normalised exact match of numbers, lists and texts; the default",
    make=without_options("em", matching(em)),
)
