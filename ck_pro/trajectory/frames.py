"""Runs for notebooks: `load(path)` gives rows, steps and calls as pandas frames, and sessions.

    from ck_pro.trajectory import load

    runs = load("runs/a.jsonl")
    runs.rows.groupby("status").tokens.median()
    runs["task0007"]

docs/analysis.md lists the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from ck_pro import markup
from ck_pro.exceptions import CKError, ConfigError, InputError
from ck_pro.session import AgentSession
from ck_pro.session.html_form import session_html, step_html
from ck_pro.session.observed import observation_text
from ck_pro.trajectory.labels import without_label_files
from ck_pro.trajectory.reading.attempts import Try, final_results, tries_of, value_at
from ck_pro.trajectory.reading.big_json import plain
from ck_pro.trajectory.reading.model_calls import step_calls
from ck_pro.trajectory.reading.sources import (
    Problem,
    Record,
    check_inputs,
    read_records,
    record_index,
    unreadable,
)
from ck_pro.trajectory.reading.tree import Visit, visits

Frame = Any
"""A `pandas.DataFrame`."""
PathName = str | PathLike[str]
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens")
_PLACE = ("task", "try", "session", "parent", "depth", "agent", "path")
ROW_COLUMNS = (
    *("task", "try", "score", "status", "stop_reason", "agent", "question", "answer", "gold"),
    *("steps", "calls", "tokens", *_TOKENS, "money", "seconds", "message", "where"),
)
STEP_COLUMNS = (
    *(*_PLACE, "step", "thought", "code", "observation", "error", "unreadable", "url"),
    *("calls", *_TOKENS, "money", "sub_sessions"),
)
CALL_COLUMNS = (
    *(*_PLACE, "step", "call", "phase", "model", *_TOKENS, "reasoning_tokens", "money"),
    *("finish_reason", "messages", "reply", "reasoning", "unreadable"),
)
_SHOWN_RUNS = 50


def load(path: PathName | Sequence[PathName]) -> Runs:
    """Open output rows and journals for a notebook.

    Args:
        path: a file of rows, the folder of a run or of a task, or several of these. Journals of
            runs that have not ended are included; label files among several are skipped.

    Raises:
        InputError: a path does not exist, or is of another form.
    """
    several = [path] if isinstance(path, str | PathLike) else list(path)
    return Runs(without_label_files([Path(p) for p in several]))


class LoadedStep(dict[str, Any]):
    """A step of a row; a notebook shows it as text."""

    def _repr_html_(self) -> str:
        return markup.box("step", [], step_html(self))


class LoadedRun:
    """One try of a task.

    Attributes:
        row: the output row that contains it.
        number: index of the try, from 0.
        score: its score; None if unknown.
        where: file and line, or folder.
    """

    def __init__(self, attempt: Try):
        self._attempt = attempt
        self.row, self.number, self.score = attempt.row, attempt.number, attempt.score
        self.where = attempt.where

    @cached_property
    def session(self) -> AgentSession:
        """The session of the main agent, with those of the sub-agents in `children`."""
        return AgentSession.from_dict(plain(self._attempt.session))

    @property
    def steps(self) -> list[LoadedStep]:
        """The steps of the main agent."""
        return [LoadedStep(plain(step)) for step in self._attempt.session["steps"]]

    @property
    def task_id(self) -> str:
        """Id of the task."""
        return self._attempt.task_id

    def __repr__(self) -> str:
        return f"LoadedRun({self.task_id!r}, try {self.number + 1}, score {self.score})"

    def _repr_html_(self) -> str:
        kind = "" if self.score is None else "good" if self.score >= 1 else "bad"
        shown = "no score" if self.score is None else f"score {self.score:.3g}"
        badges = [markup.badge(shown, kind), markup.badge(f"try {self.number + 1}")]
        gold = value_at(self.row, "eval.gold")
        body = "" if gold is None else markup.block(gold, "right answer")
        return markup.box(self.task_id, badges, body + session_html(self.session))


class Runs:
    """Rows and journals, read on demand.

    Iterate over it, or use `runs[index]` and `runs["task id"]`, for single runs.

    Attributes:
        paths: the inputs.
        problems: lines and journals that could not be read so far.
    """

    def __init__(self, paths: Sequence[Path]):
        check_inputs(paths)
        self.paths = list(paths)
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[LoadedRun]:
        for attempt in self._tries():
            yield LoadedRun(attempt)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in self._tries())

    def __getitem__(self, key: int | str) -> LoadedRun:
        """Return a run by its index, or the last one of a task by the task's id."""
        if isinstance(key, int):
            if key < 0:
                key += len(self)
            for n, attempt in enumerate(self._tries()):
                if n == key:
                    return LoadedRun(attempt)
            raise IndexError(key)
        for path in reversed(self.paths):
            for read in reversed(record_index(path).get(key, [])):
                record = read()
                if isinstance(record, Record):
                    return LoadedRun(_tries_in(record)[-1])
        raise KeyError(key)

    @property
    def sessions(self) -> list[AgentSession]:
        """The sessions of the main agents."""
        return [run.session for run in self]

    @cached_property
    def rows(self) -> Frame:
        """One row per try; see `ROW_COLUMNS`."""
        return self._frame(ROW_COLUMNS, lambda attempt: iter([_row(attempt)]))

    @cached_property
    def steps(self) -> Frame:
        """One row per step of every agent, in order of their starts; see `STEP_COLUMNS`."""
        return self._frame(STEP_COLUMNS, _steps)

    @cached_property
    def calls(self) -> Frame:
        """One row per model call; see `CALL_COLUMNS`. `messages` has the prompt of one."""
        return self._frame(CALL_COLUMNS, _calls)

    def messages(self, call: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the prompt of a row of `calls`.

        Raises:
            KeyError: the runs have no such call.
        """
        wanted = (call["session"], call["step"], call["call"])
        for attempt in self._tries(str(call["task"])):
            for visit in visits(attempt.session):
                if visit.ended or (visit.place.sid, visit.index) != wanted[:2]:
                    continue
                for n, _, part in step_calls(visit.step):
                    if n == wanted[2]:
                        return list(plain(part["llm_input"]))
        raise KeyError(wanted)

    def __repr__(self) -> str:
        return f"Runs({', '.join(map(str, self.paths))})"

    def _repr_html_(self) -> str:
        frame = self.rows
        names = ("task", "try", "score", "status", "steps", "tokens", "seconds", "answer")
        shown = frame[list(names)].head(_SHOWN_RUNS)
        cells = [[_cell(value) for value in line] for line in shown.itertuples(index=False)]
        more = len(frame) - len(cells)
        note = markup.label(f"... and {more:,} more") if more > 0 else ""
        if self.problems:
            note += markup.label(f"{len(self.problems):,} lines or journals cannot be read")
        scored = frame["score"].dropna()
        badges = [markup.badge(f"{len(frame):,} runs")]
        if len(scored):
            badges.append(markup.badge(f"mean score {scored.mean():.3g} of {len(scored):,}"))
        title = ", ".join(map(str, self.paths))
        return markup.box(title, badges, markup.table(names, cells) + note)

    def _records(self) -> Iterator[Record | Problem]:
        for path in self.paths:
            if path.is_dir():
                for reads in record_index(path).values():
                    yield from (read() for read in reads)
            else:
                yield from read_records([path])

    def _tries(self, task: str | None = None) -> Iterator[Try]:
        for record in self._records():
            if isinstance(record, Problem):
                self._note(record)
            elif task is None or str(record.row.get("id") or "") == task:
                try:
                    yield from _tries_in(record)
                except (CKError, AttributeError, TypeError, KeyError) as e:
                    self._note(Problem(record.where, unreadable(e)))

    def _note(self, problem: Problem) -> None:
        if str(problem) not in self.problems:
            self.problems.append(str(problem))

    def _frame(
        self, columns: Sequence[str], lines_of: Callable[[Try], Iterator[dict[str, Any]]]
    ) -> Frame:
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ConfigError('data frames need pandas: pip install "ck-pro[notebook]"') from None
        lines: list[dict[str, Any]] = []
        for attempt in self._tries():
            try:
                lines += ({k: _storable(v) for k, v in line.items()} for line in lines_of(attempt))
            except (CKError, AttributeError, TypeError, KeyError, ValueError) as e:
                self._note(Problem(attempt.where, unreadable(e)))
        return pandas.DataFrame(lines, columns=list(columns))


def _tries_in(record: Record) -> list[Try]:
    try:
        return tries_of(record.where, record.row, on_disk=record.on_disk)
    except InputError:  # its score is not one
        row = {**record.row, "eval": None}
        return tries_of(record.where, row, on_disk=record.on_disk)


# --- the lines of the frames ---------------------------------------------------------------------


def _row(attempt: Try) -> dict[str, Any]:
    session, row = attempt.session, attempt.row
    stat = value_at(session, "info.call_stat.__ALL__")
    stat = stat if isinstance(stat, Mapping) else {}
    used = _Usage()
    steps = calls = 0
    agent = ""
    for visit in visits(session):
        if visit.ended:
            continue
        agent = agent or visit.place.path[0]
        steps += 1
        for _, _, part in step_calls(visit.step):
            calls += 1
            used.add(part)
    prompt, reply = stat.get("prompt_tokens"), stat.get("completion_tokens")
    tokens = {**used.tokens}
    if prompt is not None and reply is not None:  # also without stored texts
        tokens |= {"prompt_tokens": prompt, "completion_tokens": reply}
    return {
        "task": attempt.task_id,
        "try": attempt.number,
        "score": attempt.score,
        "status": attempt.status,
        "stop_reason": value_at(session, "info.stop_reason"),
        "agent": agent,
        "question": str(row.get("task") or session.get("task") or ""),
        "answer": str(final_results(session).get("output") or ""),
        "gold": value_at(row, "eval.gold") or row.get("answer"),
        "steps": steps,
        "calls": stat.get("llm_call", calls),
        "tokens": stat.get(
            "total_tokens", _plus(tokens["prompt_tokens"], tokens["completion_tokens"])
        ),
        **tokens,
        "money": used.money,
        "seconds": value_at(session, "info.duration"),
        "message": str(value_at(session, "info.message") or ""),
        "where": attempt.where,
    }


def _steps(attempt: Try) -> Iterator[dict[str, Any]]:
    lines: dict[tuple[str, int], dict[str, Any]] = {}
    for visit in visits(attempt.session):
        key = (visit.place.sid, visit.index)
        if visit.ended:
            lines[key]["sub_sessions"] = len({str(n.get("id")) for n in visit.nested})
        else:
            lines[key] = _step(attempt, visit)
    yield from lines.values()


def _step(attempt: Try, visit: Visit) -> dict[str, Any]:
    action = visit.step.get("action")
    action = action if isinstance(action, Mapping) else {}
    used = _Usage()
    calls = step_calls(visit.step)
    for _, _, part in calls:
        used.add(part)
    seen, error = action.get("observation"), action.get("error")
    return {
        **_place(attempt, visit),
        "thought": str(action.get("thought") or ""),
        "code": str(action.get("code") or ""),
        "observation": "" if seen in (None, "") else observation_text(plain(seen)),
        "error": str(error.get("error", "") if isinstance(error, Mapping) else error or ""),
        "unreadable": str(action.get("unreadable") or ""),
        "url": value_at(action, "web_state_before.step_url"),
        "calls": len(calls),
        **used.tokens,
        "money": used.money,
    }


def _calls(attempt: Try) -> Iterator[dict[str, Any]]:
    for visit in visits(attempt.session):
        if visit.ended:
            continue
        for number, phase, part in step_calls(visit.step):
            used = _Usage()
            used.add(part)
            info = part.get("llm_info")
            info = info if isinstance(info, Mapping) else {}
            yield {
                **_place(attempt, visit),
                "call": number,
                "phase": phase,
                "model": info.get("model"),
                **used.tokens,
                "reasoning_tokens": value_at(info, "usage.reasoning_tokens"),
                "money": used.money,
                "finish_reason": info.get("finish_reason"),
                "messages": len(part["llm_input"]),
                "reply": part.get("llm_output"),
                "reasoning": info.get("reasoning"),
                "unreadable": str(part.get("unreadable") or ""),
            }


def _place(attempt: Try, visit: Visit) -> dict[str, Any]:
    place = visit.place
    return {
        "task": attempt.task_id,
        "try": attempt.number,
        "session": place.sid,
        "parent": place.parent,
        "depth": place.depth,
        "agent": place.path[-1],
        "path": "/".join(place.path),
        "step": visit.index,
    }


class _Usage:
    """Sums over model calls; None if unknown for a call."""

    def __init__(self) -> None:
        self.tokens: dict[str, float | None] = dict.fromkeys(_TOKENS, 0)
        self.money: float | None = 0.0

    def add(self, part: Mapping[str, Any]) -> None:
        """Add a call."""
        usage = value_at(part, "llm_info.usage")
        usage = usage if isinstance(usage, Mapping) else {}
        for name, total in self.tokens.items():
            guessed = name == "cached_tokens" and usage.get("estimated")
            self.tokens[name] = _plus(total, None if guessed else usage.get(name))
        self.money = _plus(self.money, value_at(part, "llm_info.cost"))


def _storable(value: object) -> object:
    """Replace halves of surrogate pairs, which pandas cannot store."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return value


def _plus(total: float | None, value: object) -> float | None:
    if total is None or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return total + value


def _cell(value: object) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() else f"{value:.3g}"
    whole = " ".join(str(value).split())
    return whole if len(whole) <= 80 else f"{whole[:80]}..."
