"""Collect facts about the whole input before the export writes the first row.

The survey is a separate pass over the input. It collects:

- the best tries of each task;
- whether there are images and tools, since loaders guess the columns from the start of a file;
- one call of each special kind, which the export writes first for the same reason;
- for preferences, the replies to each prompt, in a database on disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ck_pro.trajectory.reading.attempts import Try
from ck_pro.trajectory.reading.messages import Message
from ck_pro.trajectory.reading.model_calls import Call


class BestTries:
    """The best tries of each task: highest score, then fewest steps, then first.

    Args:
        keep: number of tries per task.
    """

    def __init__(self, keep: int):
        self.keep = keep
        self._by_task: dict[bytes, list[tuple[float, int, int]]] = {}

    def add(self, attempt: Try, ordinal: int) -> None:
        """Add a try; tries without a score come last."""
        score = float("-inf") if attempt.score is None else attempt.score
        found = self._by_task.setdefault(attempt.group, [])
        found.append((-score, attempt.steps, ordinal))
        found.sort()
        del found[self.keep :]

    def chosen(self) -> frozenset[int]:
        """Return the ordinals of the tries to keep."""
        return frozenset(n for found in self._by_task.values() for _, _, n in found)


KINDS = ("images", "tools", "tool_calls", "tool_turns", "reasoning")


@dataclass
class Kinds:
    """The special kinds of calls in the input.

    Args:
        first: the first call of each special kind with its ordinal, without its row.
    """

    first: dict[str, tuple[int, Call]] = field(default_factory=dict)

    def add(self, call: Call, ordinal: int, kinds: Iterable[str] | None = None) -> None:
        """Add a call; `kinds` are the kinds of its row, if different from the call's own."""
        for kind in kinds_of(call) if kinds is None else kinds:
            if kind not in self.first:
                self.first[kind] = (ordinal, _without_row(call))

    @property
    def complete(self) -> bool:
        """Whether all kinds were found."""
        return len(self.first) == len(KINDS)

    def __contains__(self, kind: str) -> bool:
        return kind in self.first


def _without_row(call: Call) -> Call:
    """Copy a call without its row, which may be large."""
    row = {"id": call.attempt.task_id}
    return replace(call, attempt=replace(call.attempt, row=row, session={"steps": []}))


def kinds_of(call: Call) -> Iterator[str]:
    """Yield the special kinds of a call, from `KINDS`."""
    if call.images:
        yield "images"
    if call.tools:
        yield "tools"
    if "tool_calls" in call.reply:
        yield "tool_calls"
    if any("tool_calls" in m for m in call.prompt):
        yield "tool_turns"
    if call.reasoning:
        yield "reasoning"


def kinds_of_pairs(call: Call, found: Iterable[tuple[Judged, Judged]]) -> Iterator[str]:
    """Yield the kinds of the pairs of a call's prompt; their replies may be from other calls."""
    for pair in found:
        for one in pair:
            yield from kinds_of(replace(call, reply=one.reply, reasoning=one.reasoning))


@dataclass(frozen=True)
class Judged:
    """A reply to a prompt, with the rewards of all calls that gave it.

    Args:
        value: mean of the rewards.
        lowest, highest: range of the rewards.
        good, bad: whether any reward reaches, or stays below, the score of a good reply.
        label: "corrected", "good" or "bad" if a label judged a call that gave it, else "".
        key: `Call.reply_key`.
    """

    reply: Message
    reasoning: str
    value: float
    good: bool
    bad: bool
    lowest: float
    highest: float
    label: str = ""
    key: bytes = b""


_TABLES = """
CREATE TABLE replies (
    prompt BLOB, reply BLOB, judged INTEGER, total REAL, n INTEGER, lowest REAL, highest REAL,
    label TEXT, body TEXT, PRIMARY KEY (prompt, reply)
) WITHOUT ROWID;
CREATE TABLE corrections (
    prompt BLOB, chosen BLOB, rejected BLOB, PRIMARY KEY (prompt, chosen, rejected)
) WITHOUT ROWID;
"""
_ADD = """
INSERT INTO replies VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT (prompt, reply) DO UPDATE SET
    total = total + excluded.total, n = n + 1, lowest = min(lowest, excluded.lowest),
    highest = max(highest, excluded.highest), label = max(label, excluded.label)
"""


class Replies:
    """A database of replies by prompt, with their rewards.

    A reward by a label of a call, step or session replaces the scores of all calls with that prompt
    and reply.

    Args:
        path: of the database; replaces one that a killed export left.
        good_score: lowest reward of a good reply.
    """

    def __init__(self, path: Path, good_score: float):
        self._path, self._good = path, good_score
        path.unlink(missing_ok=True)
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_TABLES)

    def add(self, call: Call) -> None:
        """Add a call; ignored if its reward is unknown."""
        if call.value is None:
            return
        keys = (call.prompt_key, call.reply_key)
        judged = call.judged is not None
        known = self._db.execute(
            "SELECT judged FROM replies WHERE prompt = ? AND reply = ?", keys
        ).fetchone()
        if known is not None and known[0] != judged:
            if not judged:
                return
            self._db.execute("DELETE FROM replies WHERE prompt = ? AND reply = ?", keys)
        v = call.value
        body = json.dumps([call.reply, call.reasoning])
        label = _CORRECTED if call.corrected else call.label
        self._db.execute(_ADD, (*keys, judged, v, v, v, label, body))
        if call.corrects:
            pair = (*keys, call.corrects)
            self._db.execute("INSERT OR IGNORE INTO corrections VALUES (?, ?, ?)", pair)

    def to(self, call: Call) -> list[Judged]:
        """Return all replies to a call's prompt, the best first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM replies WHERE prompt = ? ORDER BY total / n DESC, reply",
            (call.prompt_key,),
        )
        return [self._judged(*row) for row in rows]

    def of(self, call: Call) -> Judged | None:
        """Return the reply of a call itself; None if its reward is unknown."""
        row = self._db.execute(
            f"SELECT {_COLUMNS} FROM replies WHERE prompt = ? AND reply = ?",
            (call.prompt_key, call.reply_key),
        ).fetchone()
        return self._judged(*row) if row else None

    def pairs(self, call: Call, limit: int) -> list[tuple[Judged, Judged]]:
        """Pair the replies to a call's prompt: each correction with its original, then by reward.

        Args:
            call: the call.
            limit: maximum number of pairs; all corrections are paired nevertheless.
        """
        found = self.to(call)
        by_key = {one.key: one for one in found}
        rows = self._db.execute(
            "SELECT chosen, rejected FROM corrections WHERE prompt = ?", (call.prompt_key,)
        )
        made = [(by_key[a], by_key[b]) for a, b in rows if a in by_key and b in by_key]
        made = [(good, bad) for good, bad in made if good.value > bad.value]
        used = {one.key for pair in made for one in pair}
        left = [one for one in found if one.key not in used]
        return [*made, *pairs(left, limit - len(made))]

    def close(self) -> None:
        """Remove the database."""
        self._db.close()
        self._path.unlink(missing_ok=True)

    def _judged(self, reply: bytes, value: float, *rest: Any) -> Judged:
        lowest, highest, label, body = rest
        message, reasoning = json.loads(body)
        good, bad = highest >= self._good, lowest < self._good
        shown = "corrected" if label == _CORRECTED else label
        return Judged(message, reasoning, value, good, bad, lowest, highest, shown, reply)


_COLUMNS = "reply, total / n, lowest, highest, label, body"
_CORRECTED = "~corrected"
"""Sorts after other labels: a reply that was corrected once and labelled elsewhere counts so."""


def pairs(replies: Iterable[Judged], limit: int) -> list[tuple[Judged, Judged]]:
    """Pair better with worse replies to one prompt; each reply is in at most one pair.

    Args:
        replies: the best first.
        limit: maximum number of pairs.

    Returns:
        The best with the worst, the second best with the second worst, and so on. The better reply
        of each pair is a good one.
    """
    left = list(replies)
    out: list[tuple[Any, Any]] = []
    while len(left) > 1 and len(out) < limit:
        best, worst = left.pop(0), left.pop()
        if not best.good or best.value <= worst.value:
            break
        out.append((best, worst))
    return out
