"""The form of sessions in output rows: read and write it. Rows of other programs may lack keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ck_pro.events.event_parts import FinalResults
from ck_pro.exceptions import InputError
from ck_pro.session.goals import Task
from ck_pro.session.rows import ALL, COUNTERS, MAIN, PHASES, Action, CallCounts, End, Step
from ck_pro.session.status import Status, StopReason

if TYPE_CHECKING:
    from ck_pro.session.session import AgentSession

_SESSION_INFO = (
    *("call_stat", "status", "agent", "final_results", "stop_reason", "message", "unreadable"),
    "variables",
)
"""Keys of a row's `info` that a session has as attributes."""


def session_in(row: Any) -> Mapping[str, Any]:
    """Return the session in a row; a session itself is returned unchanged.

    Raises:
        InputError: it has no list of steps.
    """
    found = row
    if isinstance(found, Mapping) and isinstance(found.get("session"), Mapping):
        found = found["session"]
    steps = found.get("steps") if isinstance(found, Mapping) else None
    if not isinstance(steps, Sequence) or isinstance(steps, str | bytes):
        raise InputError("not a session of an output row: it has no list of steps")
    return cast(Mapping[str, Any], found)


def fill_session(session: AgentSession, row: Mapping[str, Any]) -> None:
    """Add the steps and apply the `info` of a row's session.

    Raises:
        InputError: a part of the row has a wrong type.
    """
    info = mapping_in(row.get("info"), "info")
    try:
        for number, step in enumerate(row["steps"]):
            session.add_step(mapping_in(step, f"steps[{number}]"))
        _apply_info(session, info)
    except RecursionError:
        raise InputError("not a session of an output row: it is nested too deeply") from None


def _apply_info(session: AgentSession, info: Mapping[str, Any]) -> None:
    """Apply a row's `info`, after the steps."""
    session.info = {k: v for k, v in info.items() if k not in _SESSION_INFO}
    if isinstance(info.get("tasks"), Mapping):
        session.tasks = Task.from_dict(info["tasks"])
    session.agent = str(info.get("agent") or "")
    session.message = str(info.get("message") or "")
    session.variables = dict(mapping_in(info.get("variables"), "variables"))
    end: End = session.steps[-1].get("end") or {} if session.steps else {}
    results = info.get("final_results") or end.get("final_results")
    if isinstance(results, Mapping):
        session.final_results = cast(FinalResults, dict(results))
        if session.steps:
            session.steps[-1]["end"] = {**end, "final_results": session.final_results.copy()}
    answered = session.final_results and session.final_results.get("output") not in (None, "")
    try:
        session.stop_reason = StopReason(info["stop_reason"]) if info.get("stop_reason") else None
        guessed = Status.DONE if answered else Status.PROBLEM
        session.status = Status(info["status"]) if info.get("status") else guessed
    except ValueError as e:
        raise InputError(f"not a session of an output row: {e}") from None
    below = sum((Counter(c.unreadable()) for c in session.children.values()), Counter[str]())
    session.unreadable_counts = Counter(mapping_in(info.get("unreadable"), "unreadable")) - below
    agents = {child.agent or "sub_agent" for child in session.children.values()}
    for name, counted in mapping_in(info.get("call_stat"), "call_stat").items():
        own = counted if name == MAIN else mapping_in(counted, name).get(MAIN)
        if name != ALL and name not in agents and own:
            counts = {c: int(own.get(c) or 0) for c in COUNTERS}
            session.calls[name] = cast(CallCounts, counts)


def mapping_in(value: Any, name: str) -> Mapping[str, Any]:
    """Return a value as an object, or an empty one for None; raise InputError for others."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"not a session of an output row: {name} is not an object")
    return value


def row_step(session: AgentSession, index: int, step: Step) -> Step:
    """Return a step of an output row, with the sessions of the sub-agents that it called.

    A row omits empty phases, and `llm_input` and `llm_output` of a phase without a model call.
    Scripts that convert every phase therefore produce no empty samples. (The result of an
    `end` without a call is in `info`.)

    Args:
        session: the session.
        index: index of the step.
        step: the step from `steps`.
    """
    subs = [
        session.children[s].to_dict() for s in session.sub_sessions[index] if s in session.children
    ]
    action: Action = {
        **step["action"],
        "observation": _with_sessions(session, step["action"]["observation"]),
    }
    if subs:
        action["sub_sessions"] = subs
    phases: dict[str, Any] = {**step, "action": action}
    kept = {p: phases[p] for p in PHASES if _has_content(phases.get(p) or {})}
    return cast(Step, {**{k: v for k, v in step.items() if k not in PHASES}, **kept})


def _with_sessions(session: AgentSession, value: Any) -> Any:
    """Replace each reference in an observation by the session of the sub-agent."""
    if isinstance(value, list):
        return [_with_sessions(session, v) for v in value]
    if isinstance(value, Mapping) and "sel_cands" in value:
        return {**value, "sel_cands": _with_sessions(session, value["sel_cands"])}
    if isinstance(value, Mapping) and isinstance(value.get("session"), str):
        child = session.children.get(value["session"])
        return {**value, "session": child.to_dict() if child else None}
    return value


def _has_content(phase: Mapping[str, Any]) -> bool:
    """Whether a phase has more than the final results, which `info` has, too."""
    return any(v not in ("", None) for k, v in phase.items() if k != "final_results")
