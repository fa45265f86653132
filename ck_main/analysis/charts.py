"""The plots of an analysis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ck_main.analysis.axes import Scale, mark_text
from ck_main.analysis.comparison import Comparison
from ck_main.analysis.facts import MEASURES
from ck_main.analysis.failures import KINDS, RIGHT
from ck_main.analysis.statistics import Interval, finite, histogram, quantile
from ck_main.analysis.summary import Accuracy, Summary, natural_order
from ck_main.analysis.svg import (
    A_COLOUR,
    B_COLOUR,
    GOOD_COLOUR,
    Drawing,
    shortened,
    text_width,
)
from ck_main.analysis.wording import UNITS, number, percent, percent_range

_WIDTH = 500.0
_ROW = 22.0
_MAX_ROWS = 40
_COLOURS = (A_COLOUR, B_COLOUR)
_TOP = 34.0


def charts(
    summaries: Sequence[Summary], comparison: Comparison | None = None
) -> dict[str, Drawing]:
    """Return the plots that the data allows, by name.

    Args:
        summaries: one or two.
        comparison: of the two.
    """
    found: dict[str, Drawing] = {}
    if not any(s.tasks for s in summaries):
        return found
    if any(s.overall.interval for s in summaries):
        found["scores"] = score_chart(summaries)
    found["endings"] = endings_chart(summaries)
    if comparison is not None and comparison.has_intervals:
        found["comparison"] = comparison_chart(comparison)
    if any(s.tries for s in summaries):
        found["tries"] = tries_chart(summaries)
    for measure in MEASURES:
        if any(measure in s.distributions for s in summaries):
            found[measure] = cost_chart(summaries, measure)
    return found


def _start(title: str, height: float, several: bool, width: float = _WIDTH) -> Drawing:
    drawing = Drawing(width, height, title)
    drawing.text(0, 16, title, size=14, font_weight=600)
    if several:
        for n, letter in enumerate("AB"):
            x = width - 72 + 38 * n
            drawing.rect(x, 6, 12, 12, fill=_COLOURS[n])
            drawing.text(x + 17, 16, letter)
    return drawing


# --- scores --------------------------------------------------------------------------------------


def score_chart(summaries: Sequence[Summary]) -> Drawing:
    """Draw the mean score with its interval: of all tasks, and of each group."""
    found = [{("", ""): s.overall, **{(g.name, g.label): g for g in s.groups}} for s in summaries]
    keys = list(dict.fromkeys(key for groups in found for key in groups))
    names = list(dict.fromkeys(name for name, _ in keys))
    keys.sort(key=lambda key: (names.index(key[0]), natural_order(key[1])))
    shown = keys[:_MAX_ROWS]
    heads = sum(1 for name in dict.fromkeys(n for n, _ in shown) if name)
    row = _ROW + 8 * (len(summaries) - 1)
    height = _TOP + len(shown) * row + heads * 20 + 40
    drawing = _start("Score with 95 % interval", height, len(summaries) > 1)
    values = max(_value_width(groups.get(key)) for groups in found for key in shown)
    left, right = 118.0, _WIDTH - values - 16
    scale = Scale(0, 1, left, right)
    bottom = height - 30
    for mark in (0, 0.25, 0.5, 0.75, 1):
        drawing.line(scale(mark), _TOP - 6, scale(mark), bottom, opacity=0.12)
        drawing.text(scale(mark), bottom + 16, f"{mark * 100:.0f} %", anchor="middle", opacity=0.7)
    y, last = _TOP, ""
    for key in shown:
        if key[0] != last:
            last = key[0]
            drawing.text(0, y + 14, last, size=11, opacity=0.65, font_weight=600)
            y += 20
        _score_row(drawing, y, row, key, [groups.get(key) for groups in found], scale)
        y += row
    if len(keys) > len(shown):
        drawing.text(0, height - 6, f"... and {len(keys) - len(shown)} more groups", opacity=0.7)
    return drawing


def _value_text(accuracy: Accuracy | None) -> str:
    if accuracy is None or accuracy.interval is None:
        return "no score"
    return f"{percent(accuracy.interval.value)}  of {accuracy.scored:,}"


def _value_width(accuracy: Accuracy | None) -> float:
    return text_width(_value_text(accuracy), 11) + 4


def _score_row(
    drawing: Drawing,
    y: float,
    row: float,
    key: tuple[str, str],
    accuracies: Sequence[Accuracy | None],
    scale: Scale,
) -> None:
    label = key[1] if key[0] else "all tasks"
    weight = 400 if key[0] else 600
    x = 10 if key[0] else 0
    drawing.text(x, y + row / 2 + 4, shortened(label, 104), font_weight=weight)
    several = len(accuracies) > 1
    for n, accuracy in enumerate(accuracies):
        if accuracy is None or accuracy.interval is None:
            continue
        middle = y + row / 2 + (n * 12 - 6 if several else 0)
        interval, colour = accuracy.interval, _COLOURS[n]
        tip = f"{label}: {percent(interval.value)}, {percent_range(interval)}"
        drawing.line(
            scale(interval.low),
            middle,
            scale(interval.high),
            middle,
            stroke=colour,
            stroke_width=3,
            opacity=0.45,
            stroke_linecap="round",
        )
        drawing.circle(scale(interval.value), middle, 4.5, tip=tip, fill=colour)
        size = 10.5 if several else 11
        text = _value_text(accuracy)
        drawing.text(scale.end + 12, middle + size * 0.36, text, size=size, opacity=0.8)


# --- endings -------------------------------------------------------------------------------------


def endings_chart(summaries: Sequence[Summary]) -> Drawing:
    """Draw the share of tasks by the kind of their ending."""
    kinds = [k for k in KINDS if any(s.endings.get(k) for s in summaries)]
    several = len(summaries) > 1
    row = 34.0 if several else 24.0
    drawing = _start("How the tasks ended", _TOP + len(kinds) * row + 8, several)
    most = max(s.endings[k] / len(s.tasks) for s in summaries for k in kinds if s.tasks)
    scale = Scale(0, most, 118, _WIDTH - 96)
    for n, kind in enumerate(kinds):
        y = _TOP + n * row
        drawing.text(0, y + row / 2 + 4, kind)
        for m, summary in enumerate(summaries):
            count = summary.endings.get(kind, 0)
            share = count / len(summary.tasks) if summary.tasks else 0.0
            height = (row - 8) / len(summaries)
            top = y + 4 + m * height
            colour = GOOD_COLOUR if kind == RIGHT and not several else _COLOURS[m]
            width = max(scale(share) - scale.start, 1.5 if count else 0)
            tip = f"{kind}: {count:,} of {len(summary.tasks):,}"
            drawing.rect(scale.start, top, width, height - 1.5, tip=tip, fill=colour)
            text = f"{count:,}  ({percent(share)})"
            y_text = top + height / 2 + 3.5
            drawing.text(scale.start + width + 8, y_text, text, size=11, opacity=0.8)
    return drawing


# --- costs ---------------------------------------------------------------------------------------


def cost_chart(summaries: Sequence[Summary], measure: str) -> Drawing:
    """Draw the distribution of a cost per task, with its median and 90th percentile."""
    values = [finite([t.measures.get(measure) for t in s.tasks]) for s in summaries]
    bins = histogram([v for found in values for v in found])
    several = len(summaries) > 1
    width, top, row = 336.0, 52.0, 92.0
    drawing = _start(f"{UNITS[measure]} per task", top + row * len(values) + 26, several, width)
    low, high = bins.edges[0], bins.edges[-1]
    if low == high:
        low, high = low - 0.5, high + 0.5
    scale = Scale(low, high, 8, width - 12, bins.log)
    for n, found in enumerate(values):
        base = top + row * (n + 1) - 14
        _histogram(drawing, found, bins.edges, scale, base, row - 34, _COLOURS[n])
    bottom = top + row * len(values) - 14
    for mark in scale.marks() if bins.edges[0] < bins.edges[-1] else [bins.edges[0]]:
        x = scale(mark)
        drawing.text(x, bottom + 18, mark_text(mark), size=11, anchor="middle", opacity=0.7)
        drawing.line(x, bottom, x, bottom + 4, opacity=0.4)
    if bins.log:
        drawing.text(width - 12, bottom + 32, "logarithmic", size=10, anchor="end", opacity=0.6)
    return drawing


def _histogram(
    drawing: Drawing,
    values: Sequence[float],
    edges: Sequence[float],
    scale: Scale,
    base: float,
    height: float,
    colour: str,
) -> None:
    drawing.line(scale.start, base, scale.end, base, opacity=0.4)
    if not values:
        drawing.text(scale.start, base - 8, "not known", size=11, opacity=0.6)
        return
    ordered = sorted(values)
    counts = [0] * max(1, len(edges) - 1)
    for v in ordered:
        place = sum(v >= edge for edge in edges[1:-1])
        counts[place] += 1
    most = max(counts)
    for n, count in enumerate(counts):
        if not count:
            continue
        start, end = scale(edges[n]), scale(edges[n + 1])
        if edges[0] == edges[-1]:
            start, end = scale(edges[0]) - 24, scale(edges[0]) + 24
        size = max(height * count / most, 1.5)
        tip = f"{number(edges[n])} to {number(edges[n + 1])}: {count:,} tasks"
        drawing.rect(
            start + 0.5, base - size, end - start - 1, size, tip=tip, fill=colour, fill_opacity=0.75
        )
    marks = [("median", quantile(ordered, 0.5)), ("p90", quantile(ordered, 0.9))]
    if ordered[0] == ordered[-1]:
        marks = [("all", ordered[0])]
    places = [scale(value) for _, value in marks]
    for n, ((name, value), x) in enumerate(zip(marks, places, strict=True)):
        drawing.line(x, base, x, base - height - 6, opacity=0.8, stroke_dasharray="3 2")
        text = f"{name} {number(value)}"
        room = text_width(text, 11)
        anchor = "end" if n == 0 and x - room > 0 else "start"
        if n == 1 and x + room > drawing.width:
            anchor = "end"
        shift = -3 if anchor == "end" else 3
        y = base - height - 8 + (11 if n == 1 and _collide(places, anchor, marks) else 0)
        drawing.text(x + shift, y, text, size=11, anchor=anchor, opacity=0.85)


def _collide(places: list[float], anchor: str, marks: Sequence[tuple[str, float]]) -> bool:
    """Whether the label of the 90th percentile would cover that of the median."""
    median, p90 = places
    room = sum(text_width(f"{name} {number(value)}", 11) for name, value in marks)
    ends = anchor == "end" or median - text_width(f"median {number(marks[0][1])}", 11) <= 0
    return ends and p90 - median < room + 12


# --- tries ---------------------------------------------------------------------------------------


def tries_chart(summaries: Sequence[Summary]) -> Drawing:
    """Draw pass@k (solid) and pass^k (dashed)."""
    early = any(s.stopped_early for s in summaries)
    title = "Solved within k tries" if early else "pass@k (solid) and pass^k (dashed)"
    drawing = _start(title, 250, len(summaries) > 1)
    most = max(t.k for s in summaries for t in s.tries)
    x, y = Scale(1, max(most, 2), 50, _WIDTH - 106), Scale(0, 1, 210, 44)
    for mark in (0, 0.25, 0.5, 0.75, 1):
        drawing.line(50, y(mark), _WIDTH - 106, y(mark), opacity=0.12)
        drawing.text(42, y(mark) + 4, f"{mark * 100:.0f} %", size=11, anchor="end", opacity=0.7)
    for k in range(1, most + 1, -(-most // 12)):
        drawing.text(x(k), 230, str(k), size=11, anchor="middle", opacity=0.7)
    for n, summary in enumerate(summaries):
        for every in (False, True):
            points = [
                (t.k, t.all_right if every else t.any_right)
                for t in summary.tries
                if not every or t.all_right is not None
            ]
            drawn = [(x(k), y(share)) for k, share in points if share is not None]
            if not drawn:
                continue
            dash = {"stroke_dasharray": "5 4"} if every else {}
            drawing.curve(drawn, stroke=_COLOURS[n], **dash)
            for (k, share), (px, py) in zip(points, drawn, strict=True):
                drawing.circle(px, py, 3, tip=f"k = {k}: {percent(share or 0)}", fill=_COLOURS[n])
            name = f"{'pass^' if every else 'pass@'}{points[-1][0]}" if not early else ""
            text = f"{name} {percent(points[-1][1] or 0)}".strip()
            drawing.text(drawn[-1][0] + 8, drawn[-1][1] + 4, text, size=11, opacity=0.85)
    return drawing


# --- comparison ----------------------------------------------------------------------------------


def comparison_chart(found: Comparison) -> Drawing:
    """Draw the difference of the scores and the ratios of the costs with their intervals."""
    ratios = [r for r in found.ratios if r.interval is not None]
    rows = len(ratios) + (2.6 if found.interval else 0)
    height = _TOP + rows * 30 + (36 if ratios else 0) + 6
    drawing = _start("B compared with A", height, False)
    left, right = 90.0, _WIDTH - 172
    y = _TOP
    if (interval := found.interval) is not None:
        reach = max(0.05, abs(interval.low), abs(interval.high)) * 1.05
        scale = Scale(-reach, reach, left, right)
        text = f"{interval.value * 100:+.1f} points"
        y = _interval_row(drawing, y, "score", interval, scale, 0.0, text, not found.significant)
        for mark in scale.marks(5):
            label = f"{mark * 100:+.0f}" if round(mark * 100) else "0"
            drawing.text(scale(mark), y + 12, label, size=11, anchor="middle", opacity=0.7)
        drawing.text(right + 12, y + 12, "points", size=11, opacity=0.7)
        y += 48
    if ratios:
        ends = [e for r in ratios if r.interval for e in (r.interval.low, r.interval.high)]
        low = max(0.05, min([*ends, 0.8]) * 0.95)
        high = min(20.0, max([*ends, 1.25]) * 1.05)
        scale = Scale(low, max(high, low * 1.1), left, right, log=True)
        for ratio in ratios:
            if ratio.interval is not None:
                text = f"{ratio.interval.value:.2f} times"
                name = UNITS[ratio.measure]
                same = not ratio.differs
                y = _interval_row(drawing, y, name, ratio.interval, scale, 1.0, text, same)
        for mark in scale.marks():
            text = mark_text(mark)
            drawing.text(scale(mark), y + 12, text, size=11, anchor="middle", opacity=0.7)
        drawing.text(right + 12, y + 12, "B / A (logarithmic)", size=11, opacity=0.7)
    return drawing


def _interval_row(
    drawing: Drawing,
    y: float,
    label: str,
    interval: Interval,
    scale: Scale,
    zero: float,
    text: str,
    same: bool,
) -> float:
    """Draw one interval; return the y of the next row."""
    middle = y + 12
    colour = "#8a93a3" if same else B_COLOUR
    drawing.line(scale(zero), y - 4, scale(zero), y + 28, opacity=0.5)
    drawing.text(0, middle + 4, label)
    low, high = scale(interval.low), scale(interval.high)
    wide = {"stroke": colour, "stroke_width": 3.5, "opacity": 0.5, "stroke_linecap": "round"}
    drawing.line(low, middle, high, middle, **wide)  # type: ignore[arg-type]
    finite_value = interval.value if math.isfinite(interval.value) else interval.high
    drawing.circle(scale(finite_value), middle, 5, tip=text, fill=colour)
    verdict = "may be noise" if same else "differs"
    drawing.text(scale.end + 12, middle + 4, f"{text}, {verdict}", size=11, opacity=0.85)
    return y + 30
