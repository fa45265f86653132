"""What must be known of the whole input before the first row is written.

The survey is a pass of its own over the input and keeps a few facts only: which tries are the best
of their task; whether there are images and tools (columns must be there from a file's first row
on, since readers guess the types of a file from its beginning); one call of each kind that is not
plain, to be written first for the same reason; and, for preferences, the replies by prompt, in a
database on disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ck_pro.trajectory.formats.chat import Message
from ck_pro.trajectory.reading.attempts import Try
from ck_pro.trajectory.reading.model_calls import Call


class BestTries:
    """The best tries of each task: the highest score, of equal ones the fewest steps, the first.

    Args:
        keep: how many of each task.
    """

    def __init__(self, keep: int):
        self.keep = keep
        self._by_task: dict[bytes, list[tuple[float, int, int]]] = {}

    def add(self, attempt: Try, ordinal: int) -> None:
        """Take a try into account; without a score it comes after all that have one."""
        score = float("-inf") if attempt.score is None else attempt.score
        found = self._by_task.setdefault(attempt.group, [])
        found.append((-score, attempt.steps, ordinal))
        found.sort()
        del found[self.keep :]

    def chosen(self) -> frozenset[int]:
        """Ordinals of the tries to keep."""
        return frozenset(n for found in self._by_task.values() for _, _, n in found)


KINDS = ("images", "tools", "tool_calls", "reasoning")


@dataclass
class Kinds:
    """Which kinds of calls there are.

    Args:
        first: the first call of each kind that is not plain, with its ordinal, without its row.
    """

    first: dict[str, tuple[int, Call]] = field(default_factory=dict)

    def add(self, call: Call, ordinal: int, kinds: Iterable[str] | None = None) -> None:
        """Take a call into account; `kinds` are those of its row, if they are not its own."""
        for kind in kinds_of(call) if kinds is None else kinds:
            if kind not in self.first:
                self.first[kind] = (ordinal, _without_row(call))

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to find."""
        return len(self.first) == len(KINDS)

    def __contains__(self, kind: str) -> bool:
        return kind in self.first


def _without_row(call: Call) -> Call:
    """A copy that does not keep the row, which may be large, in memory."""
    row = {"id": call.attempt.task_id}
    return replace(call, attempt=replace(call.attempt, row=row, session={"steps": []}))


def kinds_of(call: Call) -> Iterator[str]:
    """What is special about a call: some of `KINDS`."""
    if call.images:
        yield "images"
    if call.tools:
        yield "tools"
    if "tool_calls" in call.reply or any("tool_calls" in m for m in call.prompt):
        yield "tool_calls"
    if call.reasoning:
        yield "reasoning"


def kinds_of_pairs(call: Call, found: Iterable[tuple[Judged, Judged]]) -> Iterator[str]:
    """The same for the pairs of a call's prompt, whose replies may be those of other calls."""
    for pair in found:
        for one in pair:
            yield from kinds_of(replace(call, reply=one.reply, reasoning=one.reasoning))


@dataclass(frozen=True)
class Judged:
    """A reply to some prompt, with what all calls that gave it were worth.

    Args:
        value: the mean of their values.
        lowest, highest: of these values.
        good, bad: whether any of them was, or was not, worth the score that counts as good.
    """

    reply: Message
    reasoning: str
    value: float
    good: bool
    bad: bool
    lowest: float
    highest: float


class Replies:
    """Replies by prompt with their values, on disk.

    Args:
        path: of the database; one that a killed export left is replaced.
        good_score: the value from which on a reply counts as good.
    """

    def __init__(self, path: Path, good_score: float):
        self._path, self._good = path, good_score
        path.unlink(missing_ok=True)
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute(
            "CREATE TABLE replies (prompt BLOB, reply BLOB, total REAL, n INTEGER, lowest REAL,"
            " highest REAL, body TEXT, PRIMARY KEY (prompt, reply)) WITHOUT ROWID"
        )

    def add(self, call: Call) -> None:
        """Take a call into account; one without a value tells nothing."""
        if call.value is None:
            return
        v = call.value
        body = json.dumps([call.reply, call.reasoning])
        self._db.execute(
            "INSERT INTO replies VALUES (?, ?, ?, 1, ?, ?, ?)"
            " ON CONFLICT (prompt, reply) DO UPDATE SET"
            " total = total + excluded.total, n = n + 1,"
            " lowest = min(lowest, excluded.lowest), highest = max(highest, excluded.highest)",
            (call.prompt_key, call.reply_key, v, v, v, body),
        )

    def to(self, call: Call) -> list[Judged]:
        """All replies to a call's prompt, the best first."""
        rows = self._db.execute(
            "SELECT total / n, lowest, highest, body FROM replies WHERE prompt = ?"
            " ORDER BY total / n DESC, reply",
            (call.prompt_key,),
        )
        return [self._judged(*row) for row in rows]

    def of(self, call: Call) -> Judged | None:
        """The reply of a call itself; None if nothing is known of its worth."""
        row = self._db.execute(
            "SELECT total / n, lowest, highest, body FROM replies WHERE prompt = ? AND reply = ?",
            (call.prompt_key, call.reply_key),
        ).fetchone()
        return self._judged(*row) if row else None

    def close(self) -> None:
        """Remove the database."""
        self._db.close()
        self._path.unlink(missing_ok=True)

    def _judged(self, value: float, lowest: float, highest: float, body: str) -> Judged:
        reply, reasoning = json.loads(body)
        good, bad = highest >= self._good, lowest < self._good
        return Judged(reply, reasoning, value, good, bad, lowest, highest)


def pairs(replies: Iterable[Judged], limit: int) -> list[tuple[Judged, Judged]]:
    """Pairs of a better and a worse reply to one prompt, no reply in two of them.

    Args:
        replies: the best first.
        limit: at most so many pairs.

    Returns:
        The best with the worst, the second best with the second worst, ...; the better one of
        each counts as good.
    """
    left = list(replies)
    out: list[tuple[Any, Any]] = []
    while len(left) > 1 and len(out) < limit:
        best, worst = left.pop(0), left.pop()
        if not best.good or best.value <= worst.value:
            break
        out.append((best, worst))
    return out
