"""Replies, token usage, budgets and prices."""

from __future__ import annotations

import copy
import math
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_pro.exceptions import ConfigError, LimitReached
from ck_pro.model import Budget, Reply, Usage, price_of


def test_a_reply_is_a_str_whose_copies_keep_the_attributes():
    reply = Reply("hi", reasoning="r", usage=Usage(1, 0, 2), params={"a": 1})
    for twin in (copy.deepcopy(reply), pickle.loads(pickle.dumps(reply))):
        assert twin == "hi" and twin.reasoning == "r" and twin.usage.total_tokens == 3
    assert reply.upper() == "HI"


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans())))
def test_usages_can_be_added(rows):
    total = sum((Usage(p, 0, c, estimated=e) for p, c, e in rows), Usage())
    assert total.total_tokens == sum(p + c for p, c, _ in rows)
    assert total.estimated == any(e for *_, e in rows)


def test_each_limit_is_reported_with_its_reason():
    now = [0.0]
    cases = {
        "steps": (Budget(max_steps=1), lambda b: b.charge_step()),
        "tokens": (Budget(max_tokens=10), lambda b: b.charge(Usage(6, 0, 4))),
        "money": (Budget(max_money=0.5), lambda b: b.charge(Usage(), 0.5)),
        "time": (Budget(max_seconds=5, clock=lambda: now[0]), lambda b: now.__setitem__(0, 5.0)),
    }
    for reason, (budget, use) in cases.items():
        budget.check()
        use(budget)
        with pytest.raises(
            LimitReached, match=f"raise `max_{'seconds' if reason == 'time' else reason}`"
        ) as e:
            budget.check()
        assert e.value.reason == reason
    cases["steps"][0].check(steps=False)


@pytest.mark.parametrize("limit", ["10", -1, math.nan, True])
def test_a_limit_must_be_a_number_of_at_least_zero(limit):
    with pytest.raises(ConfigError, match="Budget: max_seconds must be a number"):
        Budget(max_seconds=limit)


def test_a_free_model_runs_with_a_money_limit_of_zero():
    budget = Budget(max_money=0)
    budget.charge(Usage(5, 0, 5), 0.0)
    budget.check()


def test_nested_budgets_charge_their_parents():
    now = [0.0]
    root = Budget(max_tokens=100, max_seconds=10, clock=lambda: now[0])
    child = Budget(max_seconds=30, parent=root, clock=lambda: now[0])
    grandchild = Budget(max_tokens=1000, parent=child)
    grandchild.charge(Usage(60, 0, 40), None)
    now[0] = 4.0
    assert grandchild.remaining_seconds() == 6
    assert root.snapshot()["unpriced_calls"] == 1
    with pytest.raises(LimitReached) as e:
        grandchild.check()
    assert e.value.reason == "tokens"
    assert not grandchild.limits_money and Budget(parent=Budget(max_money=1)).limits_money


def test_a_budget_counts_calls_of_many_threads():
    root = Budget()

    def work():
        mine = Budget(parent=root)
        for _ in range(200):
            mine.charge(Usage(1, 0, 1), 0.25)
            mine.charge_step()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    snapshot = root.snapshot()
    assert (snapshot["steps"], snapshot["tokens"], snapshot["money"]) == (1600, 3200, 400.0)


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("gpt-4o", 2.5),
        ("gpt-4o-2024-08-06", 2.5),
        ("openai/gpt-4o-mini", 0.15),
        ("gpt-5-2025-08-07", 1.25),
        ("gpt-5-chat-latest", 1.25),
        ("gpt-5-pro", None),
        ("gpt-4o-realtime-preview", None),
        ("qwen", None),
    ],
)
def test_a_model_name_selects_its_price(name, prompt):
    price = price_of(name)
    assert (price.prompt if price else None) == prompt


def test_the_price_setting_replaces_the_table():
    price = price_of("anything", {"prompt": 2, "completion": 4})
    assert price.cost(Usage(1_000_000, 500_000, 1_000_000)) == 6
    for wrong in (
        {"prompt": 1},
        {"prompt": 1, "completion": 1, "x": 1},
        {"prompt": -1, "completion": 1},
    ):
        with pytest.raises(ConfigError, match="price"):
            price_of("x", wrong)
