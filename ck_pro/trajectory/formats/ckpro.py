"""Runs as clean rows of CK-Pro's schema, for scripts that were written for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ck_pro.trajectory.reading.attempts import UNKNOWN_ANSWER, Try, final_results
from ck_pro.trajectory.reading.big_json import is_list


def ckpro_row(attempt: Try) -> Mapping[str, Any] | None:
    """A try's row without incomplete steps, for `json_pieces`; None if no step is left.

    A step is complete when its action has a prompt and a reply. The remaining steps are renumbered,
    and the `end` of a dropped last step moves to the step before. A plan or an end without a model
    call is dropped. Nested sessions are cleaned in the same way; empty ones are dropped. A score
    is a number: 0, with the answer "UNK", where the right answer is unknown. Steps are read one by
    one while they are written.
    """
    session = _clean(attempt.session)
    if session is None:
        return None
    row = {k: v for k, v in attempt.row.items() if k != "previous_failed_sessions"}
    return {**row, "session": session, "eval": _evaluation(attempt)}


def _evaluation(attempt: Try) -> dict[str, Any]:
    known = {k: v for k, v in (attempt.row.get("eval") or {}).items() if v is not None}
    if attempt.earlier:
        known["corr"] = attempt.score
    if known.get("corr") is None:
        known["corr"] = 0
        known.setdefault("gold", UNKNOWN_ANSWER)
    answer = str(final_results(attempt.session).get("output") or "")
    return {"pred": answer, "gold": "", **known}


def _clean(session: Mapping[str, Any]) -> dict[str, Any] | None:
    if not any(_is_complete(s) for s in session.get("steps") or ()):
        return None
    info = {"final_results": dict(final_results(session)), **(session.get("info") or {})}
    return {**session, "info": info, "steps": _steps(session["steps"])}


def _steps(given: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The complete steps, each held back until it is known whether an `end` comes to it."""
    held: dict[str, Any] | None = None
    for step in given:
        if _is_complete(step):
            number = 0
            if held is not None:
                yield held
                number = held["step_idx"] + 1
            called = {k: v for k, v in step.items() if k not in ("plan", "end") or _called(v)}
            held = {**called, "step_idx": number, "action": _clean_action(step["action"])}
        elif held is not None and _called(step.get("end")):
            held["end"] = step["end"]
    if held is not None:
        yield held


def _is_complete(step: Mapping[str, Any]) -> bool:
    return _called(step.get("action"))


def _called(phase: Any) -> bool:
    """Whether a phase has a prompt and a reply."""
    if not isinstance(phase, Mapping) or not phase.get("llm_input"):
        return False
    return bool(phase.get("llm_output") or (phase.get("llm_info") or {}).get("tool_calls"))


def _clean_action(action: Mapping[str, Any]) -> dict[str, Any]:
    out = {**action, "observation": _clean_shown(action.get("observation", ""))}
    if "sub_sessions" in action:
        cleaned = (_clean(s) for s in action["sub_sessions"] or ())
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
