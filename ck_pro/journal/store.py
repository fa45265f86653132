"""`Journal`: the writer. See the package for what it writes.

A line is handed to the operating system before `append` returns, so that a killed process loses
nothing; `fsync` says when the disk must have it too. A torn last line is cut off on open.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ck_pro.exceptions import JournalError
from ck_pro.journal.packed import (
    EVENTS_FILE,
    compress_journal,
    locked_folder,
    require_zstd,
    restore_journal,
    sync_folder,
)
from ck_pro.journal.reading import BLOB, BLOBS_FOLDER, ESCAPED, ended_after, known_messages

_log = logging.getLogger(__name__)
Fsync = Literal["never", "step", "always"]
MASK = "***"

_SYNCED_KINDS = frozenset({"started", "observation", "status"})
_DATA_URL = re.compile(r"data:image/([a-z0-9.+-]+);base64,(.+)", re.DOTALL)
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
            observation, status and announced action; "always" at each line. With both, images
            and the names of files are forced to it before a line that needs them.
        secrets: strings that must not reach the disk; those of the environment are added.
        compress: compress the journal on `close` if its run has ended.
        listener: called with each event as it was stored, in the thread and under the locks of
            whoever appends it; it must not raise.
        clock: gives Unix seconds.

    Raises:
        JournalError: the folder cannot be written, another process has the journal open, or
            `compress` is wanted and its package is missing.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        fsync: Fsync = "never",
        secrets: Sequence[str] = (),
        compress: bool = False,
        listener: Callable[[dict[str, Any]], object] | None = None,
        clock: Callable[[], float] = time.time,
    ):
        if compress:
            require_zstd()  # now, not when everything is done
        self.folder = None if folder is None else Path(folder)
        self.fsync, self.compress, self.listener = fsync, compress, listener
        self.repaired = 0
        """Bytes of a torn last line that were cut off when the journal was opened."""
        self._clock = clock
        self._lock = threading.Lock()
        self._messages: set[str] = set()
        self._named: dict[str, dict[tuple[Any, ...], str]] = {}
        """The messages of each session's last prompt, and their hashes."""
        self._ended = False
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
                self._store(event)
        if self.listener is not None:
            self.listener(event)
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
            try:
                self._write_blob(path, content)
            except OSError as e:
                raise JournalError(f"cannot write {path}: {e.strerror}") from None
        return name

    def close(self) -> None:
        """Release the file, and compress it if that is wanted; harmless when repeated."""
        with self._lock:
            if self._fd is None:
                return
            os.close(self._fd)
            self._fd = None
        if self.compress and self._ended and self.folder is not None:
            try:
                compress_journal(self.folder)
            except JournalError as e:  # nothing is lost, so it must not cost the run its result
                _log.warning("%s; it stays as it is", e)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self, folder: Path) -> None:
        path = folder / EVENTS_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with locked_folder(folder):
                self._fd = self._opened(path)
        except OSError as e:
            raise JournalError(f"cannot open {path}: {e.strerror}") from None

    def _opened(self, path: Path) -> int:
        if not path.exists():
            restore_journal(path.parent)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalError(f"{path} is in use by another process") from None
            restore_journal(path.parent)  # a compressed form beside it, from before a kill, goes
            self.repaired = _cut_torn_tail(fd)
            self._take_up(path)
            if self.fsync != "never":
                sync_folder(path.parent)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _take_up(self, path: Path) -> None:
        """Learn what the lines before tell, and clear what a killed writer left half done."""
        with path.open("rb") as file:
            for kind, found in known_messages(file, path):
                if kind == "message":
                    self._messages.add(found["hash"])
                else:
                    self._ended = ended_after(found, self._ended)
        for partial in (path.parent / BLOBS_FOLDER).glob(".*"):
            partial.unlink()

    def _syncs(self, kind: str) -> bool:
        return self.fsync == "always" or (self.fsync == "step" and kind in _SYNCED_KINDS)

    def _store(self, event: dict[str, Any]) -> None:
        lines, new = self._compact(event)
        self._write(lines, sync=self._syncs(event["kind"]))
        self._messages.update(new)  # only now: they are on the disk
        self._ended = ended_after(event, self._ended)
        if event["kind"] == "status":
            self._named.pop(event["sid"], None)

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
            with suppress(OSError):  # the next to open it cuts the torn line off
                os.ftruncate(self._fd, before)  # a full disk must not leave half a line
            raise JournalError(f"cannot write the journal in {self.folder}: {e.strerror}") from None

    def _write_blob(self, path: Path, content: bytes) -> None:
        partial = path.with_name(f".{path.name}.{threading.get_ident()}")
        path.parent.mkdir(exist_ok=True)
        try:
            with partial.open("wb") as file:
                file.write(content)
                if self.fsync != "never":
                    file.flush()
                    os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink()  # a full disk needs the room
            raise
        if self.fsync != "never":
            sync_folder(path.parent)

    def _compact(self, event: dict[str, Any]) -> tuple[list[str], set[str]]:
        """The lines that store an event: its new messages, then itself naming them by hash; and
        the hashes of the new ones."""
        lines: list[str] = []
        new: set[str] = set()
        messages = event["data"].get("messages")
        if isinstance(messages, list):
            names: list[str] = []
            # a growing chat: most of its messages were in the last prompt of that session
            last, now = self._named.get(event["sid"], {}), dict[tuple[Any, ...], str]()
            for message in messages:
                key = _key(message)
                if key in last and last[key] in self._messages:
                    now[key] = last[key]
                    names.append(last[key])
                    continue
                text = _dumps(self._without_images(message))
                name = hashlib.sha256(text.encode()).hexdigest()[:32]
                names.append(name)
                if key:
                    now[key] = name
                if name not in self._messages and name not in new:
                    new.add(name)
                    body = f'{{"hash":"{name}","message":{text}}}'
                    sid = _dumps(event["sid"])
                    lines.append(f'{{"kind":"message","sid":{sid},"data":{body}}}')
            data = {k: v for k, v in event["data"].items() if k != "messages"}
            event = {**event, "data": {**data, "message_hashes": names}}
            self._named[event["sid"]] = now
        else:
            event = {**event, "data": self._without_images(event["data"])}
        lines.append(_dumps(event))
        return [line + "\n" for line in lines], new

    def _without_images(self, value: Any) -> Any:
        """`value` with every data URL of an image moved to a blob."""
        if isinstance(value, str):
            if value.startswith(BLOB):  # a text that only looks like a reference
                return ESCAPED + value[len(BLOB) :]
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


def _key(message: Any) -> tuple[Any, ...]:
    """What makes two plain messages the same; empty for one that is more than role and text.

    A text keeps its own hash, so that looking for one that was there before costs nothing.
    """
    if isinstance(message, dict) and len(message) == 2 and list(message) == ["role", "content"]:
        role, content = message["role"], message["content"]
        if isinstance(role, str) and isinstance(content, str):
            return (role, content)
    return ()


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
