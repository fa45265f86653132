"""Summarise the runs of one output: accuracy, tries, endings, costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ck_main.analysis.facts import MEASURES, NONE, RunFacts
from ck_main.analysis.failures import KINDS, Ending
from ck_main.analysis.statistics import (
    Distribution,
    Interval,
    distribution,
    finite,
    mean_interval,
    pass_all,
    pass_at,
    wilson,
)

_MAX_K = 32
_TOKEN_KINDS = ("prompt_tokens", "completion_tokens", "cached_tokens")


@dataclass(eq=False)
class TaskFacts:
    """One task with all its tries.

    Args:
        id: of the task.
        run: the try that counts: that of the row, or the first.
        score: of that try, or the mean over the tries if no row chose one.
        tries: scores of all tries.
        stopped_early: whether the tries ended with the first right one.
        measures: sums over all tries of what is known for each.
    """

    id: str
    run: RunFacts
    score: float | None
    tries: tuple[float | None, ...]
    stopped_early: bool
    measures: dict[str, float | None]


@dataclass(frozen=True)
class Accuracy:
    """The mean score of some tasks.

    Args:
        name, label: of the group; both "" for all tasks.
        tasks: number of tasks, `scored` of those with a score.
        right: number of tasks with score 1.
        interval: mean score; None without a scored task.
    """

    name: str
    label: str
    tasks: int
    scored: int
    right: int
    interval: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        interval = self.interval.to_dict() if self.interval else None
        return {**vars(self), "interval": interval}


@dataclass(frozen=True)
class Tries:
    """`pass@k` and `pass^k` for one k, over the tasks with at least k tries.

    Args:
        any_right: pass@k, or the share of tasks solved within k tries if tries end at success.
        all_right: pass^k; None if tries end at success.
        tasks: number of tasks.
    """

    k: int
    any_right: float
    all_right: float | None
    tasks: int


@dataclass(eq=False)
class Summary:
    """The summary of one output."""

    name: str
    tasks: list[TaskFacts]
    overall: Accuracy
    groups: list[Accuracy] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)
    details: dict[str, Counter[str]] = field(default_factory=dict)
    distributions: dict[str, Distribution] = field(default_factory=dict)
    tries: list[Tries] = field(default_factory=list)
    stopped_early: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[TaskFacts]:
        """The tasks that failed."""
        return [t for t in self.tasks if t.run.ending.failed]

    @property
    def cached_share(self) -> float | None:
        """The share of prompt tokens from a cache, of the tasks for which both are known."""
        pairs = [
            (t.measures.get("cached_tokens"), t.measures.get("prompt_tokens")) for t in self.tasks
        ]
        known = [(c, p) for c, p in pairs if c is not None and p]
        return sum(c for c, _ in known) / sum(p for _, p in known) if known else None

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON data."""
        return {
            "name": self.name,
            "overall": self.overall.to_dict(),
            "groups": [g.to_dict() for g in self.groups],
            "endings": dict(self.endings),
            "details": {kind: dict(found) for kind, found in self.details.items()},
            "distributions": {n: d.to_dict() for n, d in self.distributions.items()},
            "cached_share": self.cached_share,
            "tries": [vars(t) for t in self.tries],
            "tries_end_at_success": self.stopped_early,
            "failures": [_failure(t) for t in self.failed],
            "problems": self.problems,
        }


def _failure(task: TaskFacts) -> dict[str, Any]:
    ending: Ending = task.run.ending
    return {
        "id": task.id,
        "kind": ending.kind,
        "detail": ending.detail,
        "evidence": ending.evidence,
        "went_wrong": ending.wrong.to_dict() if ending.wrong else None,
        "answer": task.run.answer,
        "gold": task.run.gold,
    }


def analyse(
    name: str, runs: Iterable[RunFacts], *, good: float = 1.0, problems: Sequence[str] = ()
) -> Summary:
    """Summarise runs.

    Args:
        name: of the output, for titles.
        runs: the runs.
        good: lowest score of a right answer.
        problems: lines that could not be read; read after `runs`.
    """
    tasks = tasks_of(runs)
    found = Summary(name, tasks, accuracy("", "", tasks, good))
    found.groups = _groups(tasks, good)
    for task in tasks:
        ending = task.run.ending
        found.endings[ending.kind] += 1
        if ending.detail:
            found.details.setdefault(ending.kind, Counter())[ending.detail] += 1
    found.endings = Counter({k: found.endings[k] for k in KINDS if found.endings[k]})
    for measure in (*MEASURES, *_TOKEN_KINDS):
        values = finite([t.measures.get(measure) for t in tasks])
        described = distribution(values)
        if described is not None:
            found.distributions[measure] = described
    found.stopped_early = any(t.stopped_early for t in tasks)
    found.tries = tries_of_tasks(tasks, good)
    found.problems = list(problems)
    return found


def tasks_of(runs: Iterable[RunFacts]) -> list[TaskFacts]:
    """Group the tries of each task."""
    grouped: dict[str, list[RunFacts]] = {}
    for run in runs:
        grouped.setdefault(run.id, []).append(run)
    return [_task(name, found) for name, found in grouped.items()]


def _task(name: str, runs: list[RunFacts]) -> TaskFacts:
    listed = next((r for r in runs if r.tries is not None), None)
    own = [r for r in runs if r.own]
    run = listed or own[0]
    if listed is not None and listed.tries is not None:
        score, tries = listed.score, listed.tries
    else:
        tries = tuple(r.score for r in sorted(runs, key=lambda r: r.number))
        known = finite([r.score for r in own])
        score = sum(known) / len(known) if known else None
    measures: dict[str, float | None] = {}
    for measure in run.measures:
        values = [r.measures[measure] for r in ([run] if _complete(run) else runs)]
        known = finite(values)
        measures[measure] = sum(known) if known and len(known) == len(values) else None
    return TaskFacts(name, run, score, tries, run.stopped_early, measures)


def _complete(run: RunFacts) -> bool:
    """Whether the measures of a run already include all tries: its row lists them."""
    return run.tries is not None and not run.stopped_early


def accuracy(name: str, label: str, tasks: Sequence[TaskFacts], good: float) -> Accuracy:
    """Return the mean score: with Wilson's interval if all scores are 0 or 1, else by bootstrap."""
    scores = finite([t.score for t in tasks])
    right = sum(s >= good for s in scores)
    interval: Interval | None = None
    if scores and all(s in (0.0, 1.0) for s in scores):
        interval = wilson(sum(scores), len(scores))
    elif scores:
        mean = sum(scores) / len(scores)
        interval = mean_interval(scores) or Interval(mean, mean, mean, "none")
    return Accuracy(name, label, len(tasks), len(scores), right, interval)


def _groups(tasks: Sequence[TaskFacts], good: float) -> list[Accuracy]:
    found: list[Accuracy] = []
    for name in dict.fromkeys(n for t in tasks for n in t.run.groups):
        members: dict[str, list[TaskFacts]] = {}
        for task in tasks:
            for label in task.run.groups.get(name, (NONE,)):
                members.setdefault(label, []).append(task)
        if set(members) == {NONE}:
            continue
        for label in sorted(members, key=natural_order):
            found.append(accuracy(name, label, members[label], good))
    return found


def natural_order(label: str) -> tuple[bool, float, str]:
    """Sort numbers as numbers, and "(none)" last."""
    try:
        number = float(label)
    except ValueError:
        number = float("inf")
    return label == NONE, number if number == number else float("inf"), label


def tries_of_tasks(tasks: Sequence[TaskFacts], good: float) -> list[Tries]:
    """Return pass@k and pass^k for each k up to the number of tries, at most 32.

    If tries end with the first right one, their number depends on their outcome, so that the usual
    estimates are biased. Then the result is the share of tasks that were solved within k tries.
    """
    known = [[s >= good for s in t.tries if s is not None] for t in tasks]
    counted = [tries for tries in known if tries]
    most = max(map(len, counted), default=0)
    if most < 2:
        return []
    if any(t.stopped_early for t in tasks):
        total = len(counted)
        return [
            Tries(k, sum(any(tries[:k]) for tries in counted) / total, None, total)
            for k in range(1, min(most, _MAX_K) + 1)
        ]
    found = []
    for k in range(1, min(most, _MAX_K) + 1):
        of_k = [(len(tries), sum(tries)) for tries in counted if len(tries) >= k]
        one = sum(pass_at(n, c, k) for n, c in of_k) / len(of_k)
        every = sum(pass_all(n, c, k) for n, c in of_k) / len(of_k)
        found.append(Tries(k, one, every, len(of_k)))
    return found
