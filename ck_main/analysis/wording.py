"""How numbers of an analysis are written, in tables, plots and reports."""

from __future__ import annotations

from ck_main.analysis.comparison import Ratio
from ck_main.analysis.statistics import Interval

UNITS = {
    "steps": "steps",
    "calls": "calls",
    "tokens": "tokens",
    "money": "USD",
    "seconds": "seconds",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "cached_tokens": "cached tokens",
}
"""Title of each measure."""


def number(value: float) -> str:
    """Write a number with about three digits: "1,234", "12.3k", "3.4M", "0.0123"."""
    size = abs(value)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit * (10 if unit == 1e3 else 1):
            return f"{value / unit:.3g}{name}" if size < 1e12 else f"{value:.3g}"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def percent(share: float) -> str:
    """Write a share: "66.7 %"."""
    return f"{share * 100:.1f} %"


def percent_range(interval: Interval | None) -> str:
    """Write an interval of a share: "51-83 %"."""
    if interval is None or interval.method == "none":
        return "-"
    return f"{interval.low * 100:.0f}-{interval.high * 100:.0f} %"


def number_range(interval: Interval | None) -> str:
    """Write an interval of a number."""
    return "-" if interval is None else f"{number(interval.low)}-{number(interval.high)}"


def ratio_verdict(ratio: Ratio) -> str:
    """Say what a ratio of costs means."""
    interval = ratio.interval
    if interval is None:
        return "not known for both"
    if not ratio.differs:
        return "no clear difference"
    return "B uses more" if interval.value > 1 else "B uses less"
