"""The line of a run in the table, from its outline or from the head of its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ck_main.viewer.runs.outline import IN_PROGRESS, Outline, mapping_of, number_of, text_of
from ck_main.viewer.runs.run_view import level_of, score_of
from ck_pro.session.rows import ALL
from ck_pro.trajectory.reading.big_json import is_list

TEXT_CHARS = 200
COLUMNS = (
    *("key", "source", "id", "try", "score", "status", "stop_reason", "steps", "calls", "tokens"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "money", "seconds", "level", "tags"),
    *("agent", "task", "answer", "output", "live", "labels", "problem"),
)
Summary = dict[str, Any]
"""Values by column; unknown ones are missing."""


def short(value: Any) -> Any:
    """Return a value for the table: a number or flag, or text of limited length."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = text_of(value)[: 4 * TEXT_CHARS]
    text = " ".join(text.split())
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"


def tags_of(task: Mapping[str, Any]) -> list[str]:
    """Return the tags of a task, if its line in the task file has some."""
    tags = mapping_of(task.get("_orig")).get("tags")
    if isinstance(tags, str):
        return [tags]
    return [short(tag) for tag in tags[:20] if isinstance(tag, str)] if is_list(tags) else []


def _of_task(task: Mapping[str, Any], scored: Mapping[str, Any] | None) -> Summary:
    return {
        "id": short(task.get("id")) or None,
        "task": short(task.get("task")),
        "answer": short(task.get("answer")),
        "level": short(level_of(task)),
        "tags": tags_of(task),
        "score": score_of(scored),
    }


def summary_of_outline(outline: Outline) -> Summary:
    """Return the line of a run that was read completely."""
    summary = _of_task(outline.task, outline.scored)
    sessions = outline.sessions.values()
    money = [session.money for session in sessions if session.money is not None]
    summary |= {
        "steps": sum(len(session.steps) for session in sessions),
        "calls": sum(session.calls for session in sessions),
        "tokens": sum(session.tokens for session in sessions),
        "prompt_tokens": sum(session.prompt_tokens for session in sessions),
        "completion_tokens": sum(session.completion_tokens for session in sessions),
        "cached_tokens": sum(session.cached_tokens for session in sessions),
        "money": sum(money) if money else None,
        "problem": short(outline.problems[0]) if outline.problems else None,
    }
    main = outline.main
    if main is not None:
        end = main.end or outline.last_time
        known = main.start is not None and end is not None
        summary |= {
            "status": main.status,
            "stop_reason": main.stop_reason,
            "agent": main.agent,
            "output": short(main.results.get("output")),
            "seconds": round((end or 0.0) - (main.start or 0.0), 3) if known else None,
        }
        summary["task"] = summary["task"] or short(main.task)
    else:
        summary["status"] = IN_PROGRESS
    return summary


def summary_of_head(head: Mapping[str, Any]) -> Summary:
    """Return the line of a row of which only the head was read."""
    session = mapping_of(head.get("session"))
    info = mapping_of(session.get("info"))
    counts = mapping_of(mapping_of(info.get("call_stat")).get(ALL))
    scored = head.get("eval")
    summary = _of_task(head, scored if isinstance(scored, Mapping) else None)
    return summary | {
        "status": text_of(info.get("status")) or None,
        "stop_reason": text_of(info.get("stop_reason")) or None,
        "calls": number_of(counts.get("llm_call")),
        "tokens": number_of(counts.get("total_tokens")),
        "prompt_tokens": number_of(counts.get("prompt_tokens")),
        "completion_tokens": number_of(counts.get("completion_tokens")),
        "seconds": number_of(info.get("duration")),
        "agent": text_of(info.get("agent")) or None,
        "output": short(mapping_of(info.get("final_results")).get("output")),
    }
