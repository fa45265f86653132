"""Write journals: `Journal`. For the format see `ck_pro.journal`.

`append` passes each line to the operating system before it returns, so a killed process loses
nothing. `fsync` selects when lines reach the disk. Opening a journal removes a torn last line.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.journal_events import REQUIRED_KEYS, EventData, invalid_event
from ck_pro.exceptions import JournalError
from ck_pro.journal.images import MAY_HAVE_IMAGES, ImageWriter
from ck_pro.journal.masking import MIN_SECRET, Secrets, secrets_of_environment
from ck_pro.journal.packed import (
    EVENTS_FILE,
    compress_journal,
    locked_folder,
    require_zstd,
    restore_journal,
    sync_folder,
)
from ck_pro.journal.prompts import LastPrompts, PromptMessage
from ck_pro.journal.reading import ended_after, writer_state

_log = logging.getLogger(__name__)
Fsync = Literal["never", "step", "always"]

_ENDING_KINDS = (EventKind.STATUS, EventKind.RESUMED)
"""Kinds of events that end or resume a run."""
_SYNCED_KINDS = frozenset({EventKind.STARTED, EventKind.OBSERVATION, EventKind.STATUS})


class Journal:
    """The open journal of one task's run, with all its sessions. Thread-safe.

    Args:
        folder: of the journal, created if missing. None writes nothing, but still masks secrets,
            so that a session is the same with and without a journal.
        fsync: "never" leaves it to the operating system. "step" syncs each observation, status
            and announced action; "always" syncs each line. Both also sync images and folders
            before a line that refers to them.
        secrets: strings to mask, in addition to those of the environment.
        compress: compress the journal on `close` if its run has ended.
        listener: called with each stored event, in the thread and under the locks of the caller
            of `append`; it must not raise.
        clock: returns Unix seconds.

    Raises:
        JournalError: the folder cannot be written, another process has the journal open, or the
            package for `compress` is missing.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        fsync: Fsync = "never",
        secrets: Sequence[str] = (),
        compress: bool = False,
        listener: Callable[[JournalEvent], object] | None = None,
        clock: Callable[[], float] = time.time,
    ):
        if compress:
            require_zstd()  # fail before the run
        self.folder = None if folder is None else Path(folder)
        self.fsync, self.compress, self.listener = fsync, compress, listener
        self.repaired = 0
        """Bytes of a torn last line that were removed when the journal was opened."""
        self._clock = clock
        self._lock = threading.Lock()
        self._messages: set[str] = set()
        """Hashes of the stored messages."""
        self._ended = False
        self._secrets = Secrets({*secrets, *secrets_of_environment()})
        self._prompts = LastPrompts(self._secrets)
        self._images = ImageWriter(self.folder, sync=fsync != "never")
        self._fd: int | None = None
        if self.folder is not None:
            self._open(self.folder)

    def append(
        self,
        kind: EventKind,
        *,
        sid: str,
        parent: str | None = None,
        i: int | None = None,
        phase: str | None = None,
        data: EventData | None = None,
        duration: float | None = None,
    ) -> JournalEvent:
        """Store an event, and return it as readers see it (secrets masked).

        Args:
            kind: of the event.
            sid, parent: ids of its session and of the caller's session.
            i: index of the step.
            phase: "plan", "action", "end", or "tool:NAME".
            data: of the type that `EVENT_DATA` has for the kind; further keys are stored, too.
            duration: in seconds.

        Raises:
            JournalError: the kind is unknown, `data` lacks a required key, or the event cannot be
                written. Earlier events stay readable.
        """
        event: JournalEvent = {
            "kind": kind,
            "sid": sid,
            "parent": parent,
            "i": i,
            "phase": phase,
            "data": dict(data or {}),
            "time": self._clock(),
        }
        required = REQUIRED_KEYS.get(kind)
        if required is None or not event["data"].keys() >= required:
            raise invalid_event(kind, event["data"])
        if duration is not None:
            event["duration"] = duration
        return self._store(event)

    def copy(self, event: JournalEvent) -> JournalEvent:
        """Store an event of another journal unchanged, also if its kind is unknown.

        Raises:
            JournalError: it cannot be written.
        """
        return self._store(event.copy())

    def _store(self, event: JournalEvent) -> JournalEvent:
        if isinstance(event["data"].get("messages"), list):
            self._append_call(event)
        else:
            if self._secrets.known:
                event["data"] = self._secrets.masked(event["data"])
            self._append_event(event)
        if self.listener is not None:
            self.listener(event)
        return event

    def protect(self, secrets: Iterable[str]) -> None:
        """Mask these strings too from now on, except those shorter than 8 characters.

        A local server's key is often a placeholder such as "x".
        """
        with self._lock:
            if self._secrets.add(s for s in secrets if len(s) >= MIN_SECRET):
                self._prompts.forget()  # they have the old masks

    def masked(self, value: Any) -> Any:
        """Return JSON data as it would be stored, with secrets masked."""
        return self._secrets.masked(value)

    def put_blob(self, content: bytes, ext: str) -> str:
        """Store bytes once under their hash; return `<sha256>.<ext>`."""
        return self._images.put(content, ext)

    def close(self) -> None:
        """Close the file, and compress it if configured; later calls have no effect."""
        with self._lock:
            if self._fd is None:
                return
            os.close(self._fd)
            self._fd = None
        if self.compress and self._ended and self.folder is not None:
            try:
                compress_journal(self.folder)
            except JournalError as e:  # harmless: the run keeps its result
                _log.warning("%s; the journal is not compressed", e)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self, folder: Path) -> None:
        path = folder / EVENTS_FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with locked_folder(folder):
                self._fd = self._open_locked(path)
        except OSError as e:
            raise JournalError(f"cannot open {path}: {e.strerror}") from None

    def _open_locked(self, path: Path) -> int:
        if not path.exists():
            restore_journal(path.parent)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise JournalError(f"{path} is in use by another process") from None
            restore_journal(path.parent)  # removes a compressed copy that a kill left
            self.repaired = _remove_torn_line(fd)
            self._load(path)
            if self.fsync != "never":
                sync_folder(path.parent)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _load(self, path: Path) -> None:
        """Read the state from existing lines, and remove the partial files of a killed writer."""
        with path.open("rb") as file:
            for found in writer_state(file, path):
                if isinstance(found, str):
                    self._messages.add(found)
                else:
                    self._ended = ended_after(found, self._ended)
        self._images.clear_partial()

    def _syncs(self, kind: str) -> bool:
        return self.fsync == "always" or (self.fsync == "step" and kind in _SYNCED_KINDS)

    def _append_event(self, event: JournalEvent) -> None:
        with self._lock:
            if self._fd is not None:
                line = _dumps(event)
                if MAY_HAVE_IMAGES.search(line):
                    line = _dumps({**event, "data": self._images.encode(event["data"])})
                self._write([line], sync=self._syncs(event["kind"]))
                if event["kind"] in _ENDING_KINDS:
                    self._ended = ended_after(event, self._ended)
            if event["kind"] == EventKind.STATUS:
                self._prompts.forget(event["sid"])

    def _append_call(self, event: JournalEvent) -> None:
        """Store an event with messages: new messages in separate lines, all of them by hash."""
        sid, phase = event["sid"], event["phase"]
        data, messages = event["data"], event["data"]["messages"]
        with self._lock:
            if self._fd is None and not self._secrets.known:
                return
            prompt, same = self._prompts.compare(sid, phase, messages)
            rest = {k: v for k, v in data.items() if k != "messages"}
            if self._secrets.known:
                rest = self._secrets.masked(rest)
            event["data"] = {**rest, "messages": [message.stored for message in prompt]}
            if self._fd is not None:
                lines, new = self._new_messages(sid, prompt[same:])
                names = self._prompts.entries(sid, phase, prompt, same)
                lines.append(_dumps({**event, "data": {**rest, "message_hashes": names}}))
                self._write(lines, sync=self._syncs(event["kind"]))
                self._messages.update(new)  # only after the write succeeded
            self._prompts.remember(sid, phase, prompt)

    def _new_messages(
        self, sid: str, prompt: Sequence[PromptMessage]
    ) -> tuple[list[str], set[str]]:
        """Hash the messages; return the lines that store new ones, and their hashes."""
        lines: list[str] = []
        new: set[str] = set()
        for message in prompt:
            if message.name in self._messages:
                continue
            text = _dumps(message.stored)
            if MAY_HAVE_IMAGES.search(text):
                text = _dumps(self._images.encode(message.stored))
            message.name = name = hashlib.sha256(text.encode()).hexdigest()[:32]
            if name not in self._messages and name not in new:
                new.add(name)
                body = f'{{"hash":"{name}","message":{text}}}'
                lines.append(
                    f'{{"kind":"{EventKind.MESSAGE.value}","sid":{_dumps(sid)},"data":{body}}}'
                )
        return lines, new

    def _write(self, lines: Sequence[str], *, sync: bool) -> None:
        assert self._fd is not None
        content = "".join(f"{line}\n" for line in lines).encode()
        before = os.fstat(self._fd).st_size
        try:
            done = 0
            while done < len(content):
                done += os.write(self._fd, content[done:])
            if sync:
                os.fsync(self._fd)
        except OSError as e:
            with suppress(OSError):  # otherwise the next writer removes the torn line
                os.ftruncate(self._fd, before)  # leave no partial line on a full disk
            raise JournalError(f"cannot write the journal in {self.folder}: {e.strerror}") from None


def _remove_torn_line(fd: int) -> int:
    """Truncate the file after its last newline; return the number of bytes removed."""
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
    """Encode as compact JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as in a truncated reply
        return json.dumps(value, separators=(",", ":"), default=str)
    return text
