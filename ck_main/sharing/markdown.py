"""Summarize a run as Markdown that shows model and page text inertly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ck_main.sharing.frames import one_line
from ck_main.sharing.masking import SharedSecrets
from ck_main.viewer.runs.outline import SessionOutline, text_of
from ck_main.viewer.runs.run_reader import RunReader
from ck_main.viewer.runs.run_view import run_json, tree

MAX_STEPS = 200
"""Steps of one session that the summary lists."""
_TEXT_CHARS = 4000
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$#]|^[-+=]|:(?=\S))")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_MENTION = re.compile(r"(@|#)(?=\w)")
_WWW = re.compile(r"(?i)\b(www)\.")
_FENCE = re.compile(r"`{3,}")


def summary_of(reader: RunReader, image: str = "") -> str:
    """Return the summary: task, answer, score, costs, and one line for each step.

    Args:
        reader: the run.
        image: address of a picture of the run to show, relative to the summary; empty for none.
    """
    secrets = SharedSecrets()
    run = secrets.masked(run_json(reader))
    parts = [f"# {plain(run['id'] or 'Run')}", *_facts(run)]
    if image:
        parts.append(f"![The steps in the browser]({_address(image)})")
    parts += ["## Task", _block(run["task"])]
    if run["output"] is not None:
        parts += ["## Answer", _block(run["output"])]
    if run["log"]:
        parts += ["### How it was found", _block(run["log"])]
    if run["message"]:
        parts += ["### End", _block(run["message"])]
    parts.append("## Steps")
    for session in tree(reader.outline):
        parts += _session(session, secrets)
    return "\n\n".join(parts) + "\n"


def plain(text: Any) -> str:
    """Return text as one line of Markdown that shows exactly this text: no markup, no links."""
    line = _SPECIAL.sub(r"\\\1", one_line(text_of(text)))
    line = _NUMBERED.sub(r"\1\\\2", line)
    line = _WWW.sub(r"\1\\.", line)
    # GitHub links `@name`, `#1` and addresses of mail unless an invisible character separates them
    return _MENTION.sub("\\1\u2060", line)


def _facts(run: Mapping[str, Any]) -> Iterator[str]:
    sessions = run["sessions"]
    tokens = sum(s["tokens"] for s in sessions)
    prompt = sum(s["prompt_tokens"] for s in sessions)
    cached = sum(s["cached_tokens"] for s in sessions)
    money = [s["money"] for s in sessions if s["money"] is not None]
    seconds = sessions[0]["seconds"] if sessions else None
    status = f"{run['status']} ({run['stop_reason']})" if run["stop_reason"] else run["status"]
    share = f" ({cached / prompt:.0%} of the prompt cached)" if cached and prompt else ""
    rows = {
        "Status": status,
        "Score": run["score"],
        "Right answer": run["answer"],
        "Steps": sum(len(s["steps"]) for s in sessions),
        "Model calls": sum(s["calls"] for s in sessions),
        "Tokens": f"{tokens:,}{share}",
        "Cost": f"{round(sum(money), 4):g} USD" if money else None,
        "Time": None if seconds is None else f"{seconds:.1f} s",
    }
    lines = [f"| {name} | {plain(v)} |" for name, v in rows.items() if v is not None]
    yield "\n".join(["| | |", "|---|---|", *lines])


def _session(session: SessionOutline, secrets: SharedSecrets) -> Iterator[str]:
    head = " / ".join(map(plain, session.path)) or plain(session.agent)
    level = "###" if len(session.path) < 2 else "####"
    yield f"{level} {head}"
    if len(session.path) > 1:
        yield f"Task: {plain(secrets.masked(session.task))}"
    if not session.steps:
        return
    lines = []
    for step in session.steps[:MAX_STEPS]:
        title = plain(secrets.masked(step.title)) or "(no text)"
        notes = [f"{step.calls} call{'s' if step.calls != 1 else ''}"] if step.calls else []
        notes += ["error"] if step.error else []
        if step.start is not None and step.end is not None:
            notes.append(f"{step.end - step.start:.1f} s")
        lines.append(f"{step.i}. {title}" + (f" ({', '.join(notes)})" if notes else ""))
    if len(session.steps) > MAX_STEPS:
        lines.append(f"\n{len(session.steps) - MAX_STEPS} more steps are not listed.")
    yield "\n".join(lines)


def _block(text: Any) -> str:
    """Return text as a block of code, which shows it as it is."""
    shown = text_of(text)
    if len(shown) > _TEXT_CHARS:
        shown = f"{shown[:_TEXT_CHARS]}\n(shortened)"
    shown = "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in shown)
    longest = max((len(f) for f in _FENCE.findall(shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def _address(name: str) -> str:
    """Return a relative address for an image."""
    return "<" + re.sub(r"[<>\\\x00-\x1f]", "", name) + ">"
