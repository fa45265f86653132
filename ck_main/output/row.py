"""Output rows, and the outcome of a task as its row records it.

A row is one JSON line: `id, task, file, answer, _orig, skip_hard, session, eval{pred, gold, corr}`.
The task's journal has all of its data: the event `task` and the session. `row_from_events`
therefore rebuilds the same bytes from the journal alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, cast

from ck_main.output.row_schema import Judgement, OutputRow, TaskFacts, TryUsage
from ck_main.output.run_settings import Setup, setup_of
from ck_main.scoring.scorer import Case
from ck_main.scoring.scoring import Scoring, default_scoring
from ck_main.tasks.dataset import Task
from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.journal_events import TaskData
from ck_pro.exceptions import JournalError
from ck_pro.json_lines import json_line
from ck_pro.session import AgentSession, sessions_from_events
from ck_pro.session.rows import SessionRow

_START = b'{"id": '
_ROW_START = re.compile(rb'\{"id": "(?:[^"\\]|\\.)*", "task": ')
_ID = re.compile(rb'\{"id": ("(?:[^"\\]|\\.)*")')
_MAX_STARTS = 20
NOT_A_ROW = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors that `parse_row` raises."""


def task_facts(task: Task) -> TaskData:
    """Return the fields of a row that describe the task: the data of its `task` event."""
    return {
        "id": task.id,
        "task": task.question,
        "file": task.file_name,
        "answer": task.answer,
        "_orig": task.original,
        "skip_hard": bool(task.original.get("skip_hard", False)),
    }


def build_row(
    facts: TaskFacts,
    session: AgentSession,
    judged: Judgement | None = None,
    scoring: Scoring | None = None,
) -> OutputRow:
    """Build the row of a task that ended.

    Args:
        facts: data of its `task` event.
        session: session of the main agent.
        judged: fields for `eval` beside prediction, right answer and score. If it has a score,
            that is kept.
        scoring: scores the answer; default: `em`, or what the task names.
    """
    scored: dict[str, Any] = dict(judged or {})
    if "corr" not in scored:
        results = session.final_results or {"output": "", "log": ""}
        case = Case(
            "" if results["output"] is None else str(results["output"]),
            facts["answer"],
            facts["task"],
            str(results.get("log") or ""),
            facts["_orig"],
        )
        scored = {**(scoring or default_scoring()).evaluate(case), **scored}
    row: dict[str, Any] = {**facts, "session": session.to_dict(), "eval": scored}
    return cast(OutputRow, row)


def row_from_events(events: Iterable[JournalEvent]) -> OutputRow:
    """Build the row of a journal.

    Args:
        events: events of the journal, as `ck_pro.journal.read_events` yields them.

    Raises:
        JournalError: the journal has no `task` event.
    """
    return _row_of_events(list(events))


def row_of(events: Iterable[JournalEvent], *, written: bool = False) -> OutputRow | None:
    """Build the row of a journal if it is complete and not yet in the output.

    Args:
        events: events of the journal.
        written: build the row even if the journal marks it as written.
    """
    events = list(events)
    kinds = {e["kind"] for e in events}
    missing = written or EventKind.ROW not in kinds
    return _row_of_events(events) if EventKind.EVAL in kinds and missing else None


def _row_of_events(events: Sequence[JournalEvent]) -> OutputRow:
    known = {e["kind"]: e["data"] for e in events if e["kind"] in (EventKind.TASK, EventKind.EVAL)}
    if EventKind.TASK not in known:
        raise JournalError("the journal does not name a task; it was not written by ck_main")
    session = next(iter(sessions_from_events(events).values()))
    return build_row(known[EventKind.TASK], session, known.get(EventKind.EVAL))


def row_line(row: OutputRow) -> bytes:
    """Encode a row as a line of the output."""
    return json_line(row)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task, for tables and exit codes.

    Args:
        steps: steps of all agents in all tries.
        seconds: wall time of all tries.
        tokens: prompt and completion tokens of all tries.
        corr: 1 (right), 0 (wrong), between them (partly right), or None (no score).
        money: USD, if known.
        earlier: whether the row was in the output before this run.
        tries: number of tries.
        unreadable: number of replies that could not be parsed, or only in part, by phase.
        setup: settings of the run, if an earlier row records them.
    """

    id: str
    question: str
    answer: str
    gold: str | None
    corr: float | None
    status: str
    stop_reason: str | None
    message: str
    steps: int
    seconds: float
    tokens: int
    money: float | None = None
    earlier: bool = False
    tries: int = 1
    unreadable: Mapping[str, int] = field(default_factory=dict, hash=False)
    setup: Setup | None = None

    @classmethod
    def of_row(
        cls, row: OutputRow, *, money: float | None = None, earlier: bool = False
    ) -> Outcome:
        """Read a row; raise KeyError, TypeError or AttributeError if it is not one."""
        info, scored = row["session"]["info"], row["eval"]
        tries: Sequence[TryUsage] = row.get("sel_cands") or [usage_of(row["session"])]
        unreadable: Counter[str] = Counter()
        for attempt in tries:
            unreadable.update(attempt.get("unreadable") or {})
        return cls(
            id=str(row["id"]),
            question=row["task"],
            answer=scored["pred"],
            gold=scored["gold"],
            corr=scored["corr"],
            status=info["status"],
            stop_reason=info.get("stop_reason"),
            message=info.get("message", ""),
            steps=sum(int(t["steps"]) for t in tries),
            seconds=sum(float(t["seconds"]) for t in tries),
            tokens=sum(int(t["tokens"]) for t in tries),
            money=money,
            earlier=earlier,
            tries=len(tries),
            unreadable=dict(unreadable),
            setup=setup_of(info) if earlier else None,
        )

    @property
    def is_done(self) -> bool:
        """Whether the agent completed the task, with a right or a wrong answer."""
        return self.status == "done"


def verdict_of(corr: float | None) -> Literal["right", "wrong", "unscored"]:
    """Return what a score means; an answer that is only partly right is wrong."""
    if corr is None:
        return "unscored"
    return "right" if corr >= 1 else "wrong"


def usage_of(session: SessionRow) -> TryUsage:
    """Return the usage of a row's session and its nested sessions."""
    info = session["info"]
    return TryUsage(
        steps=count_steps(session),
        tokens=tokens_of(session),
        seconds=float(info.get("duration", 0.0)),
        unreadable=dict(info.get("unreadable") or {}),
    )


def count_steps(session: SessionRow) -> int:
    """Count the steps of a row's session and of its nested sessions."""
    nested = (
        sub for s in session["steps"] for sub in (s.get("action") or {}).get("sub_sessions", ())
    )
    return len(session["steps"]) + sum(count_steps(sub) for sub in nested)


def tokens_of(session: SessionRow) -> int:
    """Return the prompt and completion tokens of a row's session and its nested sessions."""
    return int(session["info"]["call_stat"]["__ALL__"]["total_tokens"])


# --- damaged lines of an output ------------------------------------------------------------------


def parse_row(line: bytes) -> Outcome:
    """Parse a line of an output; raise one of `NOT_A_ROW` if it is not a row."""
    return Outcome.of_row(json.loads(line), earlier=True)


@dataclass(frozen=True)
class Damage:
    """The content of a damaged line.

    Args:
        size: number of damaged bytes at its start.
        outcome: outcome of the complete row after them, if there is one.
        torn: ids of the torn rows.
    """

    size: int
    outcome: Outcome | None
    torn: tuple[str, ...] = ()


def examine(line: bytes) -> Damage | None:
    """Look for rows in a line that is not a row.

    If a program truncates a file while others append to it, a line may begin with a torn row or
    with null bytes, and may end with a complete row.

    Args:
        line: the line, with or without its newline.

    Returns:
        None if the line is not a damaged row.
    """
    text = line.lstrip(b"\0")
    nulls = len(line) - len(text)
    if not text.strip():
        return Damage(len(line), None) if nulls else None
    if not text.startswith(_START) and not (nulls and _START in text):
        return None
    if not nulls and _is_json(text):
        return None  # a complete object, but not a row
    for found in islice(_ROW_START.finditer(line), _MAX_STARTS):
        at = found.start()
        try:
            outcome = parse_row(line[at:])
        except NOT_A_ROW:
            continue
        return Damage(at, outcome, torn_ids(line[:at]))
    return Damage(len(line), None, torn_ids(line))


def outcome_in(line: bytes) -> Outcome | None:
    """Return the outcome of the row in a line, or at its end; None without one."""
    try:
        return parse_row(line)
    except NOT_A_ROW:
        damage = examine(line)
    return damage.outcome if damage is not None else None


def torn_ids(part: bytes) -> tuple[str, ...]:
    """Return the id of the torn row at the start of a part of a line, if it is readable."""
    found = _ID.match(part.lstrip(b"\0"))
    try:
        return (str(json.loads(found[1])),) if found else ()
    except ValueError:
        return ()


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
