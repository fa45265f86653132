"""Rows as tries of tasks, and the facts of a session: all that needs no model call.

What a row may leave out and still be read: `info` of any session (then a session without an
answer counts as failed, and an agent's name is guessed from what its steps carry), `sub_sessions`
(then nested sessions are those that observations show), `eval` (then there is no score).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.formats.chat import hash_of
from ck_pro.trajectory.reading.big_json import is_list

DONE = "done"
FAILED = "problem"
UNKNOWN_ANSWER = "UNK"
"""The right answer in rows of CK-Pro for a task that has none: its score of 0 means nothing."""
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "right", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "wrong", "fail", "failed"), 0.0),
}
_MARKS = {"web_state_before": "web_agent", "file_state_before": "file_agent"}


@dataclass(frozen=True)
class Try:
    """One attempt at a task.

    Args:
        where: file and line, or folder, it was read from.
        row: the row it is in.
        session: its main session.
        number: 0, 1, ... among the tries of its task.
        score: how good its answer was; None when nobody knows.
        earlier: it is one of the row's earlier tries, which failed.
        on_disk: it should be gone through piece by piece, see `Record`.
    """

    where: str
    row: Mapping[str, Any]
    session: Mapping[str, Any]
    number: int
    score: float | None
    earlier: bool = False
    on_disk: bool = False

    @property
    def task_id(self) -> str:
        """The row's id as text."""
        return str(self.row.get("id") or "")

    @property
    def group(self) -> bytes:
        """The same for all tries of one task, in whatever file and under whatever id."""
        return hash_of(self.row.get("task") or self.session.get("task"), self.row.get("file"))

    @property
    def status(self) -> str:
        """How its main session ended."""
        return status_of(self.session)

    @property
    def steps(self) -> int:
        """Steps of the main session."""
        return len(self.session["steps"])


def tries_of(
    where: str, row: Mapping[str, Any], score_from: str = "eval.corr", *, on_disk: bool = False
) -> list[Try]:
    """The tries of a row: earlier failed ones first (without a score of their own they are worth
    nothing), its own last.

    Args:
        where, row, on_disk: see `Try`.
        score_from: path of the score in the row. What it holds may be a number, a truth value or
            a word such as "correct".

    Raises:
        InputError: the score is none of these.
    """
    sessions: list[tuple[Any, float | None]] = []
    for found in row.get("previous_failed_sessions") or ():
        session = found.get("session", found) if isinstance(found, Mapping) else None
        if isinstance(session, Mapping) and is_list(session.get("steps")):
            score = _score(value_at(found, score_from), score_from)
            sessions.append((session, 0.0 if score is None else score))
    last = len(sessions)
    unknown = score_from == "eval.corr" and value_at(row, "eval.gold") == UNKNOWN_ANSWER
    score = None if unknown else _score(value_at(row, score_from), score_from)
    sessions.append((row["session"], score))
    return [
        Try(where, row, session, _number(session, n), score, n < last, on_disk)
        for n, (session, score) in enumerate(sessions)
    ]


def _number(session: Mapping[str, Any], place: int) -> int:
    """The number of a try, from 0: as its session has it, from 1, or by its place."""
    known = value_at(session, "info.try.number")
    return known - 1 if isinstance(known, int) and known > 0 else place


def value_at(row: Any, path: str) -> Any:
    """What a dotted path leads to; None where there is nothing."""
    for name in path.split("."):
        if isinstance(row, Mapping):
            row = row.get(name)
        elif is_list(row) and name.isdigit() and int(name) < len(row):
            row = row[int(name)]
        else:
            return None
    return row


def _score(value: Any, path: str) -> float | None:
    if isinstance(value, str):
        word = value.strip().casefold()
        try:
            value = _WORDS[word] if word in _WORDS else float(word)
        except ValueError:
            raise InputError(f"{path} is {value!r}, which is no score") from None
    if value is None:
        return None
    if not isinstance(value, int | float) or value != value:
        raise InputError(f"{path} is {value!r}, which is no score")
    return float(value)


def status_of(session: Mapping[str, Any]) -> str:
    """How a session ended; without `info`, "done" if it has an answer and "problem" if not."""
    status = value_at(session, "info.status")
    if status:
        return str(status)
    return DONE if final_results(session).get("output") not in (None, "") else FAILED


def final_results(session: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `{"output", "log"}` that a session ended with; empty when there is none."""
    steps = session.get("steps") or [{}]
    found = value_at(session, "info.final_results") or value_at(steps[-1], "end.final_results")
    return found if isinstance(found, Mapping) else {}


def agent_of(session: Mapping[str, Any], depth: int) -> str:
    """Name of a session's agent."""
    known = value_at(session, "info.agent")
    if known:
        return str(known)
    for step in session.get("steps") or ():
        for mark, name in _MARKS.items():
            if mark in (value_at(step, "action") or ()):
                return name
    return "sub_agent" if depth else "ck_agent"


def session_key(session: Mapping[str, Any]) -> bytes:
    """The same for copies of one session."""
    steps = session.get("steps") or [{}]
    paths = ("action.llm_output", "action.code")
    # a row of another program may have no id; "" stands in rows of older versions
    ends = (steps[-1],) if session.get("id") else (steps[0], steps[-1])
    said = [value_at(step, path) or "" for step in ends for path in paths]
    return hash_of(session.get("id"), session.get("task"), len(steps), said)


def nested_sessions(action: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The sub-agents' sessions that a step's action holds, copies among them."""
    for session in action.get("sub_sessions") or ():
        if isinstance(session, Mapping):
            yield session
    yield from _shown_sessions(action.get("observation"))


def _shown_sessions(seen: Any) -> Iterator[Mapping[str, Any]]:
    if is_list(seen):
        for entry in seen:
            yield from _shown_sessions(entry)
    elif isinstance(seen, Mapping):
        if isinstance(seen.get("session"), Mapping):
            yield seen["session"]
        yield from _shown_sessions(seen.get("sel_cands"))


def passed_over(action: Mapping[str, Any]) -> set[bytes]:
    """Keys of the sub-agents' sessions that are tries of which the caller took another one, as far
    as the step's observation tells (`sel_cands`, `sel_idx`)."""
    return set(_passed_over(action.get("observation")))


def _passed_over(seen: Any) -> Iterator[bytes]:
    if is_list(seen):
        for entry in seen:
            yield from _passed_over(entry)
    elif isinstance(seen, Mapping) and is_list(seen.get("sel_cands")):
        taken = seen.get("sel_idx")
        for n, candidate in enumerate(seen["sel_cands"] if isinstance(taken, int) else ()):
            session = value_at(candidate, "session")
            if n != taken and isinstance(session, Mapping):
                yield session_key(session)
