"""Runs as clean rows of CK-Pro's schema, for scripts that were written for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import Layout
from ck_pro.trajectory.reading.attempts import UNKNOWN_ANSWER, Try, final_results
from ck_pro.trajectory.reading.big_json import is_list, plain
from ck_pro.trajectory.reading.messages import MessageError, calls_as_text, normal_tool_calls
from ck_pro.trajectory.reading.model_calls import unreadable_reason

PHASES = ("plan", "action", "end")


def ckpro_row(attempt: Try, layout: Layout) -> Mapping[str, Any] | None:
    """Return a try's row without incomplete steps, for `json_pieces`; None if no step is complete.

    A step is complete when its action has a prompt and a reply. The remaining steps are renumbered,
    and the `end` of a dropped last step moves to the step before. A plan or an end without a model
    call is dropped. Tool calls become text of the reply, so that no reply is empty. Nested sessions
    are cleaned in the same way; empty ones are dropped. A score is a number: 0, with the answer
    "UNK", where the right answer is unknown. The export reads steps one by one while it writes.

    Args:
        attempt: the try.
        layout: says whether to keep steps, plans and ends whose reply the agent could not read.
            Without them a run may have no steps; its score remains.
    """
    session = _clean(attempt.session, layout.keep_unreadable)
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


def _clean(session: Mapping[str, Any], keep: bool) -> dict[str, Any] | None:
    if not any(_called(s.get("action"), "action", True) for s in session.get("steps") or ()):
        return None
    info = {"final_results": dict(final_results(session)), **(session.get("info") or {})}
    return {**session, "info": info, "steps": _steps(session["steps"], keep)}


def _steps(steps: Iterable[Mapping[str, Any]], keep: bool) -> Iterator[dict[str, Any]]:
    """Yield the complete steps, each held back until it is known whether it gets an `end`."""
    held: dict[str, Any] | None = None
    for step in steps:
        phases = {n: p for n in PHASES if (p := _called(step.get(n), n, keep)) is not None}
        if "action" in phases:
            number = 0
            if held is not None:
                yield held
                number = held["step_idx"] + 1
            phases["action"] = _clean_action(phases["action"], keep)
            others = {k: v for k, v in step.items() if k not in PHASES or k in phases}
            held = {**others, "step_idx": number, **phases}
        elif held is not None and "end" in phases:
            held["end"] = phases["end"]
    if held is not None:
        yield held


def _called(phase: Any, name: str, keep: bool) -> Mapping[str, Any] | None:
    """Return a phase that has a prompt and a reply, the reply as text; None for any other phase."""
    if not isinstance(phase, Mapping) or not phase.get("llm_input"):
        return None
    if not keep and unreadable_reason(phase, name):
        return None
    info, reply = phase.get("llm_info") or {}, phase.get("llm_output")
    if calls := info.get("tool_calls"):
        try:
            text = calls_as_text(normal_tool_calls(plain(calls)))
        except MessageError:
            return None
        others = {k: v for k, v in info.items() if k != "tool_calls"}
        return {**phase, "llm_output": f"{reply or ''}{text}".strip(), "llm_info": others}
    return phase if reply and str(reply).strip() else None


def _clean_action(action: Mapping[str, Any], keep: bool) -> dict[str, Any]:
    out = {**action, "observation": _clean_observation(action.get("observation", ""), keep)}
    if "sub_sessions" in action:
        cleaned = (_clean(s, keep) for s in action["sub_sessions"] or ())
        out["sub_sessions"] = [s for s in cleaned if s is not None]
    return out


def _clean_observation(observation: Any, keep: bool) -> Any:
    if is_list(observation):
        return [_clean_observation(s, keep) for s in observation]
    if isinstance(observation, Mapping):
        out = dict(observation)
        if isinstance(observation.get("session"), Mapping):
            out["session"] = _clean(observation["session"], keep)
        if "sel_cands" in observation:
            out["sel_cands"] = _clean_observation(observation["sel_cands"], keep)
        return out
    return observation


FORMAT = ExportFormat(
    name="ckpro",
    help="cleaned output rows, one row per run",
    trainer="scripts for CK-Pro",
    row="cleaned output rows, one row per run",
    images="as in the input",
    run_row=ckpro_row,
    json_images=("embed",),
    reasoning=("drop",),
)
