"""Output rows: what a row holds, and how a task ended as a row tells it.

A row is one JSON line: `id, task, file, answer, _orig, skip_hard, session, eval{pred, gold, corr}`.
It is made of two things that are both in the task's journal, the event `task` and the session, so
that it can be made again from the journal alone, to the byte: see `row_from_events`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ck_main.output.run_settings import Setup, setup_of
from ck_main.tasks.dataset import Task
from ck_main.tasks.scoring import evaluate
from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.journal_events import TaskData
from ck_pro.exceptions import JournalError
from ck_pro.session import AgentSession, sessions_from_events


def task_facts(task: Task) -> TaskData:
    """What a row says of the task itself: the data of the journal's `task` event."""
    return {
        "id": task.id,
        "task": task.question,
        "file": task.file_name,
        "answer": task.answer,
        "_orig": task.original,
        "skip_hard": bool(task.original.get("skip_hard", False)),
    }


def build_row(
    facts: Mapping[str, Any], session: AgentSession, judged: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The row of a task that ended.

    Args:
        facts: the data of its `task` event.
        session: its main agent's session.
        judged: what `eval` holds beside prediction, right answer and score.
    """
    results = session.final_results or {"output": ""}
    scored = {**evaluate(results["output"], facts["answer"]), **(judged or {})}
    return {**facts, "session": session.to_dict(), "eval": scored}


def row_from_events(events: Iterable[JournalEvent]) -> dict[str, Any]:
    """The row of a journal, as `ck_pro.journal.read_events` gives its events.

    Raises:
        JournalError: the journal does not tell of a task.
    """
    return _folded(list(events))


def row_of(events: Iterable[JournalEvent], *, written: bool = False) -> dict[str, Any] | None:
    """The row of a journal if it is complete.

    Args:
        events: of the journal.
        written: also if the journal says that the row was written.
    """
    kept = list(events)
    kinds = {e["kind"] for e in kept}
    missing = written or EventKind.ROW not in kinds
    return _folded(kept) if EventKind.EVAL in kinds and missing else None


def _folded(events: Sequence[JournalEvent]) -> dict[str, Any]:
    known = {e["kind"]: e["data"] for e in events if e["kind"] in (EventKind.TASK, EventKind.EVAL)}
    if EventKind.TASK not in known:
        raise JournalError("the journal does not tell of a task")
    session = next(iter(sessions_from_events(events).values()))
    return build_row(known[EventKind.TASK], session, known.get(EventKind.EVAL))


def row_line(row: Mapping[str, Any]) -> bytes:
    """A row as it stands in the output, its newline included."""
    try:
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # a model wrote half of a surrogate pair: only escapes can hold it
        return (json.dumps(row) + "\n").encode()


@dataclass(frozen=True)
class Outcome:
    """How a task ended, for tables and exit codes.

    Args:
        steps: steps of all agents together, in all tries of which the row tells.
        seconds: wall time of them.
        tokens: prompt and completion tokens of all their calls.
        corr: 1, 0, or None where no right answer is known.
        money: USD; None when not known.
        earlier: the row was in the output before this run.
        tries: how many tries of the task were made.
        unreadable: replies of all tries that the agent could not read, or only in part, by phase.
        setup: what the row was made with, as far as it records that.
    """

    id: str
    question: str
    answer: str
    gold: str | None
    corr: int | None
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
        cls, row: Mapping[str, Any], *, money: float | None = None, earlier: bool = False
    ) -> Outcome:
        """Read off a row. Raises KeyError, TypeError or AttributeError if it is not one."""
        info, scored = row["session"]["info"], row["eval"]
        tries = row.get("sel_cands") or [
            {
                "steps": count_steps(row["session"]),
                "seconds": info.get("duration", 0.0),
                "tokens": tokens_of(row["session"]),
                "unreadable": info.get("unreadable"),
            }
        ]
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
            setup=setup_of(info),
        )

    @property
    def is_done(self) -> bool:
        """Whether the agent ended the task itself, whatever the score."""
        return self.status == "done"


def count_steps(session: Mapping[str, Any]) -> int:
    """Steps of a row's session and of all sessions below it."""
    nested = (
        sub for s in session["steps"] for sub in (s.get("action") or {}).get("sub_sessions", ())
    )
    return len(session["steps"]) + sum(count_steps(sub) for sub in nested)


def tokens_of(session: Mapping[str, Any]) -> int:
    """Prompt and completion tokens of a row's session and of all sessions below it."""
    return int(session["info"]["call_stat"]["__ALL__"]["total_tokens"])
