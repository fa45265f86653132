"""The scorers: their rules, their options, and texts of any kind."""

from __future__ import annotations

import json
import math
import os
import pickle
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import ROOT

from ck_main.scoring.gaia import gaia
from ck_main.scoring.judge import Judge
from ck_main.scoring.list import split
from ck_main.scoring.regex import Matcher
from ck_main.scoring.scorer import Case, Score, options_in
from ck_main.scoring.scoring import Scoring, scorers
from ck_pro.exceptions import ConfigError

TEXT = st.text(max_size=40)
NUMBER = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9, allow_nan=False)


def value(name: str, pred: str, gold: str | None, **original: Any) -> float | None:
    return Scoring(name).evaluate(Case(pred, gold, original=original))["corr"]


@pytest.mark.parametrize(
    ("pred", "gold", "right"),
    [
        ("$1,234.50", "1234.5", True),
        ("17%", "17", True),
        ("17 km", "17", False),
        ("seventeen", "17", False),
        ("", "17", False),
        ("1e3", "1000", True),
        ("nan", "nan", True),  # a text, not a number
        ("inf", "1e400", False),
        ("Sea Gull!", "seagull", True),
        ("the cat", "cat", False),
        ("a; b", "a,b", True),
        ("b, a", "a, b", False),
        ("a", "a, b", False),
        ("$1, x", "1,X", True),
        ("a., b", "a, b", False),  # items of lists keep their punctuation
        ("1,234", "1,234", True),  # a list of two numbers
        ("1234", "1,234", False),
        ("", "?!", False),
        ("?!", "?!", True),
    ],
)
def test_gaia_follows_its_published_rules(pred: str, gold: str, right: bool) -> None:
    assert gaia(pred, gold) is right


@given(TEXT)
def test_every_text_matches_itself(text: str) -> None:
    for name in ("em", "exact", "gaia", "list", "set"):
        if name == "list" and not split(text, ""):
            continue
        assert value(name, text, text) == 1, name


@given(NUMBER)
def test_gaia_and_numeric_accept_a_number_in_all_its_spellings(number: float) -> None:
    plain = repr(number)
    for spelled in (plain, f" {plain} ", f"${plain}" if number >= 0 else plain, f"{plain}%"):
        assert gaia(spelled, plain)
        if "e" not in plain:
            assert value("numeric", spelled, plain) == 1


@given(NUMBER, st.floats(0, 10, allow_nan=False), st.floats(1e-6, 1, allow_nan=False))
def test_numeric_accepts_what_is_within_the_tolerance(
    gold: float, off: float, tolerance: float
) -> None:
    pred = gold + off
    text, right = f"{pred:.12f}", f"{gold:.12f}"
    exact = abs(float(text) - float(right))
    if abs(exact - tolerance) > 1e-6 * max(1, abs(gold)):
        assert value(f"numeric:abs={tolerance:.12f}", text, right) == (exact < tolerance)


def test_numeric_compares_units_and_uses_the_larger_tolerance() -> None:
    assert value("numeric:rel=0.01", "101", "100") == 1
    assert value("numeric:rel=0.01", "101.1", "100") == 0
    assert value("numeric:rel=0.01,abs=2", "101.9", "100") == 1
    assert value("numeric:abs=1", "5 miles", "5 km") == 0
    assert value("numeric:abs=1", "5", "5 km") == 0
    assert value("numeric:abs=1", "€5", "$5") == 0
    assert value("numeric", "many", "5") == 0
    assert value("numeric", "5", "many") is None
    assert value("numeric", "5", None) is None


def test_lists_and_sets_compare_items_like_em() -> None:
    assert value("list", "[Paris; the Rome]", "paris, rome") == 1
    assert value("list", "- Paris\n- Rome\n", "paris, rome") == 1
    assert value("list", "rome, paris", "paris, rome") == 0
    assert value("list:partial", "paris, bonn, rome", "paris, oslo, rome, kiev") == 0.5
    assert value("set", "rome, paris", "paris, rome") == 1
    assert value("set", "rome, rome, paris", "paris, rome") == 1
    assert value("set", "1.0, 2", "2, 1") == 1
    many = [f"item {n}" for n in range(3000)]
    assert value("set", ", ".join(many), ", ".join(many[::-1])) == 1
    assert value("set", "rome", "paris, rome") == 0
    assert value("set:partial", "rome", "paris, rome") == pytest.approx(2 / 3)
    assert value("list:sep=|", "a, b | c", "a, b|c") == 1
    assert value("list:sep=,", "a; b, c", "a; b,c") == 1
    assert value("list", "anything", "") == 0


def test_a_loose_match_does_not_take_the_place_of_an_exact_one() -> None:
    assert value("set", "5 km, 5", "5, 5 km") == 1


@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=8), st.randoms())
def test_a_set_ignores_the_order(items: list[str], random: Any) -> None:
    other = items.copy()
    random.shuffle(other)
    assert value("set:sep=;", ";".join(other), ";".join(items)) == 1


@given(TEXT, TEXT)
def test_scores_are_numbers_from_0_to_1(pred: str, gold: str) -> None:
    for name in ("em", "exact", "gaia", "numeric:rel=0.1", "list:partial", "set:partial"):
        found = value(name, pred, gold)
        assert found is None or (0 <= found <= 1 and math.isfinite(found))


def test_options_are_checked() -> None:
    known = {"a": "NUMBER", "sep": "TEXT"}
    assert options_in("x", "a=1,sep=,", known) == {"a": "1", "sep": ","}
    assert options_in("x", "", known) == {}
    for wrong in ("b=1", "a=1,a=2", "b"):
        with pytest.raises(ConfigError, match="scorer x"):
            options_in("x", wrong, known)
    for scorer in ("numeric:rel=-1", "numeric:abs=nan", "exact:x", "gaai", "regex:(", "custom:x"):
        with pytest.raises(ConfigError):
            Scoring(scorer)


def test_an_unknown_scorer_is_reported_with_a_similar_name() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gaia'"):
        Scoring("gaja")


def test_a_task_may_name_its_scorer_but_no_function() -> None:
    assert value("exact", "5.01", "5", scorer="numeric:abs=0.1") == 1
    assert value("exact", "5.01", "5", info={"scorer": "numeric:abs=0.1"}) == 1
    assert value("exact", "5.01", "5", scorer=["other", "use"]) == 0
    with pytest.raises(ConfigError, match="may not name"):
        value("exact", "5", "5", scorer="custom:os:getcwd")
    found = Scoring().evaluate(Case("5", "5", original={"scorer": "judge"}))
    assert found["corr"] is None and "ck_main.score" in found["reason"]


def test_a_scoring_can_be_sent_to_other_machines() -> None:
    sent = pickle.loads(pickle.dumps(Scoring("regex:4.", field="how")))
    assert (sent.default, sent.scorer_of({"how": "set"})) == ("regex:4.", "set")
    assert Scoring("numeric:abs=1").evaluate(Case("5", "4"))["corr"] == 1


def test_a_custom_function_gives_scores_and_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_scorer.py").write_text(
        "def half(case):\n    return 0.5, f'{case.pred} for {case.question}'\n"
        "def fails(case):\n    return 1 / 0\n"
        "def wrong(case):\n    return 7\n"
    )
    case = Case("a", "b", "q")
    found = Scoring("custom:my_scorer:half").evaluate(case)
    assert (found["corr"], found["reason"]) == (0.5, "a for q")
    failed = Scoring("custom:my_scorer:fails").evaluate(case)
    assert failed["corr"] is None and "ZeroDivisionError" in failed["reason"]
    assert "from 0 to 1" in Scoring("custom:my_scorer:wrong").evaluate(case)["reason"]


def test_the_judge_is_asked_once_for_equal_answers(tmp_path: Path) -> None:
    prompts: list[Any] = []

    def ask(messages: Any) -> str:
        prompts.append(messages)
        return "It says the same.\nVerdict: right"

    cache = tmp_path / "verdicts.jsonl"
    case = Case("5", "five", "How many?")
    judge = Judge(ask, "m", cache=cache)
    assert judge.score(case) == judge.score(case) == Score(1.0, "It says the same.")
    assert (len(prompts), judge.asked, judge.cached) == (1, 1, 1)
    cache.write_bytes(cache.read_bytes() + b'{"torn')
    again = Judge(ask, "m", cache=cache)
    assert again.score(case).value == 1.0 and len(prompts) == 1
    assert again.score(Case("6", "five", "How many?")).value == 1.0 and len(prompts) == 2
    assert len(Judge(ask, "other", cache=cache)._known) == 2
    assert [json.loads(x)["right"] for x in cache.read_bytes().splitlines()[::2]] == [1, 1]


def test_a_rubric_replaces_the_rules_and_a_task_may_have_its_own() -> None:
    prompts: list[Any] = []

    def ask(messages: Any) -> str:
        prompts.append(messages)
        return "no verdict"

    judge = Judge(ask, "m", rubric="Names two cities.")
    assert judge.score(Case("Rome")).value is None
    judge.score(Case("Rome", original={"rubric": "Rhymes."}))
    assert "Names two cities." in prompts[0][1]["content"]
    assert "Rhymes." in prompts[1][1]["content"] and "Names" not in prompts[1][1]["content"]
    assert "rubric" in prompts[0][0]["content"]


def test_every_scorer_has_a_line_of_help() -> None:
    assert set(scorers()) == {
        *("custom", "em", "exact", "gaia", "judge", "list", "numeric", "regex", "set")
    }
    assert all(s.help and "\n" not in s.help for s in scorers().values())


@pytest.mark.integration
def test_a_pattern_matches_the_whole_answer_and_may_not_take_forever() -> None:
    assert value(r"regex:20\d\d", " 2031 ", None) == 1
    assert value(r"regex:20\d\d", "in 2031", None) == 0
    assert value("regex", "ab\nc", "a.*c") == 1
    assert value("regex", "x", "(") is None
    matcher = Matcher(seconds=0.2)
    assert matcher.matches("(a+)+b", "a" * 60) is None
    assert matcher.matches("a+", "aaa") is True


@pytest.mark.integration
def test_a_match_ends_also_if_its_parent_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from ck_main.scoring.regex import Matcher\n"
        "matcher = Matcher(seconds=1)\n"
        "assert matcher.matches('a', 'a')\n"
        "print(matcher._child.pid, flush=True)\n"
        "matcher.matches('(a+)+b', 'a' * 60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    ended = os.pidfd_open(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    try:
        assert select.select([ended], [], [], 60)[0] == [ended]
    finally:
        os.close(ended)
