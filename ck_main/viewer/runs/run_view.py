"""One run as JSON: the facts, the tree of sessions with their steps, and the timeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_main.viewer.runs.outline import (
    Outline,
    SessionOutline,
    StepOutline,
    mapping_of,
    number_of,
    text_of,
)
from ck_main.viewer.runs.run_reader import RunReader
from ck_pro.trajectory.reading.attempts import UNKNOWN_ANSWER

MAX_SPANS = 20_000
"""Limit for the timeline; the shortest spans beyond it are dropped."""
_INFO_WITHOUT = ("config", "call_stat", "final_results")


def score_of(scored: Mapping[str, Any] | None) -> float | None:
    """Return the score of a run; None if no right answer is known."""
    if scored is None or scored.get("gold") == UNKNOWN_ANSWER:
        return None
    corr = scored.get("corr")
    return float(corr) if isinstance(corr, bool) else number_of(corr)


def run_json(reader: RunReader) -> dict[str, Any]:
    """Return the outline of a run; the caller adds `key`, `source`, `live` and `tries`."""
    outline = reader.outline
    main = outline.main
    data = mapping_of(reader.session_data(main.sid)) if main else {}
    info = dict(mapping_of(data.get("info")))
    config = data.get("config") or info.get("config")
    facts = {k: data[k] for k in ("version", "settings_hash", "prompts_hash") if k in data}
    start = main.start if main else None
    results = main.results if main else {}
    return {
        "id": text_of(outline.task.get("id")),
        "task": text_of(outline.task.get("task")) or (main.task if main else ""),
        "answer": outline.task.get("answer"),
        "level": level_of(outline.task),
        "output": results.get("output"),
        "log": results.get("log"),
        "score": score_of(outline.scored),
        "eval": outline.scored,
        "status": main.status if main else "in_progress",
        "stop_reason": main.stop_reason if main else None,
        "message": main.message if main else "",
        "asked": main.asked if main else None,
        "lease": main.lease if main else None,
        "start_time": start,
        "settings": config or {},
        "info": {k: v for k, v in {**info, **facts}.items() if k not in _INFO_WITHOUT},
        "budget": main.budget if main else {},
        "problems": outline.problems,
        "sessions": [_session_json(outline, session, start) for session in tree(outline)],
        "timeline": timeline(outline, start),
    }


def level_of(task: Mapping[str, Any]) -> Any:
    """Return the level of a task, if its line in the task file has one."""
    original = mapping_of(task.get("_orig"))
    for name in ("Level", "level"):
        for place in (original, mapping_of(original.get("info"))):
            if isinstance(place.get(name), str | int | float):
                return place[name]
    return None


def tree(outline: Outline) -> list[SessionOutline]:
    """Return the sessions with each before its sub-sessions, in order of their start."""
    children: dict[str | None, list[SessionOutline]] = {}
    for session in outline.sessions.values():
        parent = session.parent if session.parent in outline.sessions else None
        children.setdefault(parent if parent != session.sid else None, []).append(session)
    found: list[SessionOutline] = []
    waiting = children.pop(None, [])[::-1]
    while waiting:
        session = waiting.pop()
        found.append(session)
        waiting += children.pop(session.sid, [])[::-1]
    return found


def _session_json(outline: Outline, session: SessionOutline, start: float | None) -> dict[str, Any]:
    return {
        "sid": session.sid,
        "parent": session.parent,
        "agent": session.agent,
        "path": session.path,
        "depth": max(0, len(session.path) - 1),
        "task": session.task[:2000],
        "status": session.status,
        "stop_reason": session.stop_reason,
        "message": session.message,
        "called_by": session.called_by,
        "start": _since(session.start, start),
        "seconds": _between(session.start, session.end or _last_time(session)),
        "calls": session.calls,
        "tokens": session.tokens,
        "prompt_tokens": session.prompt_tokens,
        "cached_tokens": session.cached_tokens,
        "money": session.money,
        "output": session.results.get("output"),
        "steps": [_step_json(step, start) for step in session.steps],
    }


def _last_time(session: SessionOutline) -> float | None:
    return session.steps[-1].end if session.steps else None


def _step_json(step: StepOutline, start: float | None) -> dict[str, Any]:
    return {
        "i": step.i,
        "start": _since(step.start, start),
        "seconds": _between(step.start, step.end),
        "title": step.title,
        "error": step.error,
        "calls": step.calls,
        "model_calls": len(step.model_calls),
        "tokens": step.tokens,
        "picture": step.picture,
        "url": step.url,
    }


def timeline(outline: Outline, start: float | None) -> list[dict[str, Any]]:
    """Return the spans of a run in order of their start, in seconds since the run's start."""
    spans: list[dict[str, Any]] = [
        {
            "sid": session.sid,
            "step": step.i,
            "kind": span.kind,
            "name": span.name,
            "start": _since(span.start, start),
            "seconds": round(span.seconds, 6),
        }
        for session, step in outline.all_steps()
        for span in step.spans
    ]
    if len(spans) > MAX_SPANS:
        spans = sorted(spans, key=lambda span: -span["seconds"])[:MAX_SPANS]
    return sorted(spans, key=lambda span: span["start"] or 0.0)


def _since(time: float | None, start: float | None) -> float | None:
    return None if time is None or start is None else round(time - start, 6)


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(max(0.0, end - start), 6)
