"""Tries taken apart: the model calls of the whole tree of agents.

A session that stands in several places of a row is taken once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.formats.chat import (
    Image,
    Message,
    MessageError,
    hash_of,
    normal_messages,
    normal_tool_calls,
    normal_tools,
)
from ck_pro.trajectory.reading.attempts import (
    DONE,
    Try,
    agent_of,
    nested_sessions,
    passed_over,
    session_key,
    status_of,
    value_at,
)
from ck_pro.trajectory.reading.big_json import is_list, plain


@dataclass
class Call:
    """One model call: what was sent, what came back, and whose it was.

    Args:
        attempt: the try it belongs to.
        prompt: messages in the normal form of `ck_pro.trajectory.formats.chat`.
        reply: the assistant's message; `reasoning` is apart from it.
        images: of the prompt, in order.
        tools: function schemas that the prompt came with.
        agent_path: names from the main agent down.
        status: how the calling agent's session ended.
        healthy: no session between the try's main one and this one, itself included, failed.
        chosen: none of them is a try of a sub-agent of which its caller took another.
        error: type of the error that the step's action ended in, "" for none.
        unreadable: why the agent could not read the reply, or only in part; "" if it could.
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
    chosen: bool = True
    error: str = ""
    unreadable: str = ""
    reasoning: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)
    pooled: float | None = None
    """What all calls of this prompt and reply were worth together, if that counts instead."""

    @property
    def value(self) -> float | None:
        """What the reply was worth: the try's score, but nothing in a session that failed or where
        the agent could not read it; None where that is unknown, as of what the caller did not
        take."""
        if self.pooled is not None:
            return self.pooled
        score = self.attempt.score if self.chosen else None
        good = self.healthy and not self.unreadable
        return score if score is None or good else min(score, 0.0)

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


def calls_of(attempt: Try) -> list[Call | Unusable]:
    """All model calls of a try, in order of the steps, at every depth.

    Raises:
        InputError: a session, step or phase in it is not of the schema.
    """
    return list(each_call(attempt))


def each_call(attempt: Try) -> Iterator[Call | Unusable]:
    """The same one by one; an error may come after some."""
    return _Walk(attempt).session(attempt.session, _Standing())


@dataclass(frozen=True)
class _Standing:
    """Where a session stands in the tree: see `Call`."""

    path: tuple[str, ...] = ()
    healthy: bool = True
    chosen: bool = True


class _Walk:
    """One pass over the tree of sessions of a try."""

    def __init__(self, attempt: Try):
        self.attempt = attempt
        self.seen: set[bytes] = set()

    def session(self, session: Mapping[str, Any], above: _Standing) -> Iterator[Call | Unusable]:
        key = session_key(session)
        if key in self.seen:
            return
        self.seen.add(key)
        path = (*above.path, agent_of(session, len(above.path)))
        healthy = above.healthy and (not above.path or status_of(session) == DONE)
        here = _Standing(path, healthy, above.chosen)
        for n, step in enumerate(_list(session.get("steps"), "steps", path)):
            yield from self.step(_mapping(step, f"steps[{n}]", path), n, session, here)

    def step(
        self, step: Mapping[str, Any], n: int, session: Mapping[str, Any], here: _Standing
    ) -> Iterator[Call | Unusable]:
        action = _mapping(step.get("action") or {}, f"steps[{n}].action", here.path)
        tools = [(str(c.get("phase", "tool")), c) for c in action.get("model_calls") or ()]
        parts = [("plan", step.get("plan") or {}), ("action", action), *tools]
        for phase, part in parts:
            yield from self.call(part, phase, n, session, here)
        others = passed_over(action)
        for nested in nested_sessions(action):
            chosen = here.chosen and session_key(nested) not in others
            yield from self.session(nested, replace(here, chosen=chosen))
        yield from self.call(step.get("end") or {}, "end", n, session, here)

    def call(
        self, part: Any, phase: str, n: int, session: Mapping[str, Any], here: _Standing
    ) -> Iterator[Call | Unusable]:
        part = _mapping(part, f"steps[{n}].{phase}", here.path)
        if not part.get("llm_input"):
            return  # this phase made no call, or its texts were not kept
        info = part.get("llm_info")
        info = plain(info) if isinstance(info, Mapping) else {}
        images: list[Image] = []
        try:
            prompt = normal_messages(part["llm_input"], images)
            reply = _reply(part.get("llm_output"), info)
        except MessageError as e:
            yield Unusable(e.reason)
            return
        yield Call(
            self.attempt,
            prompt,
            reply,
            images,
            normal_tools(value_at(info, "params.tools")),
            here.path,
            str(session.get("id") or ""),
            n,
            phase,
            status_of(session),
            here.healthy,
            here.chosen,
            error=_error(part),
            unreadable=unreadable_reason(part, phase),
            reasoning=str(info.get("reasoning") or ""),
            info=info,
        )


def _error(part: Mapping[str, Any]) -> str:
    error = value_at(part, "error")
    return str(error.get("error", "") if isinstance(error, Mapping) else error or "")


def unreadable_reason(part: Mapping[str, Any], phase: str) -> str:
    """Return why the agent could not read a phase's reply, or only in part; "" if it could.

    Rows of earlier versions record this for actions alone.
    """
    said = str(part.get("unreadable") or "")
    if not said and phase == "action" and (error := _error(part)) == "ParseError":
        return error
    return said


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


def _list(value: Any, name: str, path: tuple[str, ...]) -> Sequence[Any]:
    if not is_list(value):
        raise InputError(f"{name} of {'/'.join(path)} is no list")
    return value
