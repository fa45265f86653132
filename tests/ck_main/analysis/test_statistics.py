"""The statistics: values of scipy 1.17 and statsmodels 0.14, and properties."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ck_main.analysis import statistics as stats

NUMBERS = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [  # statsmodels: proportion_confint(right, total, method="wilson")
        (0, 10, 0.0, 0.27753279986288926),
        (7, 10, 0.39677814746114537, 0.8922087325936989),
        (10, 10, 0.7224672001371106, 1.0),
        (512, 1000, 0.4810325544060909, 0.5428756033902558),
        (1, 1, 0.2065493143772374, 1.0),
    ],
)
def test_wilson_intervals_are_those_of_statsmodels(
    right: int, total: int, low: float, high: float
) -> None:
    found = stats.wilson(right, total)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.value == right / total


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [  # statsmodels: mcnemar([[0, b], [c, 0]], exact=True).pvalue
        (0, 0, 1.0),
        (0, 5, 0.0625),
        (0, 6, 0.03125),
        (3, 12, 0.03515625),
        (50, 80, 0.010694055123829345),
        (5000, 5200, 0.04878796312682234),
    ],
)
def test_mcnemar_is_the_exact_test(b: int, c: int, p: float) -> None:
    assert stats.mcnemar(b, c) == stats.mcnemar(c, b) == pytest.approx(p, rel=1e-9)


def test_fewer_than_six_differing_tasks_are_never_significant() -> None:
    least = stats.fewest_differences()
    assert least == 6
    assert stats.mcnemar(0, least) < 0.05 <= stats.mcnemar(0, least - 1)


def test_bootstrap_intervals_are_close_to_those_of_scipy() -> None:
    found = stats.mean_interval([1.2, 0.4, 3.1, 0.9, 2.2, 1.1, 0.3, 5.0, 1.7, 0.8])
    # scipy.stats.bootstrap((values,), np.mean, method="BCa", n_resamples=99_999)
    assert found is not None and found.value == pytest.approx(1.67)
    assert (found.low, found.high) == pytest.approx((1.03, 2.84), abs=0.08)


def test_an_interval_of_grouped_values_has_the_width_of_the_normal_approximation() -> None:
    random_ = random.Random(7)
    values = [random_.expovariate(1) for _ in range(5000)]
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    found = stats.mean_interval(values)
    assert found is not None
    assert found.half_width == pytest.approx(1.96 * deviation / math.sqrt(len(values)), rel=0.1)


def test_a_ratio_of_equal_costs_is_one_and_an_impossible_one_has_no_interval() -> None:
    found = stats.ratio_interval([(1, 1), (2, 2), (5, 5)])
    assert found is not None and (found.low, found.value, found.high) == (1, 1, 1)
    assert stats.ratio_interval([(0, 1), (0, 2)]) is None
    assert stats.ratio_interval([(1, 1)]) is None
    assert stats.mean_interval([3.0]) is None


@given(NUMBERS)
def test_a_bootstrap_interval_lies_within_the_values(values: list[float]) -> None:
    found = stats.bootstrap([(v,) for v in values], lambda s, n: s[0] / n, resamples=50)
    if found is not None:
        slack = 1e-6 * (1 + max(map(abs, values)))
        assert min(values) - slack <= found.low <= found.high <= max(values) + slack


def test_agresti_min_has_a_width_also_if_all_pairs_agree() -> None:
    same = stats.agresti_min(0, 0, 10)
    assert same.value == 0 and same.low == -same.high < 0
    # b = 3, c = 12, n = 40, computed by hand from the published formula
    found = stats.agresti_min(3, 12, 40)
    assert found.value == 0.225
    assert (found.low, found.high) == pytest.approx((0.0392326, 0.3893388), abs=1e-6)


def test_the_randomisation_test_finds_a_difference_and_no_difference() -> None:
    random_ = random.Random(3)
    noise = [random_.gauss(0, 1) for _ in range(40)]
    assert stats.sign_flip(noise) > 0.05
    assert stats.sign_flip([n + 1.5 for n in noise]) < 0.001
    # all 8 differences in one direction: 2 of 256 sign patterns are as extreme
    assert stats.sign_flip([0.5] * 8) == pytest.approx(2 / 256, abs=0.003)
    assert stats.sign_flip([0.0, 0.0]) == 1


def test_pass_at_k_counts_all_choices_of_k_tries() -> None:
    tries = [True, False, False, True, False]
    for k in range(1, 6):
        chosen = list(combinations(tries, k))
        assert stats.pass_at(5, 2, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))
        assert stats.pass_all(5, 2, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))


@given(NUMBERS, st.floats(0, 1))
def test_quantiles_are_monotone_and_between_the_extremes(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = stats.quantile(ordered, share)
    assert ordered[0] <= found <= ordered[-1] or found == pytest.approx(ordered[0])


def test_quantiles_are_those_of_numpy() -> None:
    ordered = [1.0, 2.0, 4.0, 8.0, 16.0]
    assert [stats.quantile(ordered, q) for q in (0, 0.1, 0.5, 0.9, 1)] == pytest.approx(
        [1, 1.4, 4, 12.8, 16]
    )


@given(st.lists(st.integers(0, 10**6) | st.floats(1e-9, 1e9), min_size=1, max_size=80))
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    found = stats.histogram(values)
    assert sum(found.counts) == len(values)
    assert len(found.edges) == len(found.counts) + 1
    assert list(found.edges) == sorted(found.edges)
    assert found.edges[0] <= min(values) * (1 + 1e-9) + 1e-9
    assert found.edges[-1] >= max(values) * (1 - 1e-9) - 1e-9
    assert len(found.counts) <= 21


def test_a_distribution_ignores_what_is_not_finite() -> None:
    found = stats.distribution([1.0, float("nan"), 3.0, float("inf")])
    assert found is not None
    assert (found.n, found.mean, found.median, found.most) == (2, 2.0, 2.0, 3.0)
    assert stats.distribution([float("nan")]) is None
