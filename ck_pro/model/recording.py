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

import contextlib
import difflib
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ContentFiltered, ReplayError
from ck_pro.model.backend import Backend, ChatRequest, FilteredReply
from ck_pro.model.elements import message_text, template_reply
from ck_pro.model.normalise import normalise, normalise_task
from ck_pro.model.reasoning import split_reasoning
from ck_pro.model.types import CallContext, Message, RawReply, Usage

Key = tuple[str, str, int, str, str]
"""Agent path, phase, step, normalised task, hash of the messages (tools' calls only)."""
_KEY_FIELDS = ("agent", "phase", "step", "task", "messages")
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
        agent, phase, step, task, digest = (row.get(f, "") for f in _KEY_FIELDS)
        if not isinstance(row["reply"], str):
            raise TypeError("'reply' is not a text")
        self.replies[(str(agent), str(phase), int(step), str(task), str(digest))] = row

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
                out.append(_line({"instructions": digest, "text": self.texts[digest]}))
            out.append(_line(row))
        return out


def _line(row: Mapping[str, Any]) -> str:
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


class RecordBackend(Backend):
    """Answers with another target, and writes its replies down.

    Args:
        path: the recording; made when missing, added to when there.
        inner: what really answers.
    """

    def __init__(self, path: str | Path, inner: Backend):
        self.path = Path(path).expanduser()
        self.inner = inner
        self.free, self.remote = inner.free, inner.remote

    def describe(self) -> str:
        return f"recording {self.path} from: {self.inner.describe()}"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return self.inner.model_name(params)

    def check(self) -> None:
        self.inner.check()
        folder = self.path.parent
        target = self.path if self.path.exists() else folder
        if not folder.is_dir() or not os.access(target, os.W_OK):
            raise ReplayError(f"record: cannot write {self.path}: no such folder, or not allowed")

    def complete(self, request: ChatRequest) -> RawReply:
        try:
            reply = self.inner.complete(request)
        except ContentFiltered as e:
            self._keep(request, {"reply": "", **filtered_row(e)})
            raise
        text, inline = split_reasoning(reply.text)
        reasoning = "\n".join(r for r in (reply.reasoning, inline) if r)

        def template(text: str) -> str:
            return template_reply(text, request.messages, request.context)

        self._keep(request, {"reply": template(text), **_optional(reply, reasoning, template)})
        return reply

    def _keep(self, request: ChatRequest, said: Mapping[str, Any]) -> None:
        context = request.context
        instructions = normalise(context.instructions, context.workdir)
        key = reply_key(request.messages, context)
        row: dict[str, Any] = dict(zip(_KEY_FIELDS, key, strict=True))
        if not row["messages"]:
            del row["messages"]
        row.update(instructions=digest_of(instructions), **said)
        _save(self.path, {"instructions": digest_of(instructions), "text": instructions}, row)


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


def _optional(reply: RawReply, reasoning: str, template: Callable[[str], str]) -> dict[str, Any]:
    """What a line holds beside the reply's text, where there is any."""
    values = {
        "reasoning": reasoning,
        "tool_calls": each_text(reply.tool_calls, template),
        "items": each_text(reply.items, template),
        "finish_reason": "" if reply.finish_reason == "stop" else reply.finish_reason,
        "usage": reply.usage.to_dict() if reply.usage is not None else None,
    }
    return {k: v for k, v in values.items() if v}


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """JSON data with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {k: each_text(v, change) for k, v in value.items()}
    if isinstance(value, list):
        return [each_text(v, change) for v in value]
    return value


_WRITING = threading.Lock()


def _save(path: Path, text: dict[str, Any], row: dict[str, Any]) -> None:
    """Add a reply to a recording, in the place of an older one with its key.

    Raises:
        ReplayError: the file cannot be read or written.
    """
    path = path.resolve()  # through a link, into the file itself
    with _WRITING:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            recording = Recording.load(path) if path.exists() else Recording(path)
            recording.add(text)
            recording.add(row)
            _replace(path, "".join(recording.lines()))
        except OSError as e:
            raise ReplayError(f"record: cannot write {path}: {e.strerror}") from None


def _replace(path: Path, content: str) -> None:
    """Write a file whole, or leave the old one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
