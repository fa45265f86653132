"""One walk over the sessions of a run: its costs, its agents, and what its steps show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ck_main.analysis.failures import EVIDENCE_CHARS, Moment, Wanted, add_moment
from ck_pro.session.observed import observation_text
from ck_pro.trajectory.reading.attempts import agent_of, number_in, status_of, value_at
from ck_pro.trajectory.reading.big_json import is_list, plain
from ck_pro.trajectory.reading.tree import Visit, visits


@dataclass
class Walk:
    """A walk over a try's tree of sessions, in the order in which the steps ended.

    Args:
        failed: whether the run failed, or has no score.
        wanted: finds the right answer in observations.
    """

    failed: bool
    wanted: Wanted | None
    agents: list[str] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    steps: int = 0
    calls: int = 0
    used: dict[str, float] = field(default_factory=dict)
    cached: float | None = 0.0
    """None if it is unknown for a call."""
    money: float | None = None
    unpriced: bool = False
    codes: dict[tuple[str, int], int] = field(default_factory=dict)

    def session(self, session: Mapping[str, Any]) -> None:
        """Visit a session and those of its sub-agents."""
        known: set[str] = set()
        for visit in visits(session):
            place = visit.place
            if place.sid not in known:
                known.add(place.sid)
                self.agents.append(place.path[-1])
            if not visit.ended:
                self._count(visit.step)
            elif self.failed:
                add_moment(self.moments, self._moment(visit))

    def _count(self, step: Mapping[str, Any]) -> None:
        self.steps += 1
        action, plan, end = (_part(step, name) for name in ("action", "plan", "end"))
        for part in (plan, action, *_calls(action), *_calls(end), end):
            self._call(part)

    def _moment(self, visit: Visit) -> Moment:
        step, place = visit.step, visit.place
        action, plan = _part(step, "action"), _part(step, "plan")
        code = str(action.get("code") or "").strip()
        key = (place.sid, hash(code))
        seen = self.codes.get(key) if code else None
        self.codes[key] = visit.index
        page = value_at(action, "web_state_before.current_accessibility_tree")
        moment = Moment(
            agent="/".join(place.path),
            sid=place.sid,
            step=visit.index,
            error=_error_of(action)[:EVIDENCE_CHARS],
            unreadable=str(action.get("unreadable") or plan.get("unreadable") or "")[
                :EVIDENCE_CHARS
            ],
            repeats=seen,
            failed=_failed_call(visit)[:EVIDENCE_CHARS],
            code=code.partition("\n")[0][:EVIDENCE_CHARS],
            page=page if isinstance(page, str) else "",
        )
        observation = action.get("observation")
        if observation is not None:
            moment.see(observation_text(plain(observation)), self.wanted)
        if any(value_at(one, "info.stop_reason") == "page_refused" for one in visit.nested):
            moment.block = moment.failed
        return moment

    def _call(self, part: Mapping[str, Any]) -> None:
        """Count a model call."""
        if not (part.get("llm_input") or part.get("llm_info") or part.get("llm_output")):
            return
        self.calls += 1
        info = part.get("llm_info")
        if not isinstance(info, Mapping):
            self.unpriced, self.cached = True, None
            return
        usage = info.get("usage")
        usage = usage if isinstance(usage, Mapping) else {}
        for name in ("prompt_tokens", "completion_tokens"):
            self.used[name] = self.used.get(name, 0.0) + (number_in(usage.get(name)) or 0.0)
        cached = None if usage.get("estimated") else number_in(usage.get("cached_tokens"))
        known = None if cached is None else self.cached
        self.cached = None if known is None or cached is None else known + cached
        cost = number_in(info.get("cost"))
        if cost is None:
            self.unpriced = True
        else:
            self.money = (self.money or 0.0) + cost

    def measures(self, info: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the measures; the session's own counts have priority, as they are complete."""
        total = value_at(info, "call_stat.__ALL__")
        stat = total if isinstance(total, Mapping) else {}
        prompt = _first(number_in(stat.get("prompt_tokens")), self.used.get("prompt_tokens"))
        reply = _first(number_in(stat.get("completion_tokens")), self.used.get("completion_tokens"))
        both = None if prompt is None or reply is None else prompt + reply
        calls = _first(number_in(stat.get("llm_call")), float(self.calls) if self.calls else None)
        return {
            "steps": float(self.steps),
            "calls": calls,
            "tokens": _first(number_in(stat.get("total_tokens")), both),
            "money": None if self.unpriced else self.money,
            "seconds": number_in(info.get("duration")),
            "prompt_tokens": prompt,
            "completion_tokens": reply,
            "cached_tokens": self.cached if self.calls else None,
        }


def _failed_call(visit: Visit) -> str:
    """Say how the last sub-agent that failed in a step ended."""
    for nested in reversed(visit.nested):
        status = status_of(nested)
        if status != "done":
            name = agent_of(nested, visit.place.depth + 1)
            reason = value_at(nested, "info.stop_reason") or status
            message = value_at(nested, "info.message") or ""
            return f"{name} ended with {reason}: {message}".rstrip(": ")
    return ""


def _part(step: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = step.get(name)
    return part if isinstance(part, Mapping) else {}


def _calls(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = part.get("model_calls")
    return [c for c in found if isinstance(c, Mapping)] if is_list(found) else []


def _error_of(action: Mapping[str, Any]) -> str:
    error = action.get("error")
    return str(error.get("error", "") if isinstance(error, Mapping) else error or "")


def _first(*values: float | None) -> float | None:
    return next((v for v in values if v is not None), None)
