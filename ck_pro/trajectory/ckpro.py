"""Runs as clean rows of CK-Pro's schema, for scripts that were written for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ck_pro.trajectory.big_json import is_list
from ck_pro.trajectory.tries import Try


def ckpro_row(attempt: Try) -> Mapping[str, Any] | None:
    """A try's row without incomplete steps, for `json_pieces`; None if no step is left.

    A step is complete when its action has a prompt and a reply. What is left is counted anew, and
    the `end` of a last step that went is moved to the one before. Nested sessions are cleaned the
    same way; one of which nothing is left is gone. Steps are read one by one as they are written.
    """
    session = _clean(attempt.session)
    if session is None:
        return None
    row = {k: v for k, v in attempt.row.items() if k != "previous_failed_sessions"}
    if attempt.earlier:
        row.update(eval={**(row.get("eval") or {}), "corr": attempt.score})
    return {**row, "session": session}


def _clean(session: Mapping[str, Any]) -> dict[str, Any] | None:
    if not any(_is_complete(s) for s in session.get("steps") or ()):
        return None
    return {**session, "steps": _steps(session["steps"])}


def _steps(given: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The complete steps, each held back until it is known whether an `end` comes to it."""
    held: dict[str, Any] | None = None
    for step in given:
        if _is_complete(step):
            number = 0
            if held is not None:
                yield held
                number = held["step_idx"] + 1
            held = {**step, "step_idx": number, "action": _clean_action(step["action"])}
        elif held is not None and "end" in step:
            held["end"] = step["end"]
    if held is not None:
        yield held


def _is_complete(step: Mapping[str, Any]) -> bool:
    action = step.get("action") or {}
    return bool(action.get("llm_input") and (action.get("llm_output") or _called(action)))


def _called(action: Mapping[str, Any]) -> bool:
    return bool((action.get("llm_info") or {}).get("tool_calls"))


def _clean_action(action: Mapping[str, Any]) -> dict[str, Any]:
    out = {**action, "observation": _clean_shown(action.get("observation", ""))}
    if "sub_sessions" in action:
        cleaned = (_clean(s) for s in action["sub_sessions"])
        out["sub_sessions"] = [s for s in cleaned if s is not None]
    return out


def _clean_shown(seen: Any) -> Any:
    if is_list(seen):
        return [_clean_shown(s) for s in seen]
    if isinstance(seen, Mapping):
        out = dict(seen)
        if isinstance(seen.get("session"), Mapping):
            out["session"] = _clean(seen["session"])
        if "sel_cands" in seen:
            out["sel_cands"] = _clean_shown(seen["sel_cands"])
        return out
    return seen
