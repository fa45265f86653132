"""Snapshots of a run's working directory, one per step, so that a fork can restore its files.

A snapshot costs a look at each file. The content of what changed is stored once, under its hash,
among the blobs of the journal; an event of kind `files` names what changed since the one before.
Code may work in the directory at the same time: no link is followed, and nothing is waited for.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FILES = "files"
"""The kind of the journal's events about files."""
MAX_ENTRIES = 2000
"""Files and folders beyond which no snapshot is taken."""
MAX_FILE_BYTES = 32 << 20
_EXTENSION = "file"
_MAX_DEPTH = 40
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class TooMany(Exception):
    """The working directory has more entries than a snapshot looks at."""


class _Entry(NamedTuple):
    path: str
    folder: int
    """Descriptor of the folder that it is in, open until the next entry is asked for."""
    name: str
    facts: os.stat_result


class FileSnapshots:
    """Finds out what changed in a working directory from step to step.

    Args:
        folder: the working directory.
        put: stores bytes under their hash and gives the name, as `Journal.put_blob`.
        limit: bytes of content to store; what is beyond has its size and time alone.
        begun: there may be snapshots already, of the run before it was interrupted.
    """

    def __init__(
        self, folder: Path, put: Callable[[bytes, str], str], limit: int, *, begun: bool = False
    ):
        self._folder, self._put, self._left = folder, put, limit
        self._stored: set[str] = set()
        self._known: dict[str, tuple[int, ...]] | None = None if begun else {}
        self._too_many = False

    def take(self) -> dict[str, Any] | None:
        """Give the data of an event of kind `files`, or None if nothing changed.

        Raises:
            JournalError: the content of a file cannot be stored.
        """
        known = self._known or {}
        seen: dict[str, tuple[int, ...]] = {}
        changed: dict[str, Any] = {}
        try:
            for entry in _walk(self._folder):
                facts = entry.facts
                key = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
                seen[entry.path] = key
                if known.get(entry.path) != key:
                    changed[entry.path] = self._describe(entry)
        except TooMany:
            told, self._known, self._too_many = self._too_many, None, True
            return None if told else {"too_many": MAX_ENTRIES}
        whole, self._known, self._too_many = self._known is None, seen, False
        removed = sorted(known.keys() - seen.keys())
        if not (whole or changed or removed):
            return None
        return {"whole": whole, "changed": changed, "removed": removed}

    def _describe(self, entry: _Entry) -> dict[str, Any]:
        facts = entry.facts
        if stat.S_ISLNK(facts.st_mode):
            with contextlib.suppress(OSError):
                return {"link": _printable(os.readlink(entry.name, dir_fd=entry.folder))}
            return {"link": ""}
        found: dict[str, Any] = {"size": facts.st_size, "mtime": facts.st_mtime_ns}
        if facts.st_mode & stat.S_IXUSR:
            found["executable"] = True
        content = self._read(entry)
        if content is not None:
            found["blob"] = name = self._put(content, _EXTENSION)
            if name not in self._stored:
                self._stored.add(name)
                self._left -= len(content)
        return found

    def _read(self, entry: _Entry) -> bytes | None:
        limit = min(MAX_FILE_BYTES, self._left)
        if entry.facts.st_size > limit:
            return None
        try:
            with os.fdopen(os.open(entry.name, _OPEN_FILE, dir_fd=entry.folder), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                content = file.read(limit + 1)
        except OSError:  # it went away, or may not be read
            return None
        return content if len(content) <= limit else None


def _printable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _walk(folder: Path) -> Iterator[_Entry]:
    """The files and links below a folder."""
    try:
        top = os.open(folder, _OPEN_FOLDER)
    except OSError:  # the code removed it
        return
    yield from _walk_open(top, "", [0])


def _walk_open(folder: int, above: str, count: list[int]) -> Iterator[_Entry]:
    """The same for an open folder, which is closed then."""
    try:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                count[0] += 1
                if count[0] > MAX_ENTRIES or above.count("/") > _MAX_DEPTH:
                    raise TooMany
                path = above + _printable(entry.name)
                try:
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(facts.st_mode):
                        below = os.open(entry.name, _OPEN_FOLDER, dir_fd=folder)
                        yield from _walk_open(below, f"{path}/", count)
                        continue
                except OSError:  # it went away
                    continue
                if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                    yield _Entry(path, folder, entry.name, facts)
    finally:
        os.close(folder)


def files_after(events: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The files of a working directory after some events; None where they are not known. Pure.

    Returns:
        Path -> what the event of kind `files` says of it.
    """
    files: dict[str, Any] | None = None
    for event in events:
        data = event["data"]
        if event["kind"] == "session" and event["parent"] is None:
            config = data.get("config")
            files = {} if isinstance(config, Mapping) and config.get("snapshot_mb") else None
        elif event["kind"] == FILES and "too_many" in data:
            files = None
        elif event["kind"] == FILES:
            files = {} if data["whole"] else dict(files or {})
            for path in data["removed"]:
                files.pop(path, None)
            files.update(data["changed"])
    return files


def restore_files(
    files: Mapping[str, Any], to: Path, blob: Callable[[str], bytes | None], now: Path
) -> list[str]:
    """Write the files of a snapshot.

    Args:
        files: as `files_after` gives them.
        to: an empty folder.
        blob: gives the content under a name; None where it is missing.
        now: the working directory as it is now: a file whose content was not stored is copied
            from there if its size and time are those of the snapshot.

    Returns:
        The paths that could not be restored.

    Raises:
        OSError: a file cannot be written.
    """
    lost = []
    for path, facts in files.items():
        parts = path.split("/")
        place = to.joinpath(*parts)
        if not path or path.startswith("/") or {"", ".", ".."} & set(parts):
            lost.append(path)
        elif "link" not in facts:
            content = blob(facts["blob"]) if "blob" in facts else _unchanged(now / path, facts)
            if content is None:
                lost.append(path)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(0o755 if facts.get("executable") else 0o644)
            os.utime(place, ns=(facts["mtime"], facts["mtime"]))
    for path, facts in files.items():  # last: no file is written through one
        if facts.get("link") and path not in lost:
            place = to.joinpath(*path.split("/"))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(facts["link"])
    return sorted(lost)


def _unchanged(path: Path, facts: Mapping[str, Any]) -> bytes | None:
    try:
        with os.fdopen(os.open(path, _OPEN_FILE), "rb") as file:
            found = os.fstat(file.fileno())
            same = (found.st_size, found.st_mtime_ns) == (facts["size"], facts["mtime"])
            return file.read() if same and stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None
