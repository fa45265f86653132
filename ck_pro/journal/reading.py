"""Read journals: events in order, with their messages and images."""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from ck_pro.events import EventKind, JournalEvent
from ck_pro.exceptions import JournalError
from ck_pro.journal.images import ImageReader
from ck_pro.journal.lazy import LazyList
from ck_pro.journal.packed import EVENTS_FILE, is_journal, open_events
from ck_pro.journal.prompts import HashDecoder

_TRY, _RESTARTED = re.compile(r"try-\d+"), re.compile(r"attempt-\d+")
_MESSAGE = re.compile(rb'\{"kind":"message","sid":"[^"\\]*","data":\{"hash":"([0-9a-f]{32})",')
_LENGTH_BITS = 40
_MESSAGE_LINE = f'{{"kind":"{EventKind.MESSAGE}"'.encode()
_ENDING_LINES = tuple(f'{{"kind":"{k}",'.encode() for k in (EventKind.STATUS, EventKind.RESUMED))


def journal_folders(path: Path) -> list[Path]:
    """List the journals of a path: its own, or those of its task folders, sorted by name.

    Tries of a task are in order. Restarted attempts (`attempt-N`) are not included.

    Raises:
        OSError: the folder cannot be read.
    """
    found = [p for p in _subfolders(path) if not _RESTARTED.fullmatch(p.name)]
    if is_journal(path) or any(map(_is_try, found)):
        return _of_task(path)
    return [journal for task in found for journal in _of_task(task)]


def _of_task(folder: Path) -> list[Path]:
    own = [folder] if is_journal(folder) else []
    return [*own, *(p for p in _subfolders(folder) if _is_try(p))]


def _is_try(folder: Path) -> bool:
    return _TRY.fullmatch(folder.name) is not None and is_journal(folder)


def _subfolders(folder: Path) -> list[Path]:
    """List subfolders in natural order; hidden ones are incomplete."""
    return sorted(
        (p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")),
        key=lambda p: [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", p.name)],
    )


def read_events(folder: Path | str, *, stored: bool = False) -> Iterator[JournalEvent]:
    """Yield the events of a journal in order, with messages and images; skip a torn last line.

    Args:
        folder: of the journal, compressed or not.
        stored: give the messages of model calls as a `LazyList`, which reads them on access; for
            journals that do not fit in memory.

    Raises:
        JournalError: the journal is missing, or a line before the last is not readable.
    """
    folder = Path(folder)
    with open_events(folder, seekable=stored) as file:
        store: _MessageCache | _MessageIndex = (
            _MessageIndex(folder, file) if stored else _MessageCache(folder)
        )
        decoder = HashDecoder()
        for number, at, line in _whole_lines(file):
            if line.startswith(_MESSAGE_LINE):
                store.add(line, at, number)
                continue
            event = parsed(folder / EVENTS_FILE, number, line)
            data = event["data"]
            if "message_hashes" in data:
                entries = data.pop("message_hashes")
                try:
                    hashes = decoder.decode(event["sid"], event.get("phase"), entries)
                except (ValueError, TypeError) as e:
                    raise JournalError(f"{folder / EVENTS_FILE}, line {number}: {e}") from None
                data["messages"] = store.messages(hashes)
            elif b'"blob:' in line:
                event["data"] = store.images.decode(data)
            if event["kind"] == EventKind.STATUS:
                decoder.forget(event["sid"])
            yield event
        store.forget()


def has_ended(folder: Path) -> bool:
    """Return whether a journal's main session has ended for good.

    Raises:
        JournalError: it cannot be read.
    """
    ended = False
    with open_events(folder) as file:
        for number, _, line in _whole_lines(file):
            if line.startswith(_ENDING_LINES):
                ended = ended_after(parsed(folder / EVENTS_FILE, number, line), ended)
    return ended


def ended_after(event: JournalEvent, before: bool) -> bool:
    """Return whether a run has ended after an event, given whether it had before."""
    kind = event["kind"]
    if event.get("parent") is not None or kind not in (EventKind.STATUS, EventKind.RESUMED):
        return before
    return kind == EventKind.STATUS and bool(event["data"].get("status") != "in_progress")


def writer_state(file: BinaryIO, path: Path) -> Iterator[str | JournalEvent]:
    """Yield what a writer needs from existing lines.

    That is the hash of each stored message, and each event that ends or resumes a run.
    """
    for number, _, line in _whole_lines(file):
        if line.startswith(_MESSAGE_LINE):
            yield _hash_of(line, path, number)
        elif line.startswith(_ENDING_LINES):
            yield parsed(path, number, line)


def _whole_lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, position and content of each complete line."""
    at = 0
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            return  # torn: the writer was killed or is still writing
        yield number, at, line
        at += len(line)


def parsed(path: Path, number: int, line: bytes) -> JournalEvent:
    """Parse a line as an event.

    Raises:
        JournalError: the line is not an event; the message has the path and line number.
    """
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise JournalError(f"{path}, line {number}: not JSON: {e}") from None
    if not isinstance(event, dict) or not isinstance(event.get("data"), dict):
        raise JournalError(f"{path}, line {number}: not an event")
    for name in ("kind", "sid"):
        if not isinstance(event.get(name), str):
            raise JournalError(f"{path}, line {number}: not an event: it has no {name!r}")
    return cast(JournalEvent, event)


def _message(path: Path, number: int, line: bytes) -> tuple[str, Any]:
    """Parse a line of kind `message`: its hash and the message."""
    data = parsed(path, number, line)["data"]
    if not isinstance(data.get("hash"), str) or "message" not in data:
        raise JournalError(f"{path}, line {number}: not a message")
    return data["hash"], data["message"]


def _hash_of(line: bytes, path: Path, number: int) -> str:
    found = _MESSAGE.match(line)
    return found[1].decode() if found else _message(path, number, line)[0]


class _MessageCache:
    """The messages of a journal, in memory; calls share the message objects."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.images = ImageReader(folder)
        self._messages: dict[str, Any] = {}

    def add(self, line: bytes, at: int, number: int) -> None:
        """Add a line of kind `message`."""
        name, message = _message(self._folder / EVENTS_FILE, number, line)
        if b'"blob:' in line:
            message = self.images.decode(message)
        self._messages[name] = message

    def messages(self, hashes: Sequence[str]) -> list[Any]:
        """Return the messages with these hashes."""
        try:
            return [self._messages[h] for h in hashes]
        except KeyError as e:
            raise _missing(self._folder, e) from None

    def forget(self) -> None:
        """Drop the messages after the last event."""
        self._messages.clear()


class _MessageIndex:
    """The positions of a journal's messages in its file."""

    def __init__(self, folder: Path, file: BinaryIO):
        self._folder = folder
        self.images = ImageReader(folder, keep=False)
        self._places: dict[str, int] = {}
        """Position by hash, with the length in the low bits: one object each, as there may be a
        million."""
        self._fd = os.dup(file.fileno())  # messages may be read after this reader ends
        weakref.finalize(self, os.close, self._fd)

    def add(self, line: bytes, at: int, number: int) -> None:
        """Add a line of kind `message`."""
        name = _hash_of(line, self._folder / EVENTS_FILE, number)
        self._places[name] = at << _LENGTH_BITS | len(line)

    def messages(self, hashes: Sequence[str]) -> LazyList:
        """Return the messages with these hashes; each is read on access."""
        try:
            return LazyList([self._places[h] for h in hashes], self.read)
        except KeyError as e:
            raise _missing(self._folder, e) from None

    def forget(self) -> None:
        """Drop the index after the last event; the lists have their positions."""
        self._places.clear()

    def read(self, place: int) -> Any:
        """Read the message at a position."""
        at, length = place >> _LENGTH_BITS, place & ((1 << _LENGTH_BITS) - 1)
        line = os.pread(self._fd, length, at)
        try:
            message = json.loads(line)["data"]["message"]
        except (ValueError, KeyError, TypeError) as e:
            raise JournalError(
                f"{self._folder}: the message at byte {at} cannot be read: {e}"
            ) from None
        return self.images.decode(message) if b'"blob:' in line else message


def _missing(folder: Path, error: KeyError) -> JournalError:
    return JournalError(f"{folder}: the message {error} is missing")
