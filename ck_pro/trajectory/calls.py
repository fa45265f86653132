"""Rows taken apart: tries of tasks, and in each the model calls of the whole tree of agents.

What a row may leave out and still be read: `info` of any session (then a session without an
answer counts as failed, and an agent's name is guessed from what its steps carry), `sub_sessions`
(then nested sessions are those that observations show), `eval` (then there is no score). A session
that stands in several places of a row is taken once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.chat import (
    Image,
    Message,
    MessageError,
    hash_of,
    normal_messages,
    normal_tool_calls,
)

DONE = "done"
FAILED = "problem"
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
        number: 0, 1, ... among the tries of its row.
        score: how good its answer was; None when nobody knows.
    """

    where: str
    row: Mapping[str, Any]
    session: Mapping[str, Any]
    number: int
    score: float | None

    @property
    def task_id(self) -> str:
        """The row's id as text."""
        return str(self.row.get("id", ""))

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


@dataclass
class Call:
    """One model call: what was sent, what came back, and whose it was.

    Args:
        attempt: the try it belongs to.
        prompt: messages in the normal form of `ck_pro.trajectory.chat`.
        reply: the assistant's message; `reasoning` is apart from it.
        images: of the prompt, in order.
        tools: function schemas that the prompt came with.
        agent_path: names from the main agent down.
        status: how the calling agent's session ended.
        healthy: no session between the try's main one and this one, itself included, failed.
        error: type of the error that the step's action ended in, "" for none.
        info: `llm_info` of the row: model, usage, cost.
    """

    attempt: Try
    prompt: list[Message]
    reply: Message
    images: list[Image]
    tools: list[dict[str, Any]]
    agent_path: tuple[str, ...]
    session_id: str
    step: int
    phase: str
    status: str
    healthy: bool
    error: str = ""
    reasoning: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """What the reply was worth: the try's score, but nothing in a session that failed."""
        score = self.attempt.score
        return score if score is None or self.healthy else min(score, 0.0)

    @property
    def metadata(self) -> dict[str, Any]:
        """What every training row tells of itself. Always the same keys and types, and no null,
        because readers guess the types of a file from its beginning; `scored` says whether
        `reward` means anything."""
        return {
            "task_id": self.attempt.task_id,
            "try": self.attempt.number,
            "session": self.session_id,
            "agent": self.agent_path[-1],
            "agent_path": "/".join(self.agent_path),
            "depth": len(self.agent_path) - 1,
            "phase": self.phase,
            "step": self.step,
            "status": self.status,
            "reward": float(self.value or 0.0),
            "scored": self.value is not None,
            "model": str(self.info.get("model", "")),
        }

    @cached_property
    def prompt_key(self) -> bytes:
        """The same for calls of equal prompts."""
        return hash_of(self.prompt, [i.url for i in self.images], self.tools)

    @cached_property
    def reply_key(self) -> bytes:
        """The same for equal replies; ids of tool calls do not count."""
        calls = [c["function"] for c in self.reply.get("tool_calls", ())]
        return hash_of(self.reply["content"], calls, self.reasoning)


@dataclass(frozen=True)
class Unusable:
    """A model call that no format can take, and why in a short fixed phrase."""

    reason: str


def tries_of(where: str, row: Mapping[str, Any], score_from: str = "eval.corr") -> list[Try]:
    """The tries of a row: earlier failed ones first, its own last.

    Args:
        score_from: path of the score in the row. What it holds may be a number, a truth value or
            a word such as "correct".

    Raises:
        InputError: the score is none of these.
    """
    earlier = []
    for found in row.get("previous_failed_sessions") or ():
        session = found.get("session", found) if isinstance(found, Mapping) else None
        if isinstance(session, Mapping) and isinstance(session.get("steps"), list):
            earlier.append(session)
    tries = [Try(where, row, s, n, 0.0) for n, s in enumerate(earlier)]
    score = _score(value_at(row, score_from), score_from)
    return [*tries, Try(where, row, row["session"], len(tries), score)]


def value_at(row: Any, path: str) -> Any:
    """What a dotted path leads to; None where there is nothing."""
    for name in path.split("."):
        if isinstance(row, Mapping):
            row = row.get(name)
        elif isinstance(row, list) and name.isdigit() and int(name) < len(row):
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
    said = value_at(steps[-1], "action.llm_output"), value_at(steps[-1], "action.code")
    return hash_of(session.get("id"), session.get("task"), len(steps), said)


def nested_sessions(action: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The sub-agents' sessions that a step's action holds, copies among them."""
    for session in action.get("sub_sessions") or ():
        if isinstance(session, Mapping):
            yield session
    yield from _shown_sessions(action.get("observation"))


def _shown_sessions(seen: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(seen, list):
        for entry in seen:
            yield from _shown_sessions(entry)
    elif isinstance(seen, Mapping):
        if isinstance(seen.get("session"), Mapping):
            yield seen["session"]
        yield from _shown_sessions(seen.get("sel_cands"))


def calls_of(attempt: Try) -> list[Call | Unusable]:
    """All model calls of a try, in order of the steps, at every depth.

    Raises:
        InputError: a session, step or phase in it is not of the schema.
    """
    return list(_Walk(attempt).session(attempt.session, (), True))


class _Walk:
    """One pass over the tree of sessions of a try."""

    def __init__(self, attempt: Try):
        self.attempt = attempt
        self.seen: set[bytes] = set()

    def session(
        self, session: Mapping[str, Any], above: tuple[str, ...], healthy: bool
    ) -> Iterator[Call | Unusable]:
        key = session_key(session)
        if key in self.seen:
            return
        self.seen.add(key)
        path = (*above, agent_of(session, len(above)))
        if above:
            healthy = healthy and status_of(session) == DONE
        for n, step in enumerate(_list(session.get("steps"), "steps", path)):
            yield from self.step(_mapping(step, f"steps[{n}]", path), n, session, path, healthy)

    def step(
        self,
        step: Mapping[str, Any],
        n: int,
        session: Mapping[str, Any],
        path: tuple[str, ...],
        healthy: bool,
    ) -> Iterator[Call | Unusable]:
        action = _mapping(step.get("action") or {}, f"steps[{n}].action", path)
        tools = [(str(c.get("phase", "tool")), c) for c in action.get("model_calls") or ()]
        parts = [("plan", step.get("plan") or {}), ("action", action), *tools]
        for phase, part in parts:
            yield from self.call(part, phase, n, session, path, healthy)
        for nested in nested_sessions(action):
            yield from self.session(nested, path, healthy)
        yield from self.call(step.get("end") or {}, "end", n, session, path, healthy)

    def call(
        self,
        part: Any,
        phase: str,
        n: int,
        session: Mapping[str, Any],
        path: tuple[str, ...],
        healthy: bool,
    ) -> Iterator[Call | Unusable]:
        part = _mapping(part, f"steps[{n}].{phase}", path)
        if not part.get("llm_input"):
            return  # this phase made no call, or its texts were not kept
        info = part.get("llm_info")
        info = info if isinstance(info, Mapping) else {}
        images: list[Image] = []
        try:
            prompt = normal_messages(part["llm_input"], images)
            reply = _reply(part.get("llm_output"), info)
        except MessageError as e:
            yield Unusable(e.reason)
            return
        error = value_at(part, "error")
        error = error.get("error", "") if isinstance(error, Mapping) else error or ""
        tools = value_at(info, "params.tools")
        yield Call(
            self.attempt,
            prompt,
            reply,
            images,
            tools if isinstance(tools, list) else [],
            path,
            str(session.get("id", "")),
            n,
            phase,
            status_of(session),
            healthy,
            error=str(error),
            reasoning=str(info.get("reasoning") or ""),
            info=info,
        )


def _reply(given: Any, info: Mapping[str, Any]) -> Message:
    if isinstance(given, Mapping):
        given = given.get("content")
    if given is not None and not isinstance(given, str):
        raise MessageError("reply is no text")
    reply: Message = {"role": "assistant", "content": given or ""}
    if info.get("tool_calls"):
        reply["tool_calls"] = normal_tool_calls(info["tool_calls"])
    if not reply["content"].strip() and "tool_calls" not in reply:
        raise MessageError("empty reply")
    return reply


def _mapping(value: Any, name: str, path: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} of {'/'.join(path)} is no object")
    return value


def _list(value: Any, name: str, path: tuple[str, ...]) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name} of {'/'.join(path)} is no list")
    return value
