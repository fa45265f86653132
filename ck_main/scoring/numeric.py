"""Numbers within a tolerance. Units and currencies are compared as in `em`."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from ck_main.scoring.em import Quantity, quantity
from ck_main.scoring.scorer import Case, Check, Score, Scorer, options_in
from ck_pro.exceptions import ConfigError

if TYPE_CHECKING:
    from ck_main.scoring.judge import Judge

_OPTIONS = {"abs": "NUMBER", "rel": "NUMBER"}


def make(text: str, judge: Judge | None) -> Check:
    """Return the check for `abs=NUMBER,rel=NUMBER`, both 0 by default.

    Raises:
        ConfigError: an option is unknown, or its value is not a number >= 0.
    """
    found = options_in("numeric", text, _OPTIONS)
    absolute, relative = (_tolerance(n, found.get(n, "0")) for n in _OPTIONS)

    def check(case: Case) -> Score:
        if case.gold is None:
            return Score(None)
        right = quantity(case.gold)
        if right is None:
            return Score(None, "the right answer is not a number")
        given = quantity(case.pred.strip().rstrip("."))
        if given is None:
            return Score(0.0, "the answer is not a number")
        return _compare(given, right, absolute, relative)

    return check


def _compare(given: Quantity, right: Quantity, absolute: Decimal, relative: Decimal) -> Score:
    if given.currency and right.currency and given.currency != right.currency:
        return Score(0.0, f"currency {given.currency}, not {right.currency}")
    if right.unit and given.unit != right.unit:
        return Score(0.0, f"unit {given.unit or 'missing'}, not {right.unit}")
    off = abs(given.value - right.value)
    allowed = max(absolute, relative * abs(right.value))
    return Score(float(off <= allowed), f"off by {off:.4g}, allowed {allowed:.4g}")


def _tolerance(name: str, text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value < 0:
        raise ConfigError(f"scorer numeric: {name}={text}: not a number >= 0")
    return value


SCORER = Scorer(
    name="numeric",
    help="a number; abs=0.5 and rel=0.01 set how far it may be off (the larger one counts)",
    make=make,
)
