"""Apply labels to a run as a whole, for formats of one row per run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ck_pro.exceptions import ParseError
from ck_pro.journal import LazyList
from ck_pro.language.parsing import parse_thought_code
from ck_pro.trajectory.labels.label import Reply
from ck_pro.trajectory.labels.label_set import Decision, Labels, call_facts
from ck_pro.trajectory.labels.tool_check import tool_call_problem
from ck_pro.trajectory.reading.attempts import Try, agent_of, sid_of, value_at
from ck_pro.trajectory.reading.big_json import is_list
from ck_pro.trajectory.reading.messages import normal_tools
from ck_pro.trajectory.reading.model_calls import reply_mark, step_calls

_CALL = ("llm_input", "llm_output", "llm_info", "thought", "code", "state", "unreadable")


def labelled_run(attempt: Try, labels: Labels) -> Try:
    """Return a run without its excluded and bad calls, and with its corrected replies.

    A step whose action leaves is empty; formats skip it, with the sub-agents that it called. Steps
    are converted on access. A label of the run is its score, also in the row.
    """
    if not labels.concern(attempt):
        return attempt
    row = attempt.row
    if labels.of_run(attempt).judgement:
        row = {**row, "eval": {**(row.get("eval") or {}), "corr": attempt.score}}
    session = _Relabel(attempt, labels).session(attempt.session, ())
    return replace(attempt, row=row, session=session)


class _Relabel:
    """Convert the tree of sessions of a try."""

    def __init__(self, attempt: Try, labels: Labels):
        self.attempt, self.labels = attempt, labels

    def session(self, session: Mapping[str, Any], above: tuple[str, ...]) -> Mapping[str, Any]:
        path = (*above, agent_of(session, len(above)))
        sid, steps = sid_of(session), session.get("steps") or ()

        def convert(n: int) -> Mapping[str, Any]:
            return self.step(steps[n], n, sid, path)

        return {**session, "steps": LazyList(range(len(steps)), convert)}

    def step(
        self, step: Mapping[str, Any], n: int, sid: str, path: tuple[str, ...]
    ) -> Mapping[str, Any]:
        # read once: a step on disk gives new objects on each access
        step = {k: dict(v) if isinstance(v, Mapping) else v for k, v in step.items()}
        parts: dict[int, Any] = {}
        for number, phase, part in step_calls(step):
            facts = call_facts(self.attempt, sid, path, n, number, phase)
            decision = self.labels.of_facts(facts, partial(reply_mark, part))
            parts[id(part)] = _part(part, decision)
        action, end = step.get("action") or {}, step.get("end") or {}
        out = {**step, "action": self.action(action, parts, path)}
        if step.get("plan"):
            out["plan"] = parts.get(id(step["plan"]), step["plan"])
        if end:
            out["end"] = _with_calls(parts.get(id(end), end) or _without_call(end), end, parts)
        if out["action"] is None:
            kept = {k: v for k, v in out.items() if k not in ("plan", "action")}
            return {**kept, "action": {"thought": "", "code": "", "observation": ""}}
        return {k: v for k, v in out.items() if v is not None}

    def action(
        self, action: Mapping[str, Any], parts: Mapping[int, Any], path: tuple[str, ...]
    ) -> Mapping[str, Any] | None:
        new = parts.get(id(action), action)
        if new is None:
            return None
        out = dict(_with_calls(new, action, parts))
        if "observation" in out:
            out["observation"] = self.observation(out["observation"], path)
        if out.get("sub_sessions"):
            out["sub_sessions"] = [self.session(s, path) for s in out["sub_sessions"]]
        return out

    def observation(self, observation: Any, path: tuple[str, ...]) -> Any:
        if is_list(observation):
            return [self.observation(o, path) for o in observation]
        if not isinstance(observation, Mapping):
            return observation
        out = dict(observation)
        if isinstance(out.get("session"), Mapping):
            out["session"] = self.session(out["session"], path)
        if "sel_cands" in out:
            out["sel_cands"] = self.observation(out["sel_cands"], path)
        return out


def _part(part: Mapping[str, Any], decision: Decision) -> Mapping[str, Any] | None:
    """Return a phase as its label wants it; None if its call leaves."""
    if decision.excluded or (decision.judgement == "bad" and decision.reply is None):
        return None
    if decision.reply is None:
        return part
    reply = decision.reply
    if tool_call_problem(reply.tool_calls, normal_tools(value_at(part, "llm_info.params.tools"))):
        return None
    info = {k: v for k, v in (part.get("llm_info") or {}).items() if k != "reasoning"}
    info.pop("tool_calls", None)
    info |= {"tool_calls": list(reply.tool_calls)} if reply.tool_calls else {}
    info |= {"reasoning": reply.reasoning} if reply.reasoning else {}
    kept = {k: v for k, v in part.items() if k not in ("unreadable", "error")}
    parsed = {k: v for k, v in _parsed(reply).items() if k in kept}
    return {**kept, **parsed, "llm_output": reply.content, "llm_info": info}


def _parsed(reply: Reply) -> dict[str, str]:
    """Return thought and code of a corrected reply, as an agent parses it."""
    if not reply.tool_calls:
        try:
            parsed = parse_thought_code(reply.content)
            return {"thought": parsed["thought"], "code": parsed["code"]}
        except ParseError:
            return {"thought": reply.content, "code": ""}
    calls = []
    for call in reply.tool_calls:
        function = call["function"]
        arguments = ", ".join(f"{k}={v!r}" for k, v in function["arguments"].items())
        calls.append(f"{function['name']}({arguments})")
    return {"thought": reply.content, "code": "\n".join(calls)}


def _with_calls(
    new: Mapping[str, Any], old: Mapping[str, Any], parts: Mapping[int, Any]
) -> Mapping[str, Any]:
    """Return a phase with those of its further calls that stay."""
    if not old.get("model_calls"):
        return new
    calls = [parts.get(id(c), c) for c in old["model_calls"]]
    return {**new, "model_calls": [c for c in calls if c is not None]}


def _without_call(end: Mapping[str, Any]) -> Mapping[str, Any]:
    return {k: v for k, v in end.items() if k not in _CALL}
