"""Scales of plots: from values to pixels, and where to put the marks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ck_main.analysis.wording import number


@dataclass(frozen=True)
class Scale:
    """A scale from values to pixels.

    Args:
        low, high: range of values.
        start, end: range of pixels.
        log: whether it is logarithmic; the values are then positive.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; values outside the range are moved to its ends."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def marks(self, most: int = 6) -> list[float]:
        """Return round values within the range."""
        if self.log:
            return _log_marks(self.low, self.high, most)
        if self.high <= self.low:
            return [self.low]
        raw = (self.high - self.low) / most
        power: float = 10.0 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [n * step for n in range(first, last + 1)]


def _log_marks(low: float, high: float, most: int) -> list[float]:
    found: list[float] = []
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        values = [d * 10.0**p for p in powers for d in digits]
        found = [v for v in values if low * 0.999 <= v <= high * 1.001]
        if len(found) <= most:
            break
    return found[:: -(-len(found) // most)] if found else [low, high]


def mark_text(value: float) -> str:
    """Write a round value on an axis: "20k", "0.5"."""
    return number(value) if abs(value) >= 10_000 else f"{value:g}"
