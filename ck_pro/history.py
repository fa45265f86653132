"""The read-only projections of a session's log that prompts show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.session import AgentSession

_MAX_FILES = 50
_IMAGE_SIZE = 4000
_OBJECT_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def messages(agent: Any, session: AgentSession) -> list[dict[str, Any]]:
    """The finished steps inside the window as chat messages, oldest first.

    Args:
        agent: gives `language`, `recent_steps`, `history_chars`, `observation_chars`.
    """
    done = [s for s in session.steps if "observation" in s["action"] and _finished(session, s)]
    shown = [
        agent.language.history(
            s, shortened(observation_text(s["action"]["observation"]), agent.observation_chars)
        )
        for s in done
    ]
    first = _window_start(shown, agent.recent_steps, agent.history_chars)
    window = [m for step in shown[first:] for m in step]
    if first:
        left_out = {"role": "user", "content": f"(Steps 0 to {first - 1} are not shown.)"}
        return [left_out, *window]
    return window


def _finished(session: AgentSession, step: Mapping[str, Any]) -> bool:
    """Whether a step has its observation: all but the one under way."""
    return step is not session.steps[-1] or bool(step["action"]["observation"])


def _window_start(
    steps: Sequence[Sequence[Mapping[str, Any]]], recent: int | None, budget: int
) -> int:
    """Index of the first step shown.

    Without an explicit number the window grows to `budget` characters and then drops its older
    half at once: prompts stay prefixes of each other but for that rare jump.
    """
    if recent is not None:
        return max(0, len(steps) - recent)
    first = size = 0
    sizes = [sum(_size(m["content"]) for m in step) for step in steps]
    for n, grown in enumerate(sizes):
        size += grown
        while size > budget and first < n:
            while size > budget // 2 and first < n:
                size -= sizes[first]
                first += 1
    return first


def _size(content: str | Sequence[Mapping[str, Any]]) -> int:
    """Characters of a message's content; an image counts as so many as cost about as much."""
    if isinstance(content, str):
        return len(content)
    return sum(len(p["text"]) if p["type"] == "text" else _IMAGE_SIZE for p in content)


def observation_text(value: Any) -> str:
    """An observation as a model reads it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(observation_text(v) for v in value)
    if isinstance(value, Mapping) and "repr" in value:
        return str(value["repr"])
    return json.dumps(value, ensure_ascii=False, default=str)


def shortened(text: str, limit: int) -> str:
    """`text` with its middle cut out, and said so, if it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def repeats(session: AgentSession) -> int:
    """How often the last steps repeat: the same code, world and observation, in a cycle of up to
    three steps; 1 when they do not, 0 when there are none."""
    done = [_signature(s["action"]) for s in session.steps if s["action"]["observation"]]
    if not done:
        return 0
    return max((_in_cycle(done, period) + period) // period for period in (1, 2, 3))


def _in_cycle(done: Sequence[tuple[str, ...]], period: int) -> int:
    """How many of the last entries equal the one `period` before them."""
    count = 0
    while count + period < len(done) and done[-1 - count] == done[-1 - count - period]:
        count += 1
    return count


def _signature(action: Mapping[str, Any]) -> tuple[str, ...]:
    world = [str(v) for k, v in sorted(action.items()) if k.endswith("state_before")]
    seen = _OBJECT_ADDRESS.sub("0x", observation_text(action["observation"]))
    return (" ".join(action["code"].split()), seen, *world)


def notices(session: AgentSession) -> list[str]:
    """What the model should be told of its own course: repeated steps, no progress."""
    out = []
    same = repeats(session)
    if same >= 2:
        out.append(
            f"You have done the same thing {same} times and seen the same result. "
            "Doing it again will not help: try something else, or stop and say why."
        )
    elif _same_code(session) >= 4:
        out.append(f"The last {_same_code(session)} steps ran the same code. Does it get further?")
    elif _failed_in_a_row(session) >= 3:
        out.append(
            f"The last {_failed_in_a_row(session)} steps all ended in an error. "
            "Take a smaller step, or another way."
        )
    return out


def _same_code(session: AgentSession) -> int:
    done = [(s["action"]["code"],) for s in session.steps if s["action"]["observation"]]
    return _in_cycle(done, 1) + 1 if done and done[-1][0] else 0


def _failed_in_a_row(session: AgentSession) -> int:
    count = 0
    for step in reversed(session.steps):
        if step["action"]["observation"] and "error" not in step["action"]:
            break
        count += "error" in step["action"]
    return count


def files_in(folder: Path) -> list[str]:
    """Names of the files in a working directory, relative, sorted; at most 50."""
    if not folder.is_dir():
        return []
    found = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    extra = [f"(and {len(found) - _MAX_FILES} more)"] if len(found) > _MAX_FILES else []
    return found[:_MAX_FILES] + extra
