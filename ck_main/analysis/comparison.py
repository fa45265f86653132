"""Compare two outputs task by task, and say whether the difference is noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ck_main.analysis.facts import MEASURES
from ck_main.analysis.statistics import (
    LEVEL,
    Interval,
    agresti_min,
    bootstrap,
    fewest_differences,
    finite,
    mcnemar,
    ratio_interval,
    sign_flip,
)
from ck_main.analysis.summary import Summary, TaskFacts

_ALPHA = 1 - LEVEL


@dataclass(frozen=True)
class Ratio:
    """A cost of B divided by that of A, over the tasks for which both are known.

    Args:
        measure: one of `MEASURES`.
        tasks: number of tasks.
        a, b: sums.
        interval: the ratio of the sums; None if it is undefined.
    """

    measure: str
    tasks: int
    a: float
    b: float
    interval: Interval | None

    @property
    def differs(self) -> bool:
        """Whether the interval does not contain 1."""
        i = self.interval
        return i is not None and not i.low <= 1 <= i.high


@dataclass
class Comparison:
    """Two outputs, compared by task.

    Args:
        a, b: their names.
        tasks: number of tasks in both; `scored` of those with a score in both.
        only_a, only_b: ids of tasks in only one.
        both_right, only_a_right, only_b_right, both_wrong: number of scored tasks.
        mean_a, mean_b: mean scores of the scored tasks.
        p: p-value of the difference, and `test` its method; None without scored tasks.
        bootstrap: difference of the means, by a paired bootstrap.
        adjusted: the same for right and wrong answers, after Agresti and Min.
        ratios: costs of B divided by those of A.
        changed: ids of tasks whose score differs, with both scores.
    """

    a: str
    b: str
    tasks: int = 0
    scored: int = 0
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    both_right: int = 0
    only_a_right: int = 0
    only_b_right: int = 0
    both_wrong: int = 0
    mean_a: float | None = None
    mean_b: float | None = None
    p: float | None = None
    test: str = ""
    bootstrap: Interval | None = None
    adjusted: Interval | None = None
    ratios: list[Ratio] = field(default_factory=list)
    changed: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def interval(self) -> Interval | None:
        """The interval that the sentence uses: `adjusted` if there is one."""
        return self.adjusted or self.bootstrap

    @property
    def has_intervals(self) -> bool:
        """Whether any difference or ratio has an interval."""
        return self.interval is not None or any(r.interval for r in self.ratios)

    @property
    def significant(self) -> bool:
        """Whether the p-value is below 0.05."""
        return self.p is not None and self.p < _ALPHA

    @property
    def sentence(self) -> str:
        """One sentence that says whether the difference of the scores is noise."""
        return _sentence(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        plain = {k: v for k, v in vars(self).items() if k not in _NOT_PLAIN}
        return {
            **plain,
            "bootstrap": self.bootstrap.to_dict() if self.bootstrap else None,
            "adjusted": self.adjusted.to_dict() if self.adjusted else None,
            "significant": self.significant,
            "sentence": self.sentence,
            "ratios": [
                {**vars(r), "interval": r.interval.to_dict() if r.interval else None}
                for r in self.ratios
            ],
            "changed": [{"id": i, "a": a, "b": b} for i, a, b in self.changed],
        }


_NOT_PLAIN = ("bootstrap", "adjusted", "ratios", "changed")


def compare(a: Summary, b: Summary, *, good: float = 1.0) -> Comparison:
    """Compare two outputs.

    Args:
        a, b: their summaries. Tasks are matched by id, or by the text of the question if the
            outputs have no id in common.
        good: lowest score of a right answer.
    """
    pairs, only_a, only_b = _pairs(a.tasks, b.tasks)
    found = Comparison(a.name, b.name, tasks=len(pairs), only_a=only_a, only_b=only_b)
    found.ratios = [_ratio(measure, pairs) for measure in MEASURES]
    scores = [(x.score, y.score, x.id) for x, y in pairs]
    known = [(x, y, i) for x, y, i in scores if x is not None and y is not None]
    known = [(x, y, i) for x, y, i in known if math.isfinite(x) and math.isfinite(y)]
    found.scored = len(known)
    if not known:
        return found
    found.mean_a = sum(x for x, _, _ in known) / len(known)
    found.mean_b = sum(y for _, y, _ in known) / len(known)
    for x, y, task_id in known:
        found.both_right += x >= good and y >= good
        found.only_a_right += x >= good > y
        found.only_b_right += y >= good > x
        found.both_wrong += x < good and y < good
        if x != y:
            found.changed.append((task_id, x, y))
    differences = [y - x for x, y, _ in known]
    found.bootstrap = bootstrap([(d,) for d in differences], lambda sums, n: sums[0] / n)
    if all(x in (0.0, 1.0) and y in (0.0, 1.0) for x, y, _ in known):
        found.p, found.test = mcnemar(found.only_a_right, found.only_b_right), "exact McNemar test"
        found.adjusted = agresti_min(found.only_a_right, found.only_b_right, len(known))
    else:
        found.p, found.test = sign_flip(differences), "paired randomisation test"
    return found


def _pairs(
    a: Sequence[TaskFacts], b: Sequence[TaskFacts]
) -> tuple[list[tuple[TaskFacts, TaskFacts]], list[str], list[str]]:
    of_a, of_b = {t.id: t for t in a}, {t.id: t for t in b}
    if not of_a.keys() & of_b.keys():
        texts = ({t.run.question: t for t in a}, {t.run.question: t for t in b})
        unique = all(len(found) == len(tasks) for found, tasks in zip(texts, (a, b), strict=True))
        if unique and "" not in texts[0]:
            of_a, of_b = texts
    common = [key for key in of_a if key in of_b]
    only_a = [t.id for key, t in of_a.items() if key not in of_b]
    only_b = [t.id for key, t in of_b.items() if key not in of_a]
    return [(of_a[key], of_b[key]) for key in common], only_a, only_b


def _ratio(measure: str, pairs: Sequence[tuple[TaskFacts, TaskFacts]]) -> Ratio:
    values = [(x.measures.get(measure), y.measures.get(measure)) for x, y in pairs]
    known = [(x, y) for x, y in values if x is not None and y is not None]
    known = [(x, y) for x, y in known if len(finite((x, y))) == 2]
    a, b = sum(x for x, _ in known), sum(y for _, y in known)
    return Ratio(measure, len(known), a, b, ratio_interval(known))


def _sentence(found: Comparison) -> str:
    if not found.tasks:
        return "A and B have no task in common, so they cannot be compared."
    if found.p is None or found.mean_a is None or found.mean_b is None:
        return "No task has a score in both, so only the costs can be compared."
    difference = found.mean_b - found.mean_a
    if not found.changed:
        return _sentence_without_change(found)
    better = "better" if difference > 0 else "worse"
    head = f"B is {abs(difference) * 100:.1f} points {better} than A"
    parts = [f"{_percent(found.mean_a)} -> {_percent(found.mean_b)} on {_tasks(found.scored)}"]
    if (interval := found.interval) is not None:
        parts.append(f"95 % interval {interval.low * 100:+.1f} to {interval.high * 100:+.1f}")
    parts.append(f"{found.test}, p {_p(found.p)}")
    facts = "; ".join(parts)
    if difference == 0:
        changed = _tasks(len(found.changed))
        return f"A and B have the same mean score, although {changed} differ ({facts})."
    if found.significant:
        return f"{head} ({facts}): the difference is probably not noise."
    return f"{head} ({facts}): the difference may be noise{_too_few(found)}."


def _sentence_without_change(found: Comparison) -> str:
    text = f"A and B have the same score on each of {_tasks(found.scored)}"
    if found.interval is None or found.scored < 2:
        return f"{text}; this says little about other tasks."
    half = found.interval.half_width * 100
    return f"{text}; on other tasks they may differ by up to about {half:.0f} points."


def _too_few(found: Comparison) -> str:
    differing, least = found.only_a_right + found.only_b_right, fewest_differences()
    if found.adjusted is None or differing >= least:
        return ""
    verb = "differs" if differing == 1 else "differ"
    return (
        f"; only {_tasks(differing)} {verb}, and below {least} no result of the test is significant"
    )


def _tasks(number: int) -> str:
    return f"{number:,} task" if number == 1 else f"{number:,} tasks"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.2g}" if p < 0.1 else f"= {p:.2f}"
