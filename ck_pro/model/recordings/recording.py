"""Recordings: replies in a file, for demos, tests and debugging, and `record:FILE:TARGET`.

The file has one JSON object per line. Replies:

```
{"agent": "ck_agent/web_agent", "phase": "action", "step": 0, "task": "<normalised>",
 "instructions": "sha256:...", "reply": "<with references>", "reasoning": "", "usage": {...}}
```

and beside them `messages` (a hash of the prompt) for calls made by tools, which have several per
step, `tool_calls` and `items` where there are any, and `filtered` (type and text of the error) in
place of a reply that a content filter stopped, after which the agent goes on. Agent, phase, step,
task and messages are the key; of two lines with one key the last counts. Each text of instructions
stands in a line of its own, `{"instructions": "sha256:...", "text": "..."}`, so that a difference
can be shown.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ContentFiltered, ReplayError
from ck_pro.model.backends.backend import ChatRequest, FilteredReply
from ck_pro.model.recordings.elements import message_text
from ck_pro.model.recordings.normalise import normalise, normalise_task
from ck_pro.model.types import CallContext, Message, Usage

Key = tuple[str, str, int, str, str]
"""Agent path, phase, step, normalised task, hash of the messages (tools' calls only)."""
KEY_FIELDS = ("agent", "phase", "step", "task", "messages")
"""What a line calls the parts of its key."""
_DIFF_LINES = 6


def reply_key(messages: Sequence[Message], context: CallContext) -> Key:
    """What a call is found by."""
    digest = ""
    if context.phase.startswith("tool:"):
        texts = [f"{m.get('role')}: {message_text(m)}" for m in messages]
        digest = digest_of(normalise("\n".join(texts), context.workdir))
    task = normalise_task(context.task, context.workdir)
    return (context.agent, context.phase, context.step, task, digest)


def digest_of(text: str) -> str:
    """A text's hash, as recordings write it."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Recording:
    """The content of a recording.

    Attributes:
        replies: by key, as read from the lines.
        texts: the instructions by their hash.
    """

    def __init__(self, path: Path):
        self.path = path
        self.replies: dict[Key, dict[str, Any]] = {}
        self.texts: dict[str, str] = {}

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read a recording.

        Raises:
            ReplayError: the file cannot be read, or a line has not the form.
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
        """Take one line of the file in; a later one with the same key wins."""
        if "reply" not in row:
            self.texts[str(row["instructions"])] = str(row["text"])
            return
        if not isinstance(row["reply"], str):
            raise TypeError("'reply' is not a text")
        self.replies[key_of(row)] = row

    def find(self, request: ChatRequest) -> dict[str, Any]:
        """The recorded line for a request.

        Raises:
            ReplayError: there is none.
        """
        key = reply_key(request.messages, request.context)
        row = self.replies.get(key)
        if row is None:
            raise ReplayError(_missing(self, key))
        return row

    def changed(self, row: Mapping[str, Any], request: ChatRequest) -> str:
        """How the prompt's instructions differ from the recorded ones; "" where they do not."""
        now = normalise(request.context.instructions, request.context.workdir)
        recorded = row.get("instructions", "")
        if recorded == digest_of(now):
            return ""
        if recorded in self.texts:
            return f"the prompt has changed: {difference(self.texts[recorded], now)}"
        return "it does not say which instructions it answered"

    def lines(self) -> list[str]:
        """The file's lines: each text of instructions before the first reply that uses it."""
        out, said = [], set()
        for row in self.replies.values():
            digest = row.get("instructions", "")
            if digest in self.texts and digest not in said:
                said.add(digest)
                out.append(line_of({"instructions": digest, "text": self.texts[digest]}))
            out.append(line_of(row))
        return out


def key_of(row: Mapping[str, Any]) -> Key:
    """What the line of a reply is found by."""
    agent, phase, step, task, digest = (row.get(f, "") for f in KEY_FIELDS)
    return str(agent), str(phase), int(step), str(task), str(digest)


def line_of(row: Mapping[str, Any]) -> str:
    """A line of the file, with its end."""
    text = json.dumps(row, ensure_ascii=False) + "\n"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair, as a reply that was cut off may end
        return json.dumps(row) + "\n"
    return text


def difference(recorded: str, now: str) -> str:
    """The first lines in which two texts differ."""
    diff = difflib.unified_diff(recorded.split("\n"), now.split("\n"), "recorded", "now", "", "", 0)
    lines = [line[:160] for line in diff]
    more = f"\n... and {len(lines) - _DIFF_LINES} lines more" if len(lines) > _DIFF_LINES else ""
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
    """What comes nearest to a key that is not known, as the end of a line for a person."""
    if not known:
        return "; it is empty"
    nearest = max(known, key=lambda k: _closeness(k, key))
    n_agent, n_phase, n_step, n_task, _ = nearest
    other = "the same task" if n_task == key[3] else f"task '{' '.join(n_task.split())[:200]}'"
    if nearest[:4] == key[:4]:
        return " with these messages (it has one with others)"
    return f"; the nearest is {n_agent}, {n_phase}, step {n_step}, {other}"


def _closeness(known: Key, wanted: Key) -> tuple[bool, float, bool, int]:
    likeness = difflib.SequenceMatcher(None, known[3][:500], wanted[3][:500]).ratio()
    return known[0] == wanted[0], likeness, known[1] == wanted[1], -abs(known[2] - wanted[2])


_FILTERED = {"ContentFiltered": ContentFiltered, "FilteredReply": FilteredReply}


def is_filtered(error: str) -> bool:
    """Whether the type and text of an error say that a content filter stopped a call."""
    return error.partition(": ")[0] in _FILTERED


def filtered_row(error: ContentFiltered) -> dict[str, Any]:
    """What a line holds in place of a reply that was stopped."""
    usage = getattr(error, "usage", None)
    told = {"filtered": f"{type(error).__name__}: {error}"}
    return told if usage is None else {**told, "usage": usage.to_dict()}


def raise_filtered(row: Mapping[str, Any]) -> None:
    """Raise the error that a line has in place of a reply; return if it has a reply."""
    if not is_filtered(said := str(row.get("filtered", ""))):
        return
    name, _, text = said.partition(": ")
    if name == "FilteredReply":
        usage = row.get("usage")
        raise FilteredReply(text, Usage(**usage) if isinstance(usage, dict) else None)
    raise ContentFiltered(text)


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """JSON data with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {k: each_text(v, change) for k, v in value.items()}
    if isinstance(value, list):
        return [each_text(v, change) for v in value]
    return value
