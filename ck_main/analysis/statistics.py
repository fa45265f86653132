"""Statistics of scores and costs: intervals, tests, `pass@k`, quantiles. Pure Python.

Every interval is named after its method; docs/analysis.md has the formulas and their sources.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import NormalDist
from typing import Any

LEVEL = 0.95
"""Confidence level of all intervals."""
RESAMPLES = 2000
FLIPS = 9999
SEED = 20231
"""Seed of all resampling, so that the same input gives the same numbers."""
MAX_UNITS = 400
"""Number of groups that are resampled if there are more values than this."""

_NORMAL = NormalDist()

Row = tuple[float, ...]
Statistic = Callable[[Sequence[float], float], float]
"""Takes the sum of each column and the number of rows."""


@dataclass(frozen=True)
class Interval:
    """An estimate with a confidence interval.

    Args:
        value: the estimate.
        low, high: the interval.
        method: "wilson", "bootstrap" or "agresti-min".
    """

    value: float
    low: float
    high: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        """Return the interval as JSON data."""
        return vars(self).copy()

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def wilson(right: float, total: int, level: float = LEVEL) -> Interval:
    """Return a share with Wilson's score interval (Wilson 1927), which needs no large sample.

    Args:
        right: number of successes.
        total: number of trials, at least 1.
    """
    z = _NORMAL.inv_cdf((1 + level) / 2)
    share = right / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    width = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    width /= 1 + z * z / total
    low = 0.0 if right <= 0 else max(0.0, centre - width)
    high = 1.0 if right >= total else min(1.0, centre + width)
    return Interval(share, low, high, "wilson")


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return a mean with its bootstrap interval; None for fewer than two values."""
    return bootstrap([(v,) for v in values], lambda sums, n: sums[0] / n)


def ratio_interval(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the ratio of the second column's sum to the first's, with its bootstrap interval.

    None for fewer than two pairs, or if the first column's sum is not positive.
    """
    if sum(a for a, _ in pairs) <= 0:
        return None
    return bootstrap(pairs, lambda sums, n: sums[1] / sums[0] if sums[0] > 0 else math.inf)


def bootstrap(
    rows: Sequence[Row],
    statistic: Statistic,
    *,
    level: float = LEVEL,
    resamples: int | None = None,
    seed: int = SEED,
) -> Interval | None:
    """Return a statistic of column sums with its BCa bootstrap interval (Efron 1987).

    Above `MAX_UNITS` rows, rows are first put at random into `MAX_UNITS` groups of almost equal
    size, and groups are drawn instead of rows. As rows are independent, the sums of drawn groups
    vary like the sums of drawn rows, at a bounded cost.

    Args:
        rows: one row per independent unit, such as a task.
        statistic: a smooth function of the column sums.
        resamples: default: `RESAMPLES`.

    Returns:
        None for fewer than two rows.
    """
    if len(rows) < 2:
        return None
    rng = random.Random(seed)
    units = _units(rows, rng)
    sums, count = _sums(units), float(len(rows))
    value = statistic(sums[:-1], count)
    # the last column is the number of rows in the unit
    drawn = sorted(
        found
        for found in (
            _at(_sums(rng.choices(units, k=len(units))), statistic)
            for _ in range(resamples or RESAMPLES)
        )
        if math.isfinite(found)
    )
    if not drawn or drawn[0] == drawn[-1]:
        return Interval(value, value, value, "bootstrap")
    without = [_at([s - v for s, v in zip(sums, u, strict=True)], statistic) for u in units]
    low, high = _bca(value, drawn, without, level)
    return Interval(value, low, high, "bootstrap")


def _units(rows: Sequence[Row], rng: random.Random) -> list[Row]:
    if len(rows) <= MAX_UNITS:
        return [(*row, 1.0) for row in rows]
    order = list(range(len(rows)))
    rng.shuffle(order)
    groups = [order[n::MAX_UNITS] for n in range(MAX_UNITS)]
    return [(*map(math.fsum, zip(*(rows[i] for i in g), strict=True)), len(g)) for g in groups]


def _sums(rows: Sequence[Row]) -> list[float]:
    return [sum(column) for column in zip(*rows, strict=True)]


def _at(sums: Sequence[float], statistic: Statistic) -> float:
    return statistic(sums[:-1], sums[-1])


def _bca(
    value: float, drawn: Sequence[float], without: Sequence[float], level: float
) -> tuple[float, float]:
    """Return the bias-corrected and accelerated percentiles of the drawn values."""
    below = sum(d < value for d in drawn) + sum(d == value for d in drawn) / 2
    share = min(max(below / len(drawn), 1 / (2 * len(drawn))), 1 - 1 / (2 * len(drawn)))
    bias = _NORMAL.inv_cdf(share)
    acceleration = _acceleration([w for w in without if math.isfinite(w)])
    found = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + _NORMAL.inv_cdf(tail)
        at = _NORMAL.cdf(bias + z / (1 - acceleration * z))
        found.append(quantile(drawn, min(max(at, 0.0), 1.0)))
    return found[0], found[1]


def _acceleration(without: Sequence[float]) -> float:
    """Return a sixth of the skewness of the values of which one unit is missing (jackknife)."""
    centre = math.fsum(w / len(without) for w in without)
    largest = max((abs(centre - w) for w in without), default=0.0)
    if largest == 0:
        return 0.0
    scaled = [(centre - w) / largest for w in without]
    return math.fsum(s**3 for s in scaled) / (6 * math.pow(math.fsum(s**2 for s in scaled), 1.5))


# --- paired comparisons --------------------------------------------------------------------------


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the two-sided p-value of McNemar's exact test: a sign test of the differing pairs.

    Args:
        only_a, only_b: number of pairs in which only the first, or only the second, is a success.
    """
    n, fewer = only_a + only_b, min(only_a, only_b)
    term = total = 1  # binomial coefficients of n over 0, 1, ...
    for k in range(fewer):
        term = term * (n - k) // (k + 1)
        total += term
    return min(1.0, 2 * _divide(total, 1 << n))


def _divide(small: int, large: int) -> float:
    """Divide whole numbers that may be too large for a float."""
    shift = max(0, large.bit_length() - 1000)
    return (small >> shift) / (large >> shift)


def fewest_differences(alpha: float = 1 - LEVEL) -> int:
    """Return how many pairs must differ, all in one direction, for a p-value below alpha."""
    return math.floor(1 - math.log2(alpha)) + 1


def agresti_min(only_a: int, only_b: int, total: int, level: float = LEVEL) -> Interval:
    """Return the difference of two paired shares with its interval (Agresti and Min 2005).

    Unlike a bootstrap interval it has a width also if few or no pairs differ: it adds half a pair
    to each of the four cells of the table, and then uses the normal approximation.

    Args:
        only_a, only_b: as for `mcnemar`.
        total: number of pairs, at least 1.
    """
    z = _NORMAL.inv_cdf((1 + level) / 2)
    n, b, c = total + 2, only_a + 0.5, only_b + 0.5
    centre = (c - b) / n
    width = z * math.sqrt(max(0.0, b + c - (c - b) ** 2 / n)) / n
    value = (only_b - only_a) / total
    return Interval(value, max(-1.0, centre - width), min(1.0, centre + width), "agresti-min")


def sign_flip(
    differences: Sequence[float], *, resamples: int | None = None, seed: int = SEED
) -> float:
    """Return the two-sided p-value of a paired randomisation test of the mean difference.

    If the two sides are alike, each difference could as well have the other sign (Fisher 1935).
    Above `MAX_UNITS` pairs, signs of groups of pairs are flipped, as in `bootstrap`.
    """
    resamples = resamples or FLIPS
    rng = random.Random(seed)
    units = [unit[0] for unit in _units([(d,) for d in differences], rng) if unit[0] != 0]
    observed = abs(math.fsum(units)) * (1 - 1e-12)
    hits = 0
    for _ in range(resamples):
        bits = rng.getrandbits(len(units)) if units else 0
        hits += abs(sum(u if bits >> n & 1 else -u for n, u in enumerate(units))) >= observed
    return (hits + 1) / (resamples + 1)


# --- tries ---------------------------------------------------------------------------------------


def pass_at(tries: int, right: int, k: int) -> float:
    """Return the unbiased estimate of pass@k: at least one of k tries is right (Chen et al. 2021).

    Args:
        tries, right: number of tries of a task, and of right ones.
        k: at most `tries`.
    """
    return 1.0 - math.comb(tries - right, k) / math.comb(tries, k)


def pass_all(tries: int, right: int, k: int) -> float:
    """Return the unbiased estimate of pass^k: all of k tries are right (Yao et al. 2024)."""
    return math.comb(right, k) / math.comb(tries, k)


# --- distributions -------------------------------------------------------------------------------


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, with linear interpolation (type 7)."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    weight = place - below
    if weight == 0 or ordered[below] == ordered[above]:
        return ordered[below]
    return ordered[below] * (1 - weight) + ordered[above] * weight


@dataclass(frozen=True)
class Histogram:
    """Counts of values in bins.

    Args:
        edges: edges of the bins; a value on an edge is in the bin above, except the last.
        counts: number of values in each bin.
        log: whether the bins have equal width on a logarithmic scale.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    log: bool


def histogram(values: Sequence[float], most: int = 20) -> Histogram:
    """Put values into bins: of logarithmic width if they are positive and span much.

    The number of bins follows Freedman and Diaconis (1981), up to `most`. Whole numbers get bins of
    whole width.
    """
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    if low == high:
        return Histogram((low, high), (len(ordered),), False)
    log = low > 0 and high / low > 50
    whole = not log and all(v == int(v) for v in ordered[:: max(1, len(ordered) // 1000)])
    scaled = [math.log(v) for v in ordered] if log else ordered
    start, span = scaled[0], scaled[-1] - scaled[0]
    spread = quantile(scaled, 0.75) - quantile(scaled, 0.25)
    width = 2 * spread / len(scaled) ** (1 / 3) or span / most
    bins = max(1, min(most, math.ceil(span / width)))
    if whole:
        width = max(1, math.ceil((span + 1) / min(most, max(bins, 6))))
        edges = [low + width * n for n in range(math.ceil((span + 1) / width) + 1)]
    elif log:
        edges = [math.exp(start + span * n / bins) for n in range(bins + 1)]
    else:
        edges = [start + span * n / bins for n in range(bins + 1)]
    counts = [0] * (len(edges) - 1)
    place = 0
    for v in ordered:
        while place < len(counts) - 1 and v >= edges[place + 1]:
            place += 1
        counts[place] += 1
    return Histogram(tuple(edges), tuple(counts), log)


@dataclass(frozen=True)
class Distribution:
    """The distribution of a quantity over tasks.

    Args:
        n: number of tasks for which it is known.
        total, mean, median, p90, most: sum, mean, and quantiles.
        interval: of the mean; None for fewer than two values.
        bins: its histogram.
    """

    n: int
    total: float
    mean: float
    median: float
    p90: float
    most: float
    interval: Interval | None
    bins: Histogram

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution as JSON data."""
        return {
            **{k: v for k, v in vars(self).items() if k not in ("interval", "bins", "most")},
            "max": self.most,
            "interval": self.interval.to_dict() if self.interval else None,
            "histogram": {
                "edges": list(self.bins.edges),
                "counts": list(self.bins.counts),
                "log": self.bins.log,
            },
        }


def distribution(values: Sequence[float]) -> Distribution | None:
    """Describe finite values; None without any."""
    ordered = sorted(v for v in values if math.isfinite(v))
    if not ordered:
        return None
    total = math.fsum(ordered)
    return Distribution(
        n=len(ordered),
        total=total,
        mean=total / len(ordered),
        median=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        most=ordered[-1],
        interval=mean_interval(ordered),
        bins=histogram(ordered),
    )


def finite(values: Sequence[float | None]) -> list[float]:
    """Return the values that are known and finite."""
    return [v for v in chain(values) if v is not None and math.isfinite(v)]
