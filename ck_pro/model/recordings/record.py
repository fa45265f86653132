"""`record:FILE:TARGET`: forward calls to another back end, and append its replies to a file."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ck_pro.exceptions import ContentFiltered, ReplayError
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.recordings.elements import normalise, template_reply
from ck_pro.model.recordings.recording import (
    KEY_FIELDS,
    Recording,
    digest_of,
    each_text,
    filtered_row,
    key_of,
    line_of,
    reply_key,
)
from ck_pro.model.types import RawReply, split_reasoning

_WRITING = threading.Lock()
_known: dict[Path, tuple[tuple[int, int], Recording]] = {}
"""Cached content of written files; size and modification time show whether it is current."""


class RecordBackend(Backend):
    """Forward calls to another back end and record its replies.

    Args:
        path: the recording; created or appended to.
        inner: the back end that generates the replies.
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
        try:
            target = self.path if self.path.exists() else folder
            writable = folder.is_dir() and os.access(target, os.W_OK)
        except OSError as e:  # such as a name that is too long
            raise ReplayError(f"record: cannot write {self.path}: {e.strerror}") from None
        if not writable:
            raise ReplayError(f"record: cannot write {self.path}: no such folder, or no permission")

    def complete(self, request: ChatRequest) -> RawReply:
        try:
            reply = self.inner.complete(request)
        except ContentFiltered as e:
            self._save(request, {"reply": "", **filtered_row(e)})
            raise
        text, inline = split_reasoning(reply.text)
        reasoning = "\n".join(r for r in (reply.reasoning, inline) if r)

        def template(text: str) -> str:
            return template_reply(text, request.messages, request.context)

        self._save(request, {"reply": template(text), **_optional(reply, reasoning, template)})
        return reply

    def _save(self, request: ChatRequest, fields: Mapping[str, Any]) -> None:
        context = request.context
        instructions = normalise(context.instructions, context.workdir)
        key = reply_key(request.messages, context)
        row: dict[str, Any] = dict(zip(KEY_FIELDS, key, strict=True))
        if not row["messages"]:
            del row["messages"]
        row.update(instructions=digest_of(instructions), **fields)
        save_reply(self.path, {"instructions": digest_of(instructions), "text": instructions}, row)


def _optional(reply: RawReply, reasoning: str, template: Callable[[str], str]) -> dict[str, Any]:
    """Return the non-empty fields of a line other than the reply's text."""
    values = {
        "reasoning": reasoning,
        "tool_calls": each_text(reply.tool_calls, template),
        "items": each_text(reply.items, template),
        "finish_reason": "" if reply.finish_reason == "stop" else reply.finish_reason,
        "usage": reply.usage.to_dict() if reply.usage is not None else None,
    }
    return {k: v for k, v in values.items() if v}


def save_reply(path: Path, text: dict[str, Any], row: dict[str, Any]) -> None:
    """Add a reply to a recording, or replace the reply with the same key.

    Args:
        path: the recording; created if missing.
        text: the line of the instructions; written once per recording.
        row: the line of the reply.

    Raises:
        ReplayError: the file cannot be read or written.
    """
    path = path.resolve()  # follow links, since `_replace` would replace the link
    with _WRITING:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            recording = _content(path)
            lines = [] if text["instructions"] in recording.texts else [text]
            exists = key_of(row) in recording.replies
            recording.add(text)
            recording.add(row)
            if exists:
                _replace(path, "".join(recording.lines()))
            else:
                _append(path, "".join(map(line_of, [*lines, row])))
            _known[path] = _signature(path), recording
        except OSError as e:
            _known.pop(path, None)
            raise ReplayError(f"record: cannot write {path}: {e.strerror}") from None


def _content(path: Path) -> Recording:
    if not path.exists():
        return Recording(path)
    signature, recording = _known.get(path, ((0, 0), None))
    if recording is None or signature != _signature(path):  # changed by another writer
        return Recording.load(path)
    return recording


def _signature(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _append(path: Path, lines: str) -> None:
    """Append lines; if the disk is full, append nothing."""
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":  # edited by hand
                lines = "\n" + lines
        try:
            file.write(lines.encode("utf-8"))
            file.flush()
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), end)
            raise


def _replace(path: Path, content: str) -> None:
    """Replace a file atomically."""
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
