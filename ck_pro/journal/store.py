"""`Journal`: the writer. See the package for what it writes.

A line is handed to the operating system before `append` returns, so that a killed process loses
nothing; `fsync` says when the disk must have it too. A torn last line is cut off on open.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ck_pro.exceptions import JournalError
from ck_pro.journal.images import ImageWriter
from ck_pro.journal.masking import Secrets, secrets_of_environment
from ck_pro.journal.packed import (
    EVENTS_FILE,
    compress_journal,
    locked_folder,
    require_zstd,
    restore_journal,
    sync_folder,
)
from ck_pro.journal.prompts import LastPrompts, Told
from ck_pro.journal.reading import ended_after, known_messages

_log = logging.getLogger(__name__)
Fsync = Literal["never", "step", "always"]

_SYNCED_KINDS = frozenset({"started", "observation", "status"})


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
        """Hashes of the messages that are stored."""
        self._ended = False
        self._secrets = Secrets({*secrets, *secrets_of_environment()})
        self._prompts = LastPrompts(self._secrets)
        self._images = ImageWriter(self.folder, sync=fsync != "never")
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
        event.update(phase=phase, data=dict(data or {}), time=self._clock())
        if duration is not None:
            event["duration"] = duration
        if isinstance(event["data"].get("messages"), list):
            self._append_call(event)
        else:
            event["data"] = self._secrets.masked(event["data"])
            self._append_event(event)
        if self.listener is not None:
            self.listener(event)
        return event

    def protect(self, secrets: Iterable[str]) -> None:
        """Mask these strings too, from now on."""
        with self._lock:
            if self._secrets.add(secrets):
                self._prompts.forget()  # they are masked as they were

    def masked(self, value: Any) -> Any:
        """JSON-able data as it would be stored, without its secrets."""
        return self._secrets.masked(value)

    def put_blob(self, content: bytes, ext: str) -> str:
        """Store bytes once under their hash; returns `<sha256>.<ext>`."""
        return self._images.put(content, ext)

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
        self._images.clear_partial()

    def _syncs(self, kind: str) -> bool:
        return self.fsync == "always" or (self.fsync == "step" and kind in _SYNCED_KINDS)

    def _append_event(self, event: dict[str, Any]) -> None:
        with self._lock:
            if self._fd is not None:
                stored = {**event, "data": self._images.taken_out(event["data"])}
                self._write([_dumps(stored)], sync=self._syncs(event["kind"]))
                self._ended = ended_after(event, self._ended)
            if event["kind"] == "status":
                self._prompts.forget(event["sid"])

    def _append_call(self, event: dict[str, Any]) -> None:
        """Store an event with messages: the new ones in lines of their own, all of them by name."""
        sid, phase = event["sid"], event["phase"]
        data, messages = event["data"], event["data"]["messages"]
        with self._lock:
            if self._fd is None and not self._secrets:
                return
            prompt, same = self._prompts.compared(sid, phase, messages)
            rest = self._secrets.masked({k: v for k, v in data.items() if k != "messages"})
            event["data"] = {**rest, "messages": [told.stored for told in prompt]}
            if self._fd is not None:
                lines, new = self._new_messages(sid, prompt[same:])
                names = self._prompts.entries(sid, phase, prompt, same)
                lines.append(_dumps({**event, "data": {**rest, "message_hashes": names}}))
                self._write(lines, sync=self._syncs(event["kind"]))
                self._messages.update(new)  # only now: they are on the disk
            self._prompts.keep(sid, phase, prompt)

    def _new_messages(self, sid: str, prompt: Sequence[Told]) -> tuple[list[str], set[str]]:
        """Name the messages; the lines that store those which are not stored yet, their names."""
        lines: list[str] = []
        new: set[str] = set()
        for told in prompt:
            if told.name in self._messages:
                continue
            text = _dumps(self._images.taken_out(told.stored))
            told.name = name = hashlib.sha256(text.encode()).hexdigest()[:32]
            if name not in self._messages and name not in new:
                new.add(name)
                body = f'{{"hash":"{name}","message":{text}}}'
                lines.append(f'{{"kind":"message","sid":{_dumps(sid)},"data":{body}}}')
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
            with suppress(OSError):  # the next to open it cuts the torn line off
                os.ftruncate(self._fd, before)  # a full disk must not leave half a line
            raise JournalError(f"cannot write the journal in {self.folder}: {e.strerror}") from None


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
