"""Read the facts of runs that an analysis needs: one small record per try, in bounded memory."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.analysis.failures import Ending, Moment, ending_of
from ck_pro.exceptions import InputError
from ck_pro.session.observed import observation_text
from ck_pro.trajectory.reading.attempts import (
    Try,
    agent_of,
    final_results,
    status_of,
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
from ck_pro.trajectory.reading.tree import Visit, visits

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
    walk = _Walk()
    walk.session(session)
    info = session.get("info")
    info = info if isinstance(info, Mapping) else {}
    score = attempt.score if attempt.score is None or math.isfinite(attempt.score) else None
    answer = str(final_results(session).get("output") or "")
    gold = value_at(row, "eval.gold") or row.get("answer")
    question = str(row.get("task") or session.get("task") or "")
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
    facts.ending = ending_of(facts, walk.moments, question, answer, good)
    if not attempt.earlier:
        _add_tries(facts, row)
    return facts


def _add_tries(facts: RunFacts, row: Mapping[str, Any]) -> None:
    """Add the tries that a row lists, with their costs."""
    found = row.get("sel_cands")
    if not is_list(found) or len(found) < 2:
        return
    facts.tries = tuple(_number(value_at(c, "corr")) for c in found)
    facts.stopped_early = row.get("sel_aggr") in _UNTIL
    kept = row.get("previous_failed_sessions")
    if is_list(kept) and len(kept) == len(found) - 1:
        return  # all tries are in the row, and have facts
    for measure in facts.measures:
        values = [_number(value_at(c, measure)) for c in found]
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


# --- the tree of sessions ------------------------------------------------------------------------


@dataclass
class _Walk:
    """A walk over a try's tree of sessions, in the order in which the steps ended."""

    agents: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    steps: int = 0
    calls: int = 0
    used: dict[str, float] = field(default_factory=dict)
    cached: float | None = 0.0
    """None if it is unknown for a call."""
    money: float | None = None
    unpriced: bool = False
    codes: dict[tuple[str, str], int] = field(default_factory=dict)

    def session(self, session: Mapping[str, Any]) -> None:
        """Visit a session and those of its sub-agents."""
        known: set[str] = set()
        for visit in visits(session):
            place = visit.place
            if place.sid not in known:
                known.add(place.sid)
                self.agents.append(place.path[-1])
            if visit.ended:
                self.moments.append(self._moment(visit))
            else:
                self._count(visit.step)

    def _count(self, step: Mapping[str, Any]) -> None:
        self.steps += 1
        action, plan, end = (_part(step, name) for name in ("action", "plan", "end"))
        for part in (plan, action, *_calls(action), *_calls(end), end):
            self._call(part)

    def _moment(self, visit: Visit) -> Moment:
        step, place = visit.step, visit.place
        action, plan = _part(step, "action"), _part(step, "plan")
        code = str(action.get("code") or "").strip()
        seen = self.codes.get((place.sid, code)) if code else None
        self.codes[place.sid, code] = visit.index
        observation, page = action.get("observation"), action.get("web_state_before")
        return Moment(
            agent="/".join(place.path),
            sid=place.sid,
            step=visit.index,
            error=_error_of(action),
            unreadable=str(action.get("unreadable") or plan.get("unreadable") or ""),
            repeats=seen,
            failed=_failed_call(visit),
            code=code,
            text=lambda: observation_text(observation) if observation is not None else "",
            page=lambda: str(value_at(page, "current_accessibility_tree") or ""),
        )

    def _call(self, part: Mapping[str, Any]) -> None:
        """Count a model call."""
        if not (part.get("llm_input") or part.get("llm_info") or part.get("llm_output")):
            return
        self.calls += 1
        info = part.get("llm_info")
        if not isinstance(info, Mapping):
            self.unpriced, self.cached = True, None
            return
        usage = info.get("usage")
        usage = usage if isinstance(usage, Mapping) else {}
        for name in ("prompt_tokens", "completion_tokens"):
            self.used[name] = self.used.get(name, 0.0) + (_number(usage.get(name)) or 0.0)
        cached = None if usage.get("estimated") else _number(usage.get("cached_tokens"))
        known = None if cached is None else self.cached
        self.cached = None if known is None or cached is None else known + cached
        cost = _number(info.get("cost"))
        if cost is None:
            self.unpriced = True
        else:
            self.money = (self.money or 0.0) + cost

    def measures(self, info: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the measures; the session's own counts have priority, as they are complete."""
        total = value_at(info, "call_stat.__ALL__")
        stat = total if isinstance(total, Mapping) else {}
        prompt = _first(_number(stat.get("prompt_tokens")), self.used.get("prompt_tokens"))
        reply = _first(_number(stat.get("completion_tokens")), self.used.get("completion_tokens"))
        both = None if prompt is None or reply is None else prompt + reply
        calls = _first(_number(stat.get("llm_call")), float(self.calls) if self.calls else None)
        return {
            "steps": float(self.steps),
            "calls": calls,
            "tokens": _first(_number(stat.get("total_tokens")), both),
            "money": None if self.unpriced else self.money,
            "seconds": _number(info.get("duration")),
            "prompt_tokens": prompt,
            "completion_tokens": reply,
            "cached_tokens": self.cached if self.calls else None,
        }


def _failed_call(visit: Visit) -> str:
    """Say how the last sub-agent that failed in a step ended."""
    for nested in reversed(visit.nested):
        status = status_of(nested)
        if status != "done":
            name = agent_of(nested, visit.place.depth + 1)
            reason = value_at(nested, "info.stop_reason") or status
            message = value_at(nested, "info.message") or ""
            return f"{name} ended with {reason}: {message}".rstrip(": ")
    return ""


def _part(step: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = step.get(name)
    return part if isinstance(part, Mapping) else {}


def _calls(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = part.get("model_calls")
    return [c for c in found if isinstance(c, Mapping)] if is_list(found) else []


def _error_of(action: Mapping[str, Any]) -> str:
    error = action.get("error")
    return str(error.get("error", "") if isinstance(error, Mapping) else error or "")


def _number(value: Any) -> float | None:
    usable = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if usable else None


def _first(*values: float | None) -> float | None:
    return next((v for v in values if v is not None), None)
