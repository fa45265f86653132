"""Read the facts of runs that an analysis needs: one small record per try, in bounded memory."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ck_main.analysis.failures import Ending, ending_of, wanted_answer
from ck_main.analysis.walk import Walk
from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.attempts import (
    Try,
    agent_of,
    final_results,
    number_in,
    tries_of,
    value_at,
)
from ck_pro.trajectory.reading.big_json import is_list
from ck_pro.trajectory.reading.sources import (
    Problem,
    Record,
    check_inputs,
    read_records,
    unreadable,
)

MEASURES = ("steps", "calls", "tokens", "money", "seconds")
"""The quantities of a run: steps of all agents, model calls, tokens, USD, wall time."""
DEFAULT_BY = ("level", "agent", "sub_agent", "tag")
NONE = "(none)"
_TEXT_CHARS = 300
_TRY_ID = re.compile(r"/try-\d+-[0-9a-f]{8}$")
_NAMES = {"level": ("level",), "tag": ("tags", "tag", "kind", "category")}
"""Names of task fields, in any case, for a group; the first that a task has."""
_UNTIL = ("em", "llm_judge", "stop_with_answer")


@dataclass
class RunFacts:
    """One try of a task.

    Args:
        id: of the task.
        number: index of the try, from 0.
        score: from 0 to 1; None if unknown.
        status, stop_reason, message: how the run ended.
        groups: labels of the task and the run by the name of the group.
        measures: values of `MEASURES`, and `prompt_tokens`, `completion_tokens`, `cached_tokens`;
            None if unknown.
        ending: how the run ended, and where it went wrong.
        question, answer, gold: texts, shortened.
        own: whether it is the try of its row, not an earlier one.
        tries: scores of all tries of the row, if it lists them.
        stopped_early: whether the tries ended with the first right one.
        where: file and line, or folder.
    """

    id: str
    number: int
    score: float | None
    status: str
    stop_reason: str
    message: str
    groups: dict[str, tuple[str, ...]]
    measures: dict[str, float | None]
    ending: Ending
    question: str = ""
    answer: str = ""
    gold: str | None = None
    own: bool = True
    tries: tuple[float | None, ...] | None = None
    stopped_early: bool = False
    where: str = ""


def read_runs(
    paths: Sequence[Path],
    by: Sequence[str] = DEFAULT_BY,
    *,
    score_from: str = "eval.corr",
    good: float = 1.0,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> Iterator[RunFacts]:
    """Yield the tries of rows and journals.

    Args:
        paths: files of rows, and folders.
        by: names of groups; see `group_labels`.
        score_from: path of the score in a row.
        good: lowest score of a right answer.
        on_problem: called with each line and journal that cannot be read.

    Raises:
        InputError: a path does not exist, or is of another form.
    """
    check_inputs(paths)
    for record in read_records(paths):
        if isinstance(record, Problem):
            if not record.unfinished:
                on_problem(record)
            continue
        try:
            yield from _runs_of(record, by, score_from, good)
        except (InputError, AttributeError, TypeError, KeyError, ValueError) as e:
            text = str(e) if isinstance(e, InputError) else unreadable(e)
            on_problem(Problem(record.where, text))


def _runs_of(record: Record, by: Sequence[str], score_from: str, good: float) -> list[RunFacts]:
    tries = tries_of(record.where, record.row, score_from, on_disk=record.on_disk)
    return [_facts(attempt, by, good) for attempt in tries]


def _facts(attempt: Try, by: Sequence[str], good: float) -> RunFacts:
    row, session = attempt.row, attempt.session
    info = session.get("info")
    info = info if isinstance(info, Mapping) else {}
    score = attempt.score if attempt.score is None or math.isfinite(attempt.score) else None
    answer = str(final_results(session).get("output") or "")
    gold = value_at(row, "eval.gold") or row.get("answer")
    question = str(row.get("task") or session.get("task") or "")
    wanted = wanted_answer(None if gold is None else str(gold), question, answer)
    walk = Walk(failed=score is None or score < good, wanted=wanted)
    walk.session(session)
    facts = RunFacts(
        id=_TRY_ID.sub("", attempt.task_id) or attempt.where,
        number=attempt.number,
        score=score,
        status=attempt.status,
        stop_reason=str(info.get("stop_reason") or ""),
        message=str(info.get("message") or "")[:_TEXT_CHARS],
        groups=group_labels(row, session, walk.agents, by),
        measures=walk.measures(info),
        ending=Ending(""),
        question=question[:_TEXT_CHARS],
        answer=answer[:_TEXT_CHARS],
        gold=None if gold is None else str(gold)[:_TEXT_CHARS],
        own=not attempt.earlier,
        where=attempt.where,
    )
    facts.ending = ending_of(facts, walk.moments, answer, good)
    if not attempt.earlier:
        _add_tries(facts, row)
    return facts


def _add_tries(facts: RunFacts, row: Mapping[str, Any]) -> None:
    """Add the tries that a row lists, with their costs."""
    found = row.get("sel_cands")
    if not is_list(found) or len(found) < 2:
        return
    facts.tries = tuple(number_in(value_at(c, "corr")) for c in found)
    facts.stopped_early = row.get("sel_aggr") in _UNTIL
    kept = row.get("previous_failed_sessions")
    if is_list(kept) and len(kept) == len(found) - 1:
        return  # all tries are in the row, and have facts
    for measure in facts.measures:
        values = [number_in(value_at(c, measure)) for c in found]
        known = [v for v in values if v is not None]
        facts.measures[measure] = sum(known) if len(known) == len(values) else None


# --- groups --------------------------------------------------------------------------------------


def group_labels(
    row: Mapping[str, Any], session: Mapping[str, Any], agents: Sequence[str], by: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return the labels of a run in each group.

    Args:
        by: "agent" (the main agent), "sub_agent" (those that took part), "level", "tag", the name
            of a field of the task in any case, or a dotted path in the row.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in by:
        if name == "agent":
            found[name] = (agents[0] if agents else agent_of(session, 0),)
        elif name == "sub_agent":
            found[name] = tuple(dict.fromkeys(agents[1:])) or (NONE,)
        else:
            found[name] = _labels(_field(row, name))
    return found


def _field(row: Mapping[str, Any], name: str) -> Any:
    """Return a field of the task, or the value at a path in the row."""
    original = row.get("_orig")
    for place in (original, value_at(original, "info"), row):
        if not isinstance(place, Mapping):
            continue
        known = {str(key).casefold(): value for key, value in place.items()}
        for key in _NAMES.get(name, (name.casefold(),)):
            if known.get(key) not in (None, "", []):
                return known[key]
    return value_at(row, name) if "." in name else None


def _labels(value: Any) -> tuple[str, ...]:
    values = value if is_list(value) else [value]
    labels = (str(v)[:60] for v in values if isinstance(v, str | int | float))
    return tuple(dict.fromkeys(labels)) or (NONE,)
