"""An analysis as tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ck_main.analysis.comparison import Comparison
from ck_main.analysis.failures import KINDS, RIGHT
from ck_main.analysis.statistics import Histogram
from ck_main.analysis.summary import Accuracy, Summary, TaskFacts, natural_order
from ck_main.analysis.wording import (
    UNITS,
    number,
    number_range,
    percent,
    percent_range,
    ratio_verdict,
)
from ck_pro.command_line import without_controls

_BARS = " ▁▂▃▄▅▆▇█"
_SHOWN = 20
_MAX_LABELS = 40
"""Number of labels of a group."""
_COSTS = ("steps", "calls", "tokens", "cached_tokens", "money", "seconds")


def report_tables(
    a: Summary,
    b: Summary | None = None,
    comparison: Comparison | None = None,
    *,
    shown: int = _SHOWN,
) -> Iterator[RenderableType]:
    """Yield the tables of an analysis.

    Args:
        a, b: the outputs; `b` may be None.
        comparison: of the two.
        shown: maximum number of failed tasks to list.
    """
    summaries = [a] if b is None else [a, b]
    if b is not None:
        for letter, summary in zip("AB", summaries, strict=True):
            yield Text(f"{letter}: {_safe(summary.name)}", style="bold")
    yield accuracy_table(summaries)
    for summary in summaries:
        if summary.tries:
            yield tries_table(summary, _title(summary, summaries))
    if any(s.tasks for s in summaries):
        yield endings_table(summaries)
    for summary in summaries:
        if summary.distributions:
            yield costs_table(summary, _title(summary, summaries))
    if comparison is not None:
        yield comparison_table(comparison)
    for summary in summaries:
        if summary.failed and shown:
            yield failures_table(summary, shown, _title(summary, summaries))
    if comparison is not None:
        yield Text(comparison.sentence, style="bold")


def _title(summary: Summary, summaries: list[Summary]) -> str:
    return "" if len(summaries) == 1 else f" of {'AB'[summaries.index(summary)]}"


def accuracy_table(summaries: list[Summary]) -> Table:
    """Build the table of mean scores, overall and by group."""
    table = _table("score")
    table.add_column("group")
    for letter in "AB"[: len(summaries)]:
        mark = f" {letter}" if len(summaries) > 1 else ""
        table.add_column(f"tasks{mark}", justify="right")
        table.add_column(f"score{mark}", justify="right")
        table.add_column("95 %", justify="right", style="dim", no_wrap=True)
    table.add_row("all", *(c for s in summaries for c in _accuracy_cells(s.overall)), style="bold")
    found = [{(g.name, g.label): g for g in s.groups} for s in summaries]
    keys = dict.fromkeys(key for groups in found for key in groups)
    names = list(dict.fromkeys(name for name, _ in keys))
    shown: Counter[str] = Counter()
    last = ""
    for name, label in sorted(keys, key=lambda k: (names.index(k[0]), natural_order(k[1]))):
        if name != last:
            table.add_section()
            table.add_row(Text(_safe(name), style="dim"))
            last = name
        shown[name] += 1
        if shown[name] == _MAX_LABELS + 1:
            table.add_row(Text("  ... (--json has all)", style="dim"))
        if shown[name] > _MAX_LABELS:
            continue
        cells = [c for groups in found for c in _accuracy_cells(groups.get((name, label)))]
        table.add_row(Text(_safe(f"  {label}")), *cells)
    return table


def _accuracy_cells(accuracy: Accuracy | None) -> tuple[str, str, str]:
    if accuracy is None:
        return "-", "-", "-"
    tasks = f"{accuracy.scored:,}"
    if accuracy.scored != accuracy.tasks:
        tasks += f" of {accuracy.tasks:,}"
    interval = accuracy.interval
    return tasks, "-" if interval is None else percent(interval.value), percent_range(interval)


def tries_table(summary: Summary, title: str) -> Table:
    """Build the table of pass@k and pass^k."""
    early = summary.stopped_early
    table = _table(f"tries{title}")
    table.add_column("k", justify="right")
    table.add_column("solved within k tries" if early else "pass@k", justify="right")
    if not early:
        table.add_column("pass^k", justify="right")
    table.add_column("tasks", justify="right")
    for tries in summary.tries:
        every = [] if tries.all_right is None else [percent(tries.all_right)]
        table.add_row(str(tries.k), percent(tries.any_right), *every, f"{tries.tasks:,}")
    return table


def endings_table(summaries: list[Summary]) -> Table:
    """Build the table of the kinds of endings."""
    table = _table("endings")
    table.add_column("kind")
    for letter in "AB"[: len(summaries)]:
        table.add_column(letter if len(summaries) > 1 else "tasks", justify="right")
        table.add_column("share", justify="right", style="dim")
    table.add_column("details")
    for kind in KINDS:
        counts = [s.endings.get(kind, 0) for s in summaries]
        if not any(counts):
            continue
        cells = [
            c
            for s, n in zip(summaries, counts, strict=True)
            for c in (f"{n:,}", percent(n / max(1, len(s.tasks))))
        ]
        details: dict[str, int] = {}
        for summary in summaries:
            for detail, count in summary.details.get(kind, {}).items():
                details[detail] = details.get(detail, 0) + count
        text = ", ".join(f"{d} {n}" for d, n in sorted(details.items(), key=lambda x: -x[1]))
        style = "green" if kind == RIGHT else ""
        table.add_row(Text(kind, style=style), *cells, Text(_safe(text)))
    return table


def costs_table(summary: Summary, title: str) -> Table:
    """Build the table of steps, calls, tokens, money and time per task."""
    table = _table(f"per task{title}")
    table.add_column("")
    for name in ("median", "p90", "max", "mean"):
        table.add_column(name, justify="right")
    table.add_column("95 %", justify="right", style="dim", no_wrap=True)
    table.add_column("total", justify="right")
    table.add_column("histogram", no_wrap=True)
    for measure in _COSTS:
        found = summary.distributions.get(measure)
        if found is None or (measure == "cached_tokens" and not found.total):
            continue
        values = (found.median, found.p90, found.most, found.mean)
        table.add_row(
            UNITS[measure],
            *map(number, values),
            number_range(found.interval),
            number(found.total),
            bars(found.bins),
        )
    return table


def bars(bins: Histogram) -> str:
    """Draw a histogram with one character per bin; a bin with a value is never blank."""
    most = max(bins.counts)
    levels = len(_BARS) - 1
    return "".join(_BARS[-(-count * levels // most)] for count in bins.counts)


def failures_table(summary: Summary, shown: int, title: str) -> RenderableType:
    """Build the table of failed tasks, and where they went wrong."""
    table = _table(f"failed tasks{title}: where they went wrong (a heuristic)")
    for name in ("task", "kind", "step"):
        table.add_column(name, overflow="fold")
    table.add_column("evidence", overflow="fold", ratio=1)
    for task in summary.failed[:shown]:
        table.add_row(*map(Text, map(_safe, _failure_cells(task))))
    if len(summary.failed) <= shown:
        return table
    more = len(summary.failed) - shown
    return Group(table, Text(f"... and {more:,} more (--failures N, --json, --html)", style="dim"))


def _failure_cells(task: TaskFacts) -> tuple[str, str, str, str]:
    ending = task.run.ending
    kind = f"{ending.kind} ({ending.detail})" if ending.detail else ending.kind
    wrong = ending.wrong
    if wrong is None:
        return task.id, kind, "-", ending.evidence
    evidence = f"{wrong.sign}: {wrong.evidence}" if wrong.evidence else ending.evidence
    return task.id, kind, f"{wrong.agent} {wrong.step}", evidence or wrong.sign


def comparison_table(found: Comparison) -> RenderableType:
    """Build the tables of a comparison."""
    table = _table("A and B by task")
    table.add_column("")
    table.add_column("A", justify="right")
    table.add_column("B", justify="right")
    table.add_column("B / A", justify="right")
    table.add_column("95 % interval", justify="right", style="dim")
    table.add_column("verdict")
    for ratio in found.ratios:
        if not ratio.tasks:
            continue
        value = "-" if ratio.interval is None else f"{ratio.interval.value:.2f}"
        cells = (number(ratio.a), number(ratio.b), value, number_range(ratio.interval))
        table.add_row(UNITS[ratio.measure], *cells, ratio_verdict(ratio))
    lines = []
    if found.scored:
        lines.append(
            f"right in both {found.both_right:,}, only in A {found.only_a_right:,}, only in B "
            f"{found.only_b_right:,}, in none {found.both_wrong:,}"
        )
    for name, interval in (("paired bootstrap", found.bootstrap), ("Agresti-Min", found.adjusted)):
        if interval is not None:
            lines.append(
                f"difference of the scores, {name}: {interval.value * 100:+.1f} points "
                f"({interval.low * 100:+.1f} to {interval.high * 100:+.1f})"
            )
    for letter, ids in (("A", found.only_a), ("B", found.only_b)):
        if ids:
            more = ", ..." if len(ids) > 5 else ""
            lines.append(f"only in {letter}: {len(ids):,} ({_safe(', '.join(ids[:5]))}{more})")
    if found.changed:
        shown = ", ".join(f"{i} {x:.3g} -> {y:.3g}" for i, x, y in found.changed[:8])
        more = ", ..." if len(found.changed) > 8 else ""
        lines.append(f"changed: {_safe(shown)}{more}")
    return Group(table, *(Text(line) for line in lines))


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 0),
        pad_edge=False,
        collapse_padding=True,
    )


def _safe(text: str) -> str:
    return without_controls(text.replace("\n", " "))
