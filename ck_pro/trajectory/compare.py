"""Find the first difference between two runs of a task. Pure.

Values that change in every run (ports, dates, ids, temporary paths, element ids, screenshots) do
not count as differences, except in an exact comparison.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ck_pro.model.recordings.elements import normalise
from ck_pro.session.observed import join_entries
from ck_pro.trajectory.reading.attempts import (
    agent_of,
    final_results,
    nested_sessions,
    status_of,
    value_at,
)
from ck_pro.trajectory.reading.big_json import is_list, plain
from ck_pro.trajectory.reading.messages import hash_of

_MISSING = "(nothing)"


@dataclass(frozen=True)
class Difference:
    """The first difference between two sessions.

    Args:
        agent: path of the agent, "ck_agent/web_agent".
        step: step of that agent; None for a difference of the whole session.
        phase: "plan", "action", "end", "tool:NAME"; "" for a whole session.
        what: "task", "call", "prompt", "reply", "sub-agents", "observation", "steps", "answer" or
            "status".
        a, b: the two texts.
    """

    agent: str
    step: int | None
    phase: str
    what: str
    a: str
    b: str

    @property
    def where(self) -> str:
        """The place as text: "ck_agent/web_agent, step 3, action: reply"."""
        step = [] if self.step is None else [f"step {self.step}"]
        return ", ".join([self.agent, *step, *([self.phase] if self.phase else [])]) + (
            f": {self.what}"
        )

    def lines(self, limit: int, *, exact: bool = False) -> list[str]:
        """Return a unified diff.

        Args:
            limit: maximum number of lines.
            exact: whether the runs were compared exactly.
        """
        texts = [t if exact else _every_run(t) for t in (self.a, self.b)]
        a, b = (t.split("\n") for t in texts)
        found = list(difflib.unified_diff(a, b, lineterm="", n=1))[2:]
        if len(found) > limit:
            return [*found[:limit], f"... and {len(found) - limit} lines more"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return {
            "agent": self.agent,
            "step": self.step,
            "phase": self.phase,
            "what": self.what,
            "a": self.a,
            "b": self.b,
        }


def first_difference(
    a: Mapping[str, Any], b: Mapping[str, Any], *, exact: bool = False
) -> Difference | None:
    """Find the first difference between two sessions, in order of time; None if they match."""
    return next(_Comparison(exact).sessions(a, b, ()), None)


def _every_run(text: str) -> str:
    return normalise(text)


class _Comparison:
    def __init__(self, exact: bool):
        self.exact = exact

    def same(self, a: str, b: str) -> bool:
        return a == b or (not self.exact and _every_run(a) == _every_run(b))

    def sessions(
        self, a: Mapping[str, Any], b: Mapping[str, Any], above: tuple[str, ...]
    ) -> Iterator[Difference]:
        path = (*above, agent_of(a, len(above)))
        agent = "/".join(path)
        yield from self.texts(agent, None, "", "task", a.get("task"), b.get("task"))
        steps_a, steps_b = a.get("steps") or [], b.get("steps") or []
        for n, (x, y) in enumerate(zip(steps_a, steps_b, strict=False)):
            yield from self.steps(x, y, n, path)
        if len(steps_a) != len(steps_b):
            counts = [f"{len(s)} steps" for s in (steps_a, steps_b)]
            yield Difference(agent, min(len(steps_a), len(steps_b)), "", "steps", *counts)
        answers = [final_results(s).get("output") for s in (a, b)]
        yield from self.texts(agent, None, "", "answer", *answers)
        yield from self.texts(agent, None, "", "status", _ending(a), _ending(b))

    def steps(
        self, a: Mapping[str, Any], b: Mapping[str, Any], n: int, path: tuple[str, ...]
    ) -> Iterator[Difference]:
        agent = "/".join(path)
        act_a, act_b = a.get("action") or {}, b.get("action") or {}
        yield from self.calls(agent, n, "plan", a.get("plan") or {}, b.get("plan") or {})
        yield from self.calls(agent, n, "action", act_a, act_b)
        subs = [_distinct(nested_sessions(act)) for act in (act_a, act_b)]
        for x, y in zip(*subs, strict=False):
            yield from self.sessions(x, y, path)
        names = ["\n".join(_called(s, len(path)) for s in found) for found in subs]
        yield from self.texts(agent, n, "action", "sub-agents", *names)
        tools = [act.get("model_calls") or [] for act in (act_a, act_b)]
        for x, y in zip_longest(*tools, fillvalue={}):
            phase = str(x.get("phase") or y.get("phase"))
            yield from self.calls(agent, n, phase, x, y)
        observed = [_observation_text(act.get("observation")) for act in (act_a, act_b)]
        yield from self.texts(agent, n, "action", "observation", *observed)
        yield from self.calls(agent, n, "end", a.get("end") or {}, b.get("end") or {})

    def calls(
        self, agent: str, n: int, phase: str, a: Mapping[str, Any], b: Mapping[str, Any]
    ) -> Iterator[Difference]:
        prompts = [p.get("llm_input") or [] for p in (a, b)]
        if bool(prompts[0]) != bool(prompts[1]):
            called = ["the model was asked" if p else "the model was not asked" for p in prompts]
            yield Difference(agent, n, phase, "call", *called)
        for x, y in zip_longest(*prompts):
            texts = [self.message(plain(m)) for m in (x, y)]
            yield from self.texts(agent, n, phase, "prompt", *texts)
        yield from self.texts(agent, n, phase, "reply", _reply(a), _reply(b))

    def texts(
        self, agent: str, step: int | None, phase: str, what: str, a: Any, b: Any
    ) -> Iterator[Difference]:
        text_a, text_b = (_MISSING if t is None else str(t) for t in (a, b))
        if not self.same(text_a, text_b):
            yield Difference(agent, step, phase, what, text_a, text_b)

    def message(self, message: Any) -> str | None:
        """Return a message of a prompt as text; an exact comparison shows images as hashes."""
        if not isinstance(message, Mapping):
            return None if message is None else str(message)
        content = message.get("content")
        parts = content if isinstance(content, list) else [content or ""]
        texts = [f"[{message.get('role')}]", *(self.part(p) for p in parts)]
        if message.get("tool_calls"):
            texts.append(_json(_without_ids(message["tool_calls"])))
        return "\n".join(texts)

    def part(self, part: Any) -> str:
        if not isinstance(part, Mapping):
            return str(part)
        if "text" in part:
            return str(part["text"])
        return f"(image {hash_of(part).hex()})" if self.exact else "(image)"


def _ending(session: Mapping[str, Any]) -> str:
    reason = value_at(session, "info.stop_reason")
    return f"{status_of(session)} ({reason})" if reason else status_of(session)


def _called(session: Mapping[str, Any], depth: int) -> str:
    return f"{agent_of(session, depth)}: {session.get('task')}"


def _distinct(sessions: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Drop repeated sessions; an observation may contain a copy."""
    found: dict[Any, Mapping[str, Any]] = {}
    for session in sessions:
        found.setdefault(session.get("id") or id(session), session)
    return list(found.values())


def _reply(part: Mapping[str, Any]) -> str:
    """Return the model's text and its tool calls without their ids."""
    text = str(part.get("llm_output") or "")
    calls = value_at(part, "llm_info.tool_calls")
    return f"{text}\n{_json(_without_ids(calls))}".strip() if calls else text


def _without_ids(calls: Any) -> Any:
    """Return tool calls without their ids, which differ in every run."""
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return calls
    return [c.get("function", c) if isinstance(c, Mapping) else c for c in calls]


def _observation_text(observation: Any) -> str:
    """Return an observation as the model saw it, without the sessions in it."""
    if is_list(observation):
        return join_entries(observation, _observation_text)
    if isinstance(observation, Mapping):
        kept = {k: observation[k] for k in observation if k not in ("session", "sel_cands")}
        return str(observation.get("repr") or _json(kept))
    return "" if observation is None else str(observation)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=plain)
