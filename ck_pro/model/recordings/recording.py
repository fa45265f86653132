"""Recordings: files of replies, for demos, tests and debugging.

A recording has one JSON object per line. A reply:

```
{"agent": "ck_agent/web_agent", "phase": "action", "step": 0, "task": "<normalised>",
 "instructions": "sha256:...", "reply": "<with references>", "reasoning": "", "usage": {...}}
```

Optional fields: `messages` (a hash of the prompt) for calls of tools, which may make several per
step; `tool_calls` and `items`; `filtered` (type and text of the error) for a reply that a content
filter stopped. Agent, phase, step, task and messages are the key; the last line with a key counts.
Each text of instructions has a separate line, `{"instructions": "sha256:...", "text": "..."}`, so
that differences can be shown.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ContentFiltered, ReplayError
from ck_pro.json_lines import json_line
from ck_pro.model.backends.backend import ChatRequest, FilteredReply
from ck_pro.model.recordings.elements import message_text, normalise, normalise_task
from ck_pro.model.types import CallContext, Message, Usage

Key = tuple[str, str, int, str, str]
"""Agent path, phase, step, normalised task, hash of the messages (tools' calls only)."""
KEY_FIELDS = ("agent", "phase", "step", "task", "messages")
"""Fields of a line that form its key."""
_DIFF_LINES = 6


def reply_key(messages: Sequence[Message], context: CallContext) -> Key:
    """Return the key of a call."""
    digest = ""
    if context.phase.startswith("tool:"):
        texts = [f"{m.get('role')}: {message_text(m)}" for m in messages]
        digest = digest_of(normalise("\n".join(texts), context.workdir))
    task = normalise_task(context.task, context.workdir)
    return (context.agent, context.phase, context.step, task, digest)


def digest_of(text: str) -> str:
    """Return a text's hash as recordings write it."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Recording:
    """The content of a recording.

    Attributes:
        replies: lines of replies, by key.
        texts: texts of instructions, by hash.
    """

    def __init__(self, path: Path):
        self.path = path
        self.replies: dict[Key, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a recording.

        Raises:
            ReplayError: the file cannot be read, or a line is malformed.
        """
        recording = cls(path)
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as e:
            reason = e.strerror if isinstance(e, OSError) else "not UTF-8 text"
            raise ReplayError(f"replay: cannot read the recording {path}: {reason}") from None
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    recording.add(json.loads(line))
                except (ValueError, TypeError, KeyError, AttributeError) as e:
                    raise ReplayError(
                        f"replay: {path}, line {number}: not a recorded reply ({e!r})"
                    ) from None
        return recording

    def add(self, row: dict[str, Any]) -> None:
        """Add one line of the file; it replaces a line with the same key."""
        if "reply" not in row:
            self.texts[str(row["instructions"])] = str(row["text"])
            return
        if not isinstance(row["reply"], str):
            raise TypeError("'reply' is not a str")
        self.replies[key_of(row)] = row

    def find(self, request: ChatRequest) -> dict[str, Any]:
        """Return the recorded line for a request.

        Raises:
            ReplayError: the recording has none.
        """
        key = reply_key(request.messages, request.context)
        row = self.replies.get(key)
        if row is None:
            raise ReplayError(_missing(self, key))
        return row

    def changed(self, row: Mapping[str, Any], request: ChatRequest) -> str:
        """Describe how the prompt's instructions differ from the recorded ones; "" if equal."""
        now = normalise(request.context.instructions, request.context.workdir)
        recorded = row.get("instructions", "")
        if recorded == digest_of(now):
            return ""
        if recorded in self.texts:
            return f"the prompt has changed: {difference(self.texts[recorded], now)}"
        return "the recording does not contain its instructions"

    def lines(self) -> list[str]:
        """Return the file's lines, with each text of instructions before its first reply."""
        out, written = [], set()
        for row in self.replies.values():
            digest = row.get("instructions", "")
            if digest in self.texts and digest not in written:
                written.add(digest)
                out.append(line_of({"instructions": digest, "text": self.texts[digest]}))
            out.append(line_of(row))
        return out


def key_of(row: Mapping[str, Any]) -> Key:
    """Return the key of a line."""
    agent, phase, step, task, digest = (row.get(f, "") for f in KEY_FIELDS)
    return str(agent), str(phase), int(step), str(task), str(digest)


def line_of(row: Mapping[str, Any]) -> str:
    """Return a line of the file, with its end."""
    return json_line(row).decode()


def difference(recorded: str, now: str) -> str:
    """Return the first lines that differ between two texts."""
    diff = difflib.unified_diff(recorded.split("\n"), now.split("\n"), "recorded", "now", "", "", 0)
    lines = [line[:160] for line in diff]
    more = f"\n... and {len(lines) - _DIFF_LINES} more lines" if len(lines) > _DIFF_LINES else ""
    return "\n" + "\n".join(lines[2 : _DIFF_LINES + 2]) + more + "\n"


def _missing(recording: Recording, key: Key) -> str:
    agent, phase, step, task, _ = key
    shown = task if len(task) <= 200 else task[:200] + "..."
    line = (
        f"replay: {recording.path} has no reply for {agent}, {phase}, step {step}, "
        f"task '{' '.join(shown.split())}'"
    )
    return line + nearest_of(list(recording.replies), key)


def nearest_of(known: Sequence[Key], key: Key) -> str:
    """Describe the nearest key to an unknown one, as the end of an error message."""
    if not known:
        return "; the recording is empty"
    nearest = max(known, key=lambda k: _closeness(k, key))
    n_agent, n_phase, n_step, n_task, _ = nearest
    other = "the same task" if n_task == key[3] else f"task '{' '.join(n_task.split())[:200]}'"
    if nearest[:4] == key[:4]:
        return " with these messages (it has one with other messages)"
    return f"; the nearest is {n_agent}, {n_phase}, step {n_step}, {other}"


def _closeness(known: Key, key: Key) -> tuple[bool, float, bool, int]:
    likeness = difflib.SequenceMatcher(None, known[3][:500], key[3][:500]).ratio()
    return known[0] == key[0], likeness, known[1] == key[1], -abs(known[2] - key[2])


_FILTERED = {"ContentFiltered": ContentFiltered, "FilteredReply": FilteredReply}


def is_filter_error(error: str) -> bool:
    """Return whether a recorded error reports that a content filter stopped a call."""
    return error.partition(": ")[0] in _FILTERED


def filtered_row(error: ContentFiltered) -> dict[str, Any]:
    """Return the fields of a line for a reply that a content filter stopped."""
    usage = getattr(error, "usage", None)
    row = {"filtered": f"{type(error).__name__}: {error}"}
    return row if usage is None else {**row, "usage": usage.to_dict()}


def raise_filtered(row: Mapping[str, Any]) -> None:
    """Raise the recorded error of a content filter, if the line has one."""
    if not is_filter_error(error := str(row.get("filtered", ""))):
        return
    name, _, text = error.partition(": ")
    if name == "FilteredReply":
        usage = row.get("usage")
        raise FilteredReply(text, Usage(**usage) if isinstance(usage, dict) else None)
    raise ContentFiltered(text)


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON data with `change` applied to every text."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {k: each_text(v, change) for k, v in value.items()}
    if isinstance(value, list):
        return [each_text(v, change) for v in value]
    return value
