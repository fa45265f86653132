"""Snapshots of a run's working directory, one per step, so that a fork can restore its files.

A snapshot checks the metadata of each file. It stores the content of changed files once, by hash,
among the journal's blobs, and an event of kind `files` lists the changes since the last snapshot.
Code may use the directory at the same time, so a snapshot never follows links and never blocks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ck_pro.events import EventKind, JournalEvent
from ck_pro.events.event_parts import FileFacts
from ck_pro.events.journal_events import FilesData

MAX_ENTRIES = 2000
"""Maximum number of files and folders; with more, no snapshot is taken."""
MAX_FILE_BYTES = 32 << 20
_EXTENSION = "file"
_MAX_DEPTH = 40
_PIECE = 1 << 20
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class TooMany(Exception):
    """The working directory has more entries than a snapshot allows."""


class _Entry(NamedTuple):
    path: str
    folder: int
    """Descriptor of its folder, open until the next entry is requested."""
    name: str
    facts: os.stat_result


class FileSnapshots:
    """Detect the changes in a working directory from step to step.

    Args:
        folder: the working directory.
        put: stores bytes under their hash and returns the name, like `Journal.put_blob`.
        limit: bytes of content to store; of further files, only size and time are recorded.
        resumed: whether the run may have snapshots already.
    """

    def __init__(
        self, folder: Path, put: Callable[[bytes, str], str], limit: int, *, resumed: bool = False
    ):
        self._folder, self._put, self._left = folder, put, limit
        self._stored: set[str] = set()
        self._known: dict[str, tuple[int, ...]] | None = None if resumed else {}
        self._too_many = False

    def take(self) -> FilesData | None:
        """Return the data of an event of kind `files`; None if nothing changed.

        Raises:
            JournalError: the content of a file cannot be stored.
        """
        known = self._known or {}
        current: dict[str, tuple[int, ...]] = {}
        changed: dict[str, FileFacts] = {}
        try:
            for entry in _walk(self._folder):
                facts = entry.facts
                key = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
                current[entry.path] = key
                if known.get(entry.path) != key:
                    changed[entry.path] = self._describe(entry)
        except TooMany:
            reported, self._known, self._too_many = self._too_many, None, True
            return None if reported else {"too_many": MAX_ENTRIES}
        whole, self._known, self._too_many = self._known is None, current, False
        removed = sorted(known.keys() - current.keys())
        if not (whole or changed or removed):
            return None
        return {"whole": whole, "changed": changed, "removed": removed}

    def _describe(self, entry: _Entry) -> FileFacts:
        facts = entry.facts
        if stat.S_ISLNK(facts.st_mode):
            with contextlib.suppress(OSError):
                return {"link": _printable(os.readlink(entry.name, dir_fd=entry.folder))}
            return {"link": ""}
        found: FileFacts = {"size": facts.st_size, "mtime": facts.st_mtime_ns}
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
        except OSError:  # removed, or not readable
            return None
        return content if len(content) <= limit else None


def _printable(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def _walk(folder: Path) -> Iterator[_Entry]:
    """Yield the files and links below a folder."""
    try:
        top = os.open(folder, _OPEN_FOLDER)
    except OSError:  # removed by the code
        return
    yield from _walk_open(top, "", [0])


def _walk_open(folder: int, above: str, count: list[int]) -> Iterator[_Entry]:
    """Walk an open folder and close it."""
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
                except OSError:  # removed
                    continue
                if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                    yield _Entry(path, folder, entry.name, facts)
    finally:
        os.close(folder)


def files_after(events: Iterable[JournalEvent]) -> dict[str, FileFacts] | None:
    """Return the files of a working directory after some events; None if unknown. Pure.

    Returns:
        Path -> the file's entry in the events of kind `files`.
    """
    files: dict[str, FileFacts] | None = None
    for event in events:
        data = event["data"]
        if event["kind"] == EventKind.SESSION and event["parent"] is None:
            config = data.get("config")
            files = {} if isinstance(config, Mapping) and config.get("snapshot_mb") else None
        elif event["kind"] == EventKind.FILES and "too_many" in data:
            files = None
        elif event["kind"] == EventKind.FILES:
            files = {} if data["whole"] else dict(files or {})
            for path in data["removed"]:
                files.pop(path, None)
            files.update(data["changed"])
    return files


def restore_files(
    files: Mapping[str, FileFacts], to: Path, blob: Callable[[str], bytes | None], now: Path
) -> list[str]:
    """Write the files of a snapshot.

    Args:
        files: as returned by `files_after`.
        to: an empty folder.
        blob: returns the content of a blob; None if it is missing.
        now: the current working directory. A file whose content was not stored is copied from
            there if its size and time match the snapshot.

    Returns:
        The paths that could not be restored.

    Raises:
        OSError: a file cannot be written.
    """
    lost = []
    for path, facts in files.items():
        is_link = "link" in facts
        if not _is_inside(path) or not (is_link or _restore_file(to, path, facts, blob, now)):
            lost.append(path)
    for path, facts in files.items():  # links last, so that no file is written through one
        if facts.get("link") and path not in lost and not _restore_link(to, path, facts["link"]):
            lost.append(path)
    return sorted(lost)


def _is_inside(path: str) -> bool:
    return not {"", ".", ".."} & set(path.split("/"))


def _restore_file(
    to: Path,
    path: str,
    facts: FileFacts,
    blob: Callable[[str], bytes | None],
    now: Path,
) -> bool:
    """Write one file; return False if its content is unknown or its name exists."""
    place = to / path
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except (FileExistsError, NotADirectoryError):
        return False  # two different names can look alike in a journal
    with os.fdopen(target, "wb") as file:
        if "blob" in facts:
            content = blob(facts["blob"])
            known = content is not None
            file.write(content or b"")
        else:
            known = _copy_unchanged(now, path, facts, file)
    if not known:
        place.unlink()
        return False
    place.chmod(0o755 if facts.get("executable") else 0o644)
    os.utime(place, ns=(facts["mtime"], facts["mtime"]))
    return True


def _restore_link(to: Path, path: str, target: str) -> bool:
    """Create one link; return False if its name exists or its path leads through a link."""
    place = to / path
    above = [folder for folder in place.parents if to in folder.parents]
    if any(folder.is_symlink() for folder in above):
        return False
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    except (FileExistsError, NotADirectoryError):
        return False
    return True


def _copy_unchanged(now: Path, path: str, facts: FileFacts, target: BinaryIO) -> bool:
    """Copy a file from the working directory if its size and time match the snapshot.

    Follow no links. Keep holes, so that a sparse file of many gigabytes costs nothing.
    """
    try:
        source = _open_below(now, path)
    except OSError:
        return False
    with os.fdopen(source, "rb") as file:
        found = os.fstat(source)
        same = (found.st_size, found.st_mtime_ns) == (facts["size"], facts["mtime"])
        if not same or not stat.S_ISREG(found.st_mode):
            return False
        _copy_with_holes(file.fileno(), target.fileno(), found.st_size)
        return True


def _open_below(folder: Path, path: str) -> int:
    """Open a file below a folder; neither it nor a folder on the way may be a link."""
    *above, name = path.split("/")
    at = os.open(folder, _OPEN_FOLDER)
    try:
        for part in above:
            below = os.open(part, _OPEN_FOLDER, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, _OPEN_FILE, dir_fd=at)
    finally:
        os.close(at)


def _copy_with_holes(source: int, target: int, size: int) -> None:
    """Copy an open file to another in pieces; keep its holes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(source, end, os.SEEK_DATA)
        except OSError as e:
            if e.errno == errno.ENXIO:  # the rest is one hole
                break
            raise
        end = min(os.lseek(source, start, os.SEEK_HOLE), size)
        while start < end and (piece := os.pread(source, min(_PIECE, end - start), start)):
            start += os.pwrite(target, piece, start)
        if start < end:  # it became shorter meanwhile
            break
    os.ftruncate(target, size)
