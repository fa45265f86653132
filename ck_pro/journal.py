"""The journal: the append-only store of a run, from which everything else can be rebuilt.

`<folder>/events.jsonl` has one JSON object per line: `kind`, `sid` (session), `parent` (session),
`i` (step), `phase`, `data`, `time` (Unix seconds) and, where it applies, `duration` (seconds).
Images live in `<folder>/blobs/<sha256>.<ext>`, written under a temporary name and renamed before
the line that names them. A chat message is stored once per run, by hash, in a line of kind
`message`; model calls name their messages by hash. `read_events` puts both back.

A line is handed to the operating system before `append` returns, so that a killed process loses
nothing; `fsync` says when the disk must have it too. A torn last line is cut off on open.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ck_pro.exceptions import JournalError

Fsync = Literal["never", "step", "always"]
EVENTS_FILE = "events.jsonl"
BLOBS_FOLDER = "blobs"
MASK = "***"

_SYNCED_KINDS = frozenset({"started", "observation", "status"})
_DATA_URL = re.compile(r"data:image/([a-z0-9.+-]+);base64,(.+)", re.DOTALL)
_BLOB_URL = re.compile(r"blob:([0-9a-f]{64}\.[a-z0-9.+-]+)")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_MIN_SECRET = 8


def secrets_of_environment(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Values of the environment variables whose names say that they are secret."""
    items = (os.environ if environ is None else environ).items()
    return tuple(v for k, v in items if _SECRET_NAME.search(k) and len(v) >= _MIN_SECRET)


class Journal:
    """The open journal of one task's run, for all its sessions. Safe to use from many threads.

    Args:
        folder: where to keep it, made when missing; None keeps nothing (and still masks secrets,
            so that a session is the same with a journal and without).
        fsync: "never" leaves the disk to the operating system; "step" forces it at each
            observation, status and announced action; "always" at each line.
        secrets: strings that must not reach the disk; those of the environment are added.
        clock: gives Unix seconds.

    Raises:
        JournalError: the folder cannot be written, or another process has the journal open.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        fsync: Fsync = "never",
        secrets: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ):
        self.folder = None if folder is None else Path(folder)
        self.fsync = fsync
        self.repaired = 0
        """Bytes of a torn last line that were cut off when the journal was opened."""
        self._clock = clock
        self._lock = threading.Lock()
        self._messages: set[str] = set()
        found = {*secrets, *secrets_of_environment()}
        self._secrets: list[str] = []
        self.protect(found)
        self._fd: int | None = None
        if self.folder is not None:
            self._open(self.folder)

    def append(
        self,
        kind: str,
        *,
        sid: str,
        parent: str | None = None,
        i: int | None = None,
        phase: str | None = None,
        data: Mapping[str, Any] | None = None,
        duration: float | None = None,
    ) -> dict[str, Any]:
        """Store one event and return it as a reader will see it (secrets masked).

        Raises:
            JournalError: it cannot be written; what was stored before stays readable.
        """
        event: dict[str, Any] = {"kind": kind, "sid": sid, "parent": parent, "i": i}
        event.update(phase=phase, data=self._masked(dict(data or {})), time=self._clock())
        if duration is not None:
            event["duration"] = duration
        if self._fd is not None:
            with self._lock:
                self._write(self._compact(event), sync=self._syncs(kind))
        return event

    def protect(self, secrets: Iterable[str]) -> None:
        """Mask these strings too, from now on."""
        known = {*self._secrets, *(s for s in secrets if s)}
        # longest first, so that a secret that holds another is masked as a whole
        self._secrets = sorted(known, key=len, reverse=True)

    def put_blob(self, content: bytes, ext: str) -> str:
        """Store bytes once under their hash; returns `<sha256>.<ext>`."""
        name = f"{hashlib.sha256(content).hexdigest()}.{ext}"
        if self.folder is None:
            return name
        path = self.folder / BLOBS_FOLDER / name
        if not path.exists():
            partial = path.with_name(f".{name}.{threading.get_ident()}")
            try:
                path.parent.mkdir(exist_ok=True)
                partial.write_bytes(content)
                partial.replace(path)
            except OSError as e:
                raise JournalError(f"cannot write {path}: {e.strerror}") from None
        return name

    def close(self) -> None:
        """Release the file; harmless when repeated."""
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self, folder: Path) -> None:
        path = folder / EVENTS_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as e:
            raise JournalError(f"cannot open {path}: {e.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise JournalError(f"{path} is in use by another process") from None
        self.repaired = _cut_torn_tail(fd)
        self._fd = fd
        for event in _lines(path):
            if event["kind"] == "message":
                self._messages.add(event["data"]["hash"])

    def _syncs(self, kind: str) -> bool:
        return self.fsync == "always" or (self.fsync == "step" and kind in _SYNCED_KINDS)

    def _write(self, lines: Sequence[str], *, sync: bool) -> None:
        assert self._fd is not None
        content = "".join(lines).encode()
        before = os.fstat(self._fd).st_size
        try:
            done = 0
            while done < len(content):
                done += os.write(self._fd, content[done:])
            if sync:
                os.fsync(self._fd)
        except OSError as e:
            os.ftruncate(self._fd, before)  # a full disk must not leave half a line
            raise JournalError(f"cannot write the journal in {self.folder}: {e.strerror}") from None

    def _compact(self, event: dict[str, Any]) -> list[str]:
        """The lines that store an event: its new messages, then itself naming them by hash."""
        lines: list[str] = []
        messages = event["data"].get("messages")
        if isinstance(messages, list):
            names = []
            for message in messages:
                text = _dumps(self._without_images(message))
                name = hashlib.sha256(text.encode()).hexdigest()[:32]
                names.append(name)
                if name not in self._messages:
                    self._messages.add(name)
                    body = {"hash": name, "message": json.loads(text)}
                    lines.append(_dumps({"kind": "message", "sid": event["sid"], "data": body}))
            data = {k: v for k, v in event["data"].items() if k != "messages"}
            event = {**event, "data": {**data, "message_hashes": names}}
        else:
            event = {**event, "data": self._without_images(event["data"])}
        lines.append(_dumps(event))
        return [line + "\n" for line in lines]

    def _without_images(self, value: Any) -> Any:
        """`value` with every data URL of an image moved to a blob."""
        if isinstance(value, str):
            found = _DATA_URL.fullmatch(value) if value.startswith("data:image/") else None
            if found is None:
                return value
            content = base64.b64decode(found[2])
            if base64.b64encode(content).decode() != found[2]:
                return value  # would not read back as the same text
            return f"blob:{self.put_blob(content, found[1])}"
        if isinstance(value, dict):
            return {k: self._without_images(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._without_images(v) for v in value]
        return value

    def _masked(self, value: Any) -> Any:
        if not self._secrets:
            return value
        if isinstance(value, str):
            for secret in self._secrets:
                if secret in value:
                    value = value.replace(secret, MASK)
            return value
        if isinstance(value, dict):
            return {self._masked(k): self._masked(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._masked(v) for v in value]
        return value


def read_events(folder: Path | str) -> Iterator[dict[str, Any]]:
    """The events of a journal in order, messages and images put back; a torn tail is left out.

    Raises:
        JournalError: there is no journal, or a line before the last is not readable.
    """
    folder = Path(folder)
    messages: dict[str, Any] = {}
    for event in _lines(folder / EVENTS_FILE):
        if event["kind"] == "message":
            messages[event["data"]["hash"]] = event["data"]["message"]
            continue
        data = event["data"]
        if "message_hashes" in data:
            try:
                data["messages"] = [messages[h] for h in data.pop("message_hashes")]
            except KeyError as e:
                raise JournalError(f"{folder}: the message {e} is missing") from None
        event["data"] = _with_images(data, folder / BLOBS_FOLDER)
        yield event


def _with_images(value: Any, blobs: Path) -> Any:
    if isinstance(value, str):
        found = _BLOB_URL.fullmatch(value) if value.startswith("blob:") else None
        if found is None:
            return value
        try:
            content = (blobs / found[1]).read_bytes()
        except OSError as e:
            raise JournalError(f"cannot read {blobs / found[1]}: {e.strerror}") from None
        kind = found[1].split(".", 1)[1]
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    if isinstance(value, dict):
        return {k: _with_images(v, blobs) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_images(v, blobs) for v in value]
    return value


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return  # torn: its writer was killed, or is still at it
                yield _parsed(path, number, line)
    except OSError as e:
        raise JournalError(f"cannot read {path}: {e.strerror}") from None


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError as e:
        raise JournalError(f"{path}, line {number}: not JSON: {e}") from None
    if not isinstance(event, dict) or not isinstance(event.get("data"), dict):
        raise JournalError(f"{path}, line {number}: not an event")
    return event


def _cut_torn_tail(fd: int) -> int:
    """Truncate the file after its last newline; returns how many bytes went."""
    size = os.fstat(fd).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(fd, end)
    return size - end


def _dumps(value: Any) -> str:
    """Compact JSON that UTF-8 can hold."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as a cut reply may end with
        return json.dumps(value, separators=(",", ":"), default=str)
    return text
