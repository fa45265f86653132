"""List the model calls of a try, for the whole tree of agents.

A session that occurs several times in a row counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ck_pro.exceptions import InputError
from ck_pro.trajectory.reading.attempts import (
    DONE,
    Try,
    agent_of,
    nested_sessions,
    session_key,
    sid_of,
    status_of,
    unchosen_sessions,
    value_at,
)
from ck_pro.trajectory.reading.big_json import is_list, plain
from ck_pro.trajectory.reading.messages import (
    Image,
    Message,
    MessageError,
    hash_of,
    normal_messages,
    normal_tool_calls,
    normal_tools,
)


@dataclass
class Call:
    """One model call: its prompt, its reply and its place in the try.

    Args:
        attempt: the try that contains it.
        prompt: messages in the normal form of `ck_pro.trajectory.reading.messages`.
        reply: the assistant's message, without `reasoning`.
        images: images of the prompt, in order.
        tools: function schemas sent with the prompt.
        agent_path: names of the agents from the main agent down.
        status: status of the calling agent's session.
        healthy: whether no session below the main one, down to this one, failed.
        chosen: whether no such session is a try that its caller did not choose.
        error: type of the error of the step's action, "" for none.
        unreadable: why the agent could not fully parse the reply; "" if it could.
        info: `llm_info` of the row: model, usage, cost.
        number: index of the call in its step, see `step_calls`.
        output: `llm_output` of the row.
        label: "good" or "bad" if a person judged the call or its run; "" without a judgement.
        corrected: whether the reply is a person's correction.
        corrects: `reply_key` of the reply before the correction, if that is a bad example.
        judged: reward by the label of the call, its step or session; None without one.
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
    number: int = 0
    output: Any = None
    label: str = ""
    corrected: bool = False
    corrects: bytes = b""
    judged: float | None = None
    pooled: float | None = None
    """Reward for all calls with this prompt and reply; replaces the call's own if set."""

    @property
    def value(self) -> float | None:
        """Reward of the reply: the try's score; None if unknown or if the caller did not choose it.

        At most 0 if a session failed or the agent could not parse the reply. A label of the call,
        its step or session replaces all this.
        """
        if self.pooled is not None:
            return self.pooled
        if self.judged is not None:
            return self.judged
        score = self.attempt.score if self.chosen else None
        good = self.healthy and not self.unreadable
        return score if score is None or good else min(score, 0.0)

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of a training row: always the same keys and types, without nulls.

        Loaders guess column types from the start of a file. `scored` says whether `reward` is
        known.
        """
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
            "label": self.label,
            "corrected": self.corrected,
        }

    @property
    def recorded_mark(self) -> str:
        """See `reply_mark`."""
        return reply_mark({"llm_output": self.output, "llm_info": self.info})

    @cached_property
    def prompt_key(self) -> bytes:
        """A hash that calls with equal prompts share."""
        return hash_of(self.prompt, [i.url for i in self.images], self.tools)

    @cached_property
    def reply_key(self) -> bytes:
        """A hash that equal replies share; it ignores the ids of tool calls."""
        calls = [c["function"] for c in self.reply.get("tool_calls", ())]
        return hash_of(self.reply["content"], calls, self.reasoning)


@dataclass(frozen=True)
class Unusable:
    """A model call that no format can represent.

    Args:
        reason: a short fixed phrase.
        call: the call as far as it can be read.
        has_prompt: whether its prompt can be read, so that only the reply is wrong.
    """

    reason: str
    call: Call
    has_prompt: bool = False


def step_calls(step: Mapping[str, Any]) -> list[tuple[int, str, Any]]:
    """Return the model calls of a row's step as `(number, phase, part)`.

    The order is plan, action, calls by tools, end. The numbers are the same in rows and journals
    of one run, and a call in progress only adds to them.
    """
    action, end = step.get("action") or {}, step.get("end") or {}
    tools = [(str(c.get("phase", "tool")), c) for c in _model_calls(action)]
    ends = [("end", part) for part in (*_model_calls(end), end)]
    parts = [("plan", step.get("plan") or {}), ("action", action), *tools, *ends]
    # without a prompt, the phase made no call, or its texts were not stored
    made = [p for p in parts if not isinstance(p[1], Mapping) or p[1].get("llm_input")]
    return [(n, phase, part) for n, (phase, part) in enumerate(made)]


def _model_calls(part: Any) -> Sequence[Any]:
    return (part.get("model_calls") or ()) if isinstance(part, Mapping) else ()


def reply_mark(part: Mapping[str, Any]) -> str:
    """Return 12 hex digits that identify the recorded reply of a row's phase.

    A label stores them, so that it does not apply to another reply of a step that was repeated.
    """
    info = part.get("llm_info")
    calls = plain(info).get("tool_calls") if isinstance(info, Mapping) else None
    return hash_of(part.get("llm_output") or "", calls or []).hex()[:12]


def calls_of(attempt: Try) -> list[Call | Unusable]:
    """Return all model calls of a try, in order of the steps, at every depth.

    Raises:
        InputError: a session, step or phase in it does not match the schema.
    """
    return list(each_call(attempt))


def each_call(attempt: Try) -> Iterator[Call | Unusable]:
    """Yield the calls one by one; an error may follow after some calls."""
    return _Walk(attempt).session(attempt.session, _Standing())


@dataclass(frozen=True)
class _Standing:
    """Facts of a session that its calls and nested sessions have: see `Call`."""

    path: tuple[str, ...] = ()
    sid: str = ""
    healthy: bool = True
    chosen: bool = True


class _Walk:
    """A walk over a try's tree of sessions."""

    def __init__(self, attempt: Try):
        self.attempt = attempt
        self.known: set[bytes] = set()

    def session(self, session: Mapping[str, Any], above: _Standing) -> Iterator[Call | Unusable]:
        key = session_key(session)
        if key in self.known:
            return
        self.known.add(key)
        path = (*above.path, agent_of(session, len(above.path)))
        healthy = above.healthy and (not above.path or status_of(session) == DONE)
        here = _Standing(path, sid_of(session), healthy, above.chosen)
        for n, step in enumerate(_list(session.get("steps"), "steps", path)):
            yield from self.step(_mapping(step, f"steps[{n}]", path), n, session, here)

    def step(
        self, step: Mapping[str, Any], n: int, session: Mapping[str, Any], here: _Standing
    ) -> Iterator[Call | Unusable]:
        action = _mapping(step.get("action") or {}, f"steps[{n}].action", here.path)
        _mapping(step.get("end") or {}, f"steps[{n}].end", here.path)
        calls = step_calls(step)
        for found in calls:
            if found[1] != "end":
                yield self.call(found, n, session, here)
        others = unchosen_sessions(action)
        for nested in nested_sessions(action):
            chosen = here.chosen and session_key(nested) not in others
            yield from self.session(nested, replace(here, chosen=chosen))
        for found in calls:
            if found[1] == "end":
                yield self.call(found, n, session, here)

    def call(
        self, found: tuple[int, str, Any], n: int, session: Mapping[str, Any], here: _Standing
    ) -> Call | Unusable:
        number, phase, part = found
        part = _mapping(part, f"steps[{n}].{phase}", here.path)
        info = part.get("llm_info")
        info = plain(info) if isinstance(info, Mapping) else {}
        call = Call(
            self.attempt,
            [],
            {"role": "assistant", "content": ""},
            [],
            normal_tools(value_at(info, "params.tools")),
            here.path,
            here.sid,
            n,
            phase,
            status_of(session),
            here.healthy,
            here.chosen,
            error=_error(part),
            unreadable=unreadable_reason(part, phase),
            reasoning=str(info.get("reasoning") or ""),
            info=info,
            number=number,
            output=part.get("llm_output"),
        )
        try:
            call.prompt = normal_messages(part["llm_input"], call.images)
        except MessageError as e:
            return Unusable(e.reason, call)
        try:
            call.reply = _reply(call.output, info)
        except MessageError as e:
            return Unusable(e.reason, call, has_prompt=True)
        return call


def _error(part: Mapping[str, Any]) -> str:
    error = value_at(part, "error")
    return str(error.get("error", "") if isinstance(error, Mapping) else error or "")


def unreadable_reason(part: Mapping[str, Any], phase: str) -> str:
    """Return why the agent could not read a phase's reply, or only in part; "" if it could.

    Rows of earlier versions record this for actions alone.
    """
    reason = str(part.get("unreadable") or "")
    if not reason and phase == "action" and (error := _error(part)) == "ParseError":
        return error
    return reason


def _reply(output: Any, info: Mapping[str, Any]) -> Message:
    if isinstance(output, Mapping):
        output = output.get("content")
    if output is not None and not isinstance(output, str):
        raise MessageError("reply is not text")
    reply: Message = {"role": "assistant", "content": output or ""}
    if info.get("tool_calls"):
        reply["tool_calls"] = normal_tool_calls(info["tool_calls"])
    if not reply["content"].strip() and "tool_calls" not in reply:
        raise MessageError("empty reply")
    return reply


def _mapping(value: Any, name: str, path: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} of {'/'.join(path)} is not an object")
    return value


def _list(value: Any, name: str, path: tuple[str, ...]) -> Sequence[Any]:
    if not is_list(value):
        raise InputError(f"{name} of {'/'.join(path)} is not a list")
    return value
