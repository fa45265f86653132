"""Score the rows of an output again, and write them to a new file."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.scoring.scorer import Case
from ck_main.scoring.scoring import Scoring
from ck_pro.exceptions import ConfigError, InputError, OutputError
from ck_pro.trajectory.exporting.writers import JsonLinesWriter
from ck_pro.trajectory.reading.attempts import final_results, number_in, value_at
from ck_pro.trajectory.reading.big_json import Pairs, is_list
from ck_pro.trajectory.reading.sources import (
    Problem,
    Record,
    check_inputs,
    read_records,
    require_not_input,
)

_KEPT_CHANGES = 1000
_AHEAD = 4
"""Rows per worker that wait for the judge."""


@dataclass(frozen=True)
class Change:
    """A row whose score changed."""

    task_id: str
    before: float | None
    after: float | None
    reason: str


@dataclass
class Rescored:
    """The result of scoring an output again.

    Args:
        rows: number of rows.
        changed: number of rows with another score.
        changes: the first 1,000 of them.
        before, after: number of rows by score: "right", "wrong", "partly right", "no score".
        mean_before, mean_after: mean of the scores; None without any.
        scorers: number of rows by scorer.
        reasons: number of rows by the reason for having no score.
        failed: number of rows whose scorer gave a reason instead of a score, such as an
            unreadable verdict.
        problems: lines and journals that cannot be read, and rows that were not scored.
    """

    rows: int = 0
    changed: int = 0
    changes: list[Change] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    mean_before: float | None = None
    mean_after: float | None = None
    scorers: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    problems: list[Problem] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {
            "rows": self.rows,
            "changed": self.changed,
            "before": dict(self.before),
            "after": dict(self.after),
            "mean_before": self.mean_before,
            "mean_after": self.mean_after,
            "scorers": dict(self.scorers),
            "without_score": dict(self.reasons),
            "failed": self.failed,
            "changes": [vars(change) for change in self.changes],
            "problems": [str(problem) for problem in self.problems],
        }


def rescore(
    inputs: Sequence[Path],
    output: Path,
    scoring: Scoring,
    *,
    force: bool = False,
    workers: int = 1,
    on_row: Callable[[int], None] = lambda done: None,
) -> Rescored:
    """Score rows again. The inputs do not change, and the output appears when it is complete.

    Args:
        inputs: files of rows, or folders with journals.
        output: file for the rows with the new scores.
        scoring: scores the answers.
        force: replace an existing output.
        workers: number of threads, for a judge.
        on_row: called with the number of rows so far.

    Raises:
        InputError: an input cannot be read, or is also the output.
        OutputError: the output exists or cannot be written.
        ModelError, LimitReached: from the judge; there is no output then.
    """
    check_inputs(inputs)
    require_not_input("--output", output, inputs)
    found = Rescored()
    writer = JsonLinesWriter(output, force=force)
    total: list[list[float]] = [[], []]
    try:
        for record, new in _scored(inputs, scoring, workers):
            if isinstance(record, Problem):
                found.problems.append(record)
                continue
            writer.write(_with_scores(record.row, new), str(record.row.get("id") or ""))
            _count(found, record, new, total)
            on_row(found.rows)
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
    found.mean_before, found.mean_after = (sum(t) / len(t) if t else None for t in total)
    return found


def _scored(
    inputs: Sequence[Path], scoring: Scoring, workers: int
) -> Iterator[tuple[Record | Problem, dict[str, Any]]]:
    """Yield each row with its new scores, in order; at most some rows per worker are in memory."""
    stopped = threading.Event()

    def score(record: Record | Problem) -> dict[str, Any]:
        return {} if stopped.is_set() else _new_scores(record, scoring)

    waiting: deque[tuple[Record | Problem, Future[dict[str, Any]]]] = deque()
    with ThreadPoolExecutor(workers, "scores") as pool:
        try:
            for record in read_records(inputs):
                if workers == 1:
                    yield _or_problem(record, lambda record=record: score(record))  # type: ignore[misc]
                    continue
                waiting.append((record, pool.submit(score, record)))
                if len(waiting) >= workers * _AHEAD:
                    yield _next(waiting)
            while waiting:
                yield _next(waiting)
        finally:
            stopped.set()


def _next(
    waiting: deque[tuple[Record | Problem, Future[dict[str, Any]]]],
) -> tuple[Record | Problem, dict[str, Any]]:
    record, future = waiting.popleft()
    return _or_problem(record, future.result)


def _or_problem(
    record: Record | Problem, score: Callable[[], dict[str, Any]]
) -> tuple[Record | Problem, dict[str, Any]]:
    try:
        return record, score()
    except (ConfigError, InputError) as e:
        if isinstance(e, OutputError):
            raise
        return Problem(record.where, f"not scored: {e}"), {}


def _new_scores(record: Record | Problem, scoring: Scoring) -> dict[str, Any]:
    """Return the new values of a row's keys that contain scores."""
    if isinstance(record, Problem):
        return {}
    row = record.row
    found: dict[str, Any] = {"eval": _eval(row, row["session"], row.get("eval"), scoring)}
    earlier = row.get("previous_failed_sessions")
    if is_list(earlier) and earlier:
        found["previous_failed_sessions"] = [_earlier(row, e, scoring) for e in earlier]
    candidates = row.get("sel_cands")
    if is_list(candidates) and candidates:
        found["sel_cands"] = [_candidate(row, c, scoring) for c in candidates]
    return found


def _eval(
    row: Mapping[str, Any], session: Mapping[str, Any], old: Any, scoring: Scoring
) -> dict[str, Any]:
    old = dict(old) if isinstance(old, Mapping) else {}
    results = final_results(session)
    pred = old.get("pred", results.get("output"))
    new = scoring.evaluate(_case(row, pred, old.get("gold"), str(results.get("log") or "")))
    kept = {k: v for k, v in old.items() if k not in ("scorer", "reason")}
    return {**kept, **new}


def _earlier(row: Mapping[str, Any], earlier: Any, scoring: Scoring) -> Any:
    session = value_at(earlier, "session")
    if not isinstance(session, Mapping):
        return earlier
    return {**earlier, "eval": _eval(row, session, earlier.get("eval"), scoring)}


def _candidate(row: Mapping[str, Any], candidate: Any, scoring: Scoring) -> Any:
    if not isinstance(candidate, Mapping) or "corr" not in candidate:
        return candidate
    case = _case(row, candidate.get("output"), value_at(row, "eval.gold"), "")
    return {**candidate, "corr": scoring.evaluate(case)["corr"]}


def _case(row: Mapping[str, Any], pred: Any, gold: Any, log: str) -> Case:
    gold = row.get("answer") if gold is None else gold
    original = row.get("_orig")
    return Case(
        "" if pred is None else str(pred),
        None if gold is None else str(gold),
        str(row.get("task") or value_at(row, "session.task") or ""),
        log,
        original if isinstance(original, Mapping) else {},
    )


def _with_scores(row: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any] | Pairs:
    """Return a row with its new scores; long values stay on disk."""
    names = [*row, *(k for k in new if k not in row)]
    return Pairs((k, new[k] if k in new else row[k]) for k in names)


def _count(
    found: Rescored, record: Record, new: Mapping[str, Any], total: Sequence[list[float]]
) -> None:
    before, scored = number_in(value_at(record.row, "eval.corr")), new["eval"]
    after = number_in(scored["corr"])
    found.rows += 1
    found.before[_kind(before)] += 1
    found.after[_kind(after)] += 1
    found.scorers[scored.get("scorer", "em")] += 1
    for value, values in zip((before, after), total, strict=True):
        if value is not None:
            values.append(value)
    reason = str(scored.get("reason", ""))
    if after is None:
        found.reasons[reason[:100] or "the right answer is unknown"] += 1
        found.failed += bool(reason)
    if before != after:
        found.changed += 1
        if len(found.changes) < _KEPT_CHANGES:
            task_id = str(record.row.get("id") or record.where)
            found.changes.append(Change(task_id, before, after, reason))


def _kind(value: float | None) -> str:
    if value is None:
        return "no score"
    return "right" if value >= 1 else "wrong" if value <= 0 else "partly right"
