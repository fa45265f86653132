"""Read a journal in parts, also while it grows."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from ck_main.viewer.runs.outline import ModelCall, Outline
from ck_pro.events import EventKind
from ck_pro.exceptions import JournalError
from ck_pro.journal import COMPRESSED_FILE, EVENTS_FILE, BlobReader
from ck_pro.journal.packed import open_events
from ck_pro.journal.prompts import HashDecoder

_HEAD = re.compile(
    rb'\{"kind":"(\w+)","sid":"([^"\\]*)","parent":(null|"[^"\\]*"),"i":(null|\d+),'
    rb'"phase":(null|"[^"\\]*"),"data":'
)
_TAIL = re.compile(rb',"time":([0-9.e+-]+)(?:,"duration":[0-9.e+-]+)?\}\n$')
_MESSAGE = re.compile(rb'\{"kind":"message","sid":"[^"\\]*","data":\{"hash":"([0-9a-f]{32})",')
_URL = re.compile(rb'"(?:step_url|target_url)":"((?:[^"\\]|\\.){0,2000})"')
_SKIMMED = {b"world", b"files"}
_LENGTH_BITS = 40
_MAX_PROBLEMS = 20
_RECENT = 16


def _packed(at: int, length: int) -> int:
    return at << _LENGTH_BITS | length


class JournalRun:
    """A journal as a `RunReader`.

    Args:
        folder: of the journal.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._blobs = BlobReader(folder)
        self._files = ExitStack()
        self._reset()

    def _reset(self) -> None:
        self._files.close()
        self.outline = Outline()
        self._file: BinaryIO | None = None
        self._identity: tuple[Any, ...] = ()
        self._at = 0
        self._line = 0
        self._messages: dict[bytes, int] = {}
        self._recent: dict[ModelCall, list[str]] = {}  # hashes of the last calls that were read

    @property
    def size(self) -> int:
        """See `RunReader`."""
        steps = sum(len(session.steps) for session in self.outline.sessions.values())
        return 20_000 + 200 * len(self._messages) + 4_000 * steps

    def close(self) -> None:
        """Close its file."""
        self._files.close()
        self._file = None

    def refresh(self) -> bool:
        """See `RunReader`. A truncated or replaced journal is read again from its start."""
        try:
            identity, size = self._stat()
            if self._file is None or identity != self._identity or size < self._at:
                self._reset()
                self._file = self._files.enter_context(open_events(self.folder, seekable=True))
                self._identity = identity
            return self._read_new()
        except (JournalError, OSError) as e:
            text = str(e)
            if text not in self.outline.problems:
                self.outline.problems.append(text)
            return False

    def _stat(self) -> tuple[tuple[Any, ...], int]:
        """Return what identifies the file, and its size; a compressed journal does not grow."""
        try:
            found = (self.folder / EVENTS_FILE).stat()
        except FileNotFoundError:
            found = (self.folder / COMPRESSED_FILE).stat()
            return (found.st_dev, found.st_ino, found.st_mtime_ns, "packed"), self._at
        return (found.st_dev, found.st_ino), found.st_size

    def _read_new(self) -> bool:
        assert self._file is not None
        self._file.seek(self._at)
        before = self._at
        for line in self._file:
            if not line.endswith(b"\n"):
                break  # the writer is writing it, or was killed
            self._line += 1
            self._take(line, _packed(self._at, len(line)))
            self._at += len(line)
        return self._at > before

    def _take(self, line: bytes, place: int) -> None:
        message = _MESSAGE.match(line)
        if message is not None:
            self._messages[message[1]] = place
            return
        event = _skimmed(line)
        if event is None:
            try:
                event = json.loads(line)
                if not isinstance(event, dict):
                    raise ValueError("not an event")
            except (ValueError, RecursionError) as e:
                if len(self.outline.problems) < _MAX_PROBLEMS:
                    where = f"{self.folder / EVENTS_FILE}, line {self._line}"
                    self.outline.problems.append(f"{where}: not JSON: {e}")
                return
        if event.get("kind") == EventKind.MESSAGE:
            data = event.get("data")
            if isinstance(data, dict):
                self._messages[str(data.get("hash")).encode("utf-8", "replace")] = place
            return
        self.outline.apply(event, place)

    # --- parts -----------------------------------------------------------------------------

    def _event(self, place: int) -> Mapping[str, Any]:
        """Read the event at a place; an empty one if it cannot be read."""
        line = self._bytes(place)
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return {}
        return event if isinstance(event, dict) else {}

    def _bytes(self, place: int) -> bytes:
        if self._file is None:
            return b""
        at, length = place >> _LENGTH_BITS, place & ((1 << _LENGTH_BITS) - 1)
        return os.pread(self._file.fileno(), length, at)

    def events(self, sid: str, i: int) -> Sequence[Mapping[str, Any]]:
        """See `RunReader`."""
        step = self.outline.step(sid, i)
        return [self._event(place) for place in step.places] if step else []

    def session_data(self, sid: str) -> Mapping[str, Any]:
        """See `RunReader`."""
        session = self.outline.sessions.get(sid)
        if session is None or session.place is None:
            return {}
        data = self._event(session.place).get("data")
        return data if isinstance(data, dict) else {}

    def call_event(self, call: ModelCall) -> Mapping[str, Any]:
        """See `RunReader`."""
        return self._event(call.place)

    def messages(self, call: ModelCall) -> Sequence[Any]:
        """See `RunReader`."""
        return [self._message(name) for name in self._hashes(call)]

    def new_messages(self, call: ModelCall) -> Sequence[Any]:
        """See `RunReader`."""
        names = [name for name in _texts(call.hashes) if ":" not in name]
        if call.previous is not None and len(names) > 1:
            before = set(self._hashes(call.previous))
            names = [name for name in names if name not in before]
        return [self._message(name) for name in names]

    def _message(self, name: str) -> Any:
        place = self._messages.get(name.encode())
        data = self._event(place).get("data") if place is not None else None
        if not isinstance(data, dict) or "message" not in data:
            return {"role": "system", "content": f"(the message {name} is missing in the journal)"}
        return data["message"]

    def _hashes(self, call: ModelCall) -> list[str]:
        """Return the hashes of a call's messages."""
        chain, decoder = list[ModelCall](), HashDecoder()
        before: ModelCall | None = call
        while before is not None and before not in self._recent:
            chain.append(before)
            before = before.previous if any(":" in h for h in _texts(before.hashes)) else None
        names = self._recent[before] if before is not None else []
        decoder.decode("", "", names)
        for one in reversed(chain):
            try:
                names = decoder.decode("", "", _texts(one.hashes))
            except (ValueError, TypeError):
                return [h for h in _texts(call.hashes) if ":" not in h]
        self._recent[call] = names
        while len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
        return names

    def shared_prefix(self, call: ModelCall) -> int | None:
        """See `RunReader`."""
        if call.previous is None or call.hashes is None or call.previous.hashes is None:
            return None
        same = 0
        pairs = zip(self._hashes(call), self._hashes(call.previous), strict=False)
        for one, other in pairs:
            if one != other:
                break
            same += 1
        return same

    def blob(self, name: str) -> bytes | None:
        """See `RunReader`."""
        return self._blobs.read(name)


def _texts(value: Any) -> list[str]:
    return [v for v in value if isinstance(v, str)] if isinstance(value, list) else []


def _skimmed(line: bytes) -> dict[str, Any] | None:
    """Return an event without the large data that the outline does not need; None to parse it."""
    head = _HEAD.match(line, 0, 400)
    if head is None or head[1] not in _SKIMMED:
        return None
    tail = _TAIL.search(line, max(0, len(line) - 100))
    if tail is None:
        return None
    data: dict[str, Any] = {}
    if head[1] == b"world":
        urls = _URL.findall(line)
        try:
            data = (
                {"web_state_before": {"step_url": json.loads(b'"%s"' % urls[-1])}} if urls else {}
            )
        except ValueError:
            pass
    return {
        "kind": head[1].decode(),
        "sid": head[2].decode("utf-8", "replace"),
        "parent": json.loads(head[3]),
        "i": json.loads(head[4]),
        "phase": json.loads(head[5]),
        "data": data,
        "time": float(tail[1]),
    }
