"""Runs as clean rows of CK-Pro's schema, for scripts that were written for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_pro.trajectory.tries import Try


def ckpro_row(attempt: Try) -> dict[str, Any] | None:
    """A try's row without incomplete steps; None if no step is left.

    A step is complete when its action has a prompt and a reply. What is left is counted anew, and
    the `end` of a last step that went is moved to the one before. Nested sessions are cleaned the
    same way; one of which nothing is left is gone.
    """
    session = _clean(attempt.session)
    if session is None:
        return None
    row = {k: v for k, v in attempt.row.items() if k != "previous_failed_sessions"}
    if attempt.session is not attempt.row["session"]:  # an earlier, failed try
        row.update(eval={**(row.get("eval") or {}), "corr": attempt.score})
    return {**row, "session": session}


def _clean(session: Mapping[str, Any]) -> dict[str, Any] | None:
    steps: list[dict[str, Any]] = []
    for step in session.get("steps") or ():
        action = step.get("action") or {}
        if action.get("llm_input") and (action.get("llm_output") or _called(action)):
            steps.append({**step, "step_idx": len(steps), "action": _clean_action(action)})
        elif steps and "end" in step:
            steps[-1]["end"] = step["end"]
    return {**session, "steps": steps} if steps else None


def _called(action: Mapping[str, Any]) -> bool:
    return bool((action.get("llm_info") or {}).get("tool_calls"))


def _clean_action(action: Mapping[str, Any]) -> dict[str, Any]:
    out = {**action, "observation": _clean_shown(action.get("observation", ""))}
    if "sub_sessions" in action:
        cleaned = [_clean(s) for s in action["sub_sessions"]]
        out["sub_sessions"] = [s for s in cleaned if s is not None]
    return out


def _clean_shown(seen: Any) -> Any:
    if isinstance(seen, list):
        return [_clean_shown(s) for s in seen]
    if isinstance(seen, Mapping):
        out = dict(seen)
        if isinstance(seen.get("session"), Mapping):
            out["session"] = _clean(seen["session"])
        if "sel_cands" in seen:
            out["sel_cands"] = _clean_shown(seen["sel_cands"])
        return out
    return seen
