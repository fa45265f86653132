"""Sessions and steps as inert HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ck_pro import markup
from ck_pro.session.observed import observation_text
from ck_pro.session.rows import ALL
from ck_pro.session.status import Status

if TYPE_CHECKING:
    from ck_pro.session.session import AgentSession

MAX_STEPS = 100
"""Number of steps that are shown, half of them from each end."""
_MAX_DEPTH = 6
_TITLE_CHARS = 110


def session_html(session: AgentSession, depth: int = 0) -> str:
    """Return a session with its steps and the sessions of its sub-agents.

    Args:
        session: the session.
        depth: number of sessions around it.
    """
    badges = [_status_badge(session.status.value, session.stop_reason)]
    total = session.call_stat()[ALL]
    steps = len(session.steps)
    badges.append(markup.badge(f"{steps} step" if steps == 1 else f"{steps} steps"))
    badges.append(markup.badge(f"{total['llm_call']:,} calls, {total['total_tokens']:,} tokens"))
    parts = [markup.block(session.task, "task")]
    parts += [_step_of(session, n, depth) for n in shown_steps(steps)]
    results = session.final_results or {"output": "", "log": ""}
    parts.append(markup.block(results["output"], "answer"))
    parts.append(markup.block(results["log"], "report"))
    if session.message:
        parts.append(markup.block(session.message, "message"))
    return markup.box(session.agent or "session", badges, "".join(parts))


def shown_steps(number: int) -> list[int]:
    """Return the indices of the steps to show; -1 stands for omitted ones."""
    if number <= MAX_STEPS:
        return list(range(number))
    half = MAX_STEPS // 2
    return [*range(half), -1, *range(number - half, number)]


def _step_of(session: AgentSession, index: int, depth: int) -> str:
    if index < 0:
        return markup.label(f"... {len(session.steps) - MAX_STEPS:,} steps are omitted ...")
    subs = session.sub_sessions[index] if index < len(session.sub_sessions) else []
    children = [session.children[sid] for sid in subs if sid in session.children]
    nested = "".join(
        session_html(child, depth + 1) if depth < _MAX_DEPTH else markup.badge(child.agent)
        for child in children
    )
    return step_html(session.steps[index], nested=nested, number=index)


def step_html(step: Mapping[str, Any], *, nested: str = "", number: int | None = None) -> str:
    """Return a step: thought, code, observation and error, folded under its first line.

    Args:
        step: a step of a session or of a row.
        nested: HTML of the sub-agents' sessions.
        number: its index; default: the one that the step has.
    """
    action, plan = _part(step, "action"), _part(step, "plan")
    error = action.get("error")
    error = error.get("error") if isinstance(error, Mapping) else error
    marks = markup.badge(error, "bad") if error else ""
    if action.get("unreadable"):
        marks += markup.badge("unreadable reply", "bad")
    parts = [
        markup.block(plan.get("thought") or "", "plan"),
        markup.block(action.get("thought") or "", "thought"),
        markup.block(action.get("code") or "", "code"),
        nested,
    ]
    seen = action.get("observation")
    if seen not in (None, ""):
        parts.append(markup.block(observation_text(_plain(seen)), "observation"))
    index = step.get("step_idx") if number is None else number
    return markup.folded(f"Step {index}: {_title(action)}", "".join(parts), mark=marks)


def _part(step: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = step.get(name)
    return part if isinstance(part, Mapping) else {}


def _plain(observation: Any) -> Any:
    """Replace results of sub-agents by what the model read of them."""
    if isinstance(observation, Mapping):
        return observation.get("repr") or str(observation.get("output") or "")
    if isinstance(observation, list):
        return [_plain(entry) for entry in observation]
    return observation


def _title(action: Mapping[str, Any]) -> str:
    for name in ("thought", "code"):
        line = next((x for x in str(action.get(name) or "").splitlines() if x.strip()), "")
        if line:
            return line if len(line) <= _TITLE_CHARS else f"{line[:_TITLE_CHARS]}..."
    return "(no action)"


def _status_badge(status: str, reason: Any) -> str:
    kind = "good" if status == Status.DONE else "" if status == Status.IN_PROGRESS else "bad"
    detail = f": {reason}" if reason and str(reason) != "finished" else ""
    return markup.badge(f"{status}{detail}", kind)
