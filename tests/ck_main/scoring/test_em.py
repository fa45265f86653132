"""The scorer: what counts as the same answer, and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_main.scoring.em import em, items, quantity
from ck_main.scoring.scorer import Case
from ck_main.scoring.scoring import Scoring

SAME = [
    ("17", "17"),
    ("17.0", "17"),
    ("1,234", "1234"),
    ("1234", "1,234"),
    ("$1,234.50", "1234.5"),
    ("17 km", "17"),
    ("17km", "17 km"),
    ("17 kilometers", "17 kilometer"),
    ("50%", "50"),
    ("50 percent", "50%"),
    ("0.5 %", "0.50%"),
    ("-3", "\u22123"),
    ("3 million", "3000000"),
    ("1e3", "1000"),
    ("20 °C", "20 °c"),
    ("12 m²", "12 m2"),
    ("12 km/h", "12"),
    ("42.", "42"),
    ("€5", "5"),
    ("5 €", "€5"),
    ("The Paris", "paris"),
    ("  sea   gull ", "seagull"),
    ("e-mail", "Email"),
    ("St. Petersburg", "st petersburg"),
    ("don't", "Don\u2019t"),
    ("a, b, c", "A,B,C"),
    ("[a, b]", "a; b"),
    ("['a', 'b']", "a, b"),
    ("apples, pears, and plums", "apples, pears, plums"),
    ("1, 2.0, 3%", "1,2,3"),
    ("Paris France", "Paris, France"),
    ("the 3 Doors Down", "3 Doors Down"),
    ("C++", "c++"),
    ("+", "+"),
    ("The", "the"),
    ("CK-2041", "ck-2041"),
    ("1, 234", "1,234"),
]
DIFFERENT = [
    ("18", "17"),
    ("17", "17 km"),
    ("17 miles", "17 km"),
    ("$5", "€5"),
    ("3 or 4", "3"),
    ("3-4", "3"),
    ("3, 4", "3"),
    ("5 2", "5"),
    ("about 3", "3"),
    ("12", "1, 2"),
    ("1.2", "1, 2"),
    ("-5", "5"),
    ("x, y", "y, x"),
    ("pq, r", "p, qr"),
    ("x, y", "x, y, z"),
    ("C", "C++"),
    ("C", "C#"),
    ("-", "+"),
    ("", "17"),
    ("", "x"),
    ("1 2", "12"),
    ("2024-05-01", "2024 05 02"),
    ("not Paris", "Paris"),
    ("1/2", "1"),
]


@pytest.mark.parametrize(("pred", "gold"), SAME)
def test_same(pred: str, gold: str) -> None:
    assert em(pred, gold)


@pytest.mark.parametrize(("pred", "gold"), DIFFERENT)
def test_different(pred: str, gold: str) -> None:
    assert not em(pred, gold)


def test_evaluate_claims_nothing_without_a_gold() -> None:
    evaluate = Scoring().evaluate
    assert evaluate(Case("x")) == {"pred": "x", "gold": None, "corr": None}
    assert evaluate(Case("", "x")) == {"pred": "", "gold": "x", "corr": 0}
    assert evaluate(Case("17.0", "17")) == {"pred": "17.0", "gold": "17", "corr": 1}


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_are_scored(pred: str, gold: str) -> None:
    assert em(pred, gold) in (True, False)
    assert em(gold, gold)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=0, max_value=10**9))
def test_a_number_is_itself_however_written(value: object) -> None:
    text = f"{value}"
    assert em(f"{value:,}", text)
    assert em(f"{value} units", text)
    assert not em(f"{value}1", f"{value}2")


@given(st.text(max_size=80))
def test_parsers_never_fail(text: str) -> None:
    quantity(text)
    assert isinstance(items(text), list)
