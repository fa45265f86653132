"""Split rows into tries, and read the facts of a session that need no model call.

A row may lack these keys:

- `info` of a session: a session without an answer then counts as failed, and the agent's name is
  guessed from the contents of its steps.
- `sub_sessions`: nested sessions are then those in the observations.
- `eval`: there is then no score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.big_json import is_list
from ck_pro.trajectory.reading.messages import hash_of

DONE = "done"
FAILED = "problem"
UNKNOWN_ANSWER = "UNK"
"""CK-Pro's right answer for a task without one; the score of such a row means nothing."""
_WORDS = {
    **dict.fromkeys(("true", "yes", "correct", "right", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "incorrect", "wrong", "fail", "failed"), 0.0),
}
_MARKS = {"web_state_before": "web_agent", "file_state_before": "file_agent"}


@dataclass(frozen=True)
class Try:
    """One try of a task.

    Args:
        where: file and line, or folder, that it was read from.
        row: the row that contains it.
        session: its main session.
        number: index among the tries of its task, from 0.
        score: score of its answer; None if unknown.
        earlier: whether it is one of the row's previous, failed tries.
        on_disk: whether to read it step by step, see `Record`.
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
        """A hash that all tries of one task share, in any file and under any id."""
        return hash_of(self.row.get("task") or self.session.get("task"), self.row.get("file"))

    @property
    def status(self) -> str:
        """Status of the main session."""
        return status_of(self.session)

    @property
    def steps(self) -> int:
        """Number of steps of the main session."""
        return len(self.session["steps"])


def tries_of(
    where: str, row: Mapping[str, Any], score_from: str = "eval.corr", *, on_disk: bool = False
) -> list[Try]:
    """Return the tries of a row: previous failed ones first, its own last.

    A previous try without a score has the score 0.

    Args:
        where, row, on_disk: see `Try`.
        score_from: path of the score in the row: a number, a boolean, or a word such as "correct".

    Raises:
        InputError: the score is not one of these.
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
    """Return the index of a try: from its session, which counts from 1, or else by its place."""
    known = value_at(session, "info.try.number")
    return known - 1 if isinstance(known, int) and known > 0 else place


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path; None if there is none."""
    for name in path.split("."):
        if isinstance(row, Mapping):
            row = row.get(name)
        elif is_list(row) and name.isdigit() and int(name) < len(row):
            row = row[int(name)]
        else:
            return None
    return row


def number_in(value: Any) -> float | None:
    """Return a finite number; None for any other value."""
    usable = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if usable else None


def _score(value: Any, path: str) -> float | None:
    if isinstance(value, str):
        word = value.strip().casefold()
        try:
            value = _WORDS[word] if word in _WORDS else float(word)
        except ValueError:
            raise InputError(f"{path} is {value!r}, which is not a score") from None
    if value is None:
        return None
    if not isinstance(value, int | float) or value != value:
        raise InputError(f"{path} is {value!r}, which is not a score")
    return float(value)


def status_of(session: Mapping[str, Any]) -> str:
    """Return a session's status; without `info`, "done" if it has an answer, else "problem"."""
    status = value_at(session, "info.status")
    if status:
        return str(status)
    return DONE if final_results(session).get("output") not in (None, "") else FAILED


def final_results(session: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `{"output", "log"}` of a session; empty if there is none."""
    steps = session.get("steps") or [{}]
    found = value_at(session, "info.final_results") or value_at(steps[-1], "end.final_results")
    return found if isinstance(found, Mapping) else {}


def agent_of(session: Mapping[str, Any], depth: int) -> str:
    """Return the name of a session's agent."""
    known = value_at(session, "info.agent")
    if known:
        return str(known)
    for step in session.get("steps") or ():
        for mark, name in _MARKS.items():
            if mark in (value_at(step, "action") or ()):
                return name
    return "sub_agent" if depth else "ck_agent"


def session_key(session: Mapping[str, Any]) -> bytes:
    """Return a key that all copies of one session share."""
    steps = session.get("steps") or [{}]
    paths = ("action.llm_output", "action.code")
    # rows of other programs may have no id, and rows of older versions have ""
    ends = (steps[-1],) if session.get("id") else (steps[0], steps[-1])
    texts = [value_at(step, path) or "" for step in ends for path in paths]
    return hash_of(session.get("id"), session.get("task"), len(steps), texts)


def sid_of(session: Mapping[str, Any]) -> str:
    """Return a session's id; for rows of other programs without ids, "~" and a hash."""
    return str(session.get("id") or f"~{session_key(session).hex()[:12]}")


def nested_sessions(action: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the sub-agents' sessions in a step's action, including copies."""
    for session in action.get("sub_sessions") or ():
        if isinstance(session, Mapping):
            yield session
    yield from _observed_sessions(action.get("observation"))


def _observed_sessions(observation: Any) -> Iterator[Mapping[str, Any]]:
    if is_list(observation):
        for entry in observation:
            yield from _observed_sessions(entry)
    elif isinstance(observation, Mapping):
        if isinstance(observation.get("session"), Mapping):
            yield observation["session"]
        yield from _observed_sessions(observation.get("sel_cands"))


def unchosen_sessions(action: Mapping[str, Any]) -> set[bytes]:
    """Return the keys of the sub-agents' tries that the caller did not choose.

    They are known from the step's observation (`sel_cands`, `sel_idx`).
    """
    return set(_unchosen(action.get("observation")))


def _unchosen(observation: Any) -> Iterator[bytes]:
    if is_list(observation):
        for entry in observation:
            yield from _unchosen(entry)
    elif isinstance(observation, Mapping) and is_list(observation.get("sel_cands")):
        chosen = observation.get("sel_idx")
        for n, candidate in enumerate(observation["sel_cands"] if isinstance(chosen, int) else ()):
            session = value_at(candidate, "session")
            if n != chosen and isinstance(session, Mapping):
                yield session_key(session)
