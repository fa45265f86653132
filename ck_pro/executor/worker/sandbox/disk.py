"""The size of the working directory, which the supervisor checks against a limit."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence

MAX_NEW_FILES = 100_000
_MEGABYTE = 1 << 20
_SLACK, _SLACK_FILES = 16 * _MEGABYTE, 1000
_FAST_GROWTH, _FAST_GROWTH_FILES = 64 * _MEGABYTE, 10_000
_INTERVAL_SECONDS, _PAUSE_FACTOR = 1.0, 50
_BLOCK_BYTES = 512  # of `st_blocks`, on every file system


class DiskWatchdog:
    """Limits the total size and the number of the files in a working directory.

    Args:
        workdir: the directory.
        limit_mb: megabytes by which it may grow during the session.
        first: `held` of the session's first worker; None in that worker.
        private: whether `/proc` shows only the worker's processes. Deleted files that are still
            open count then, too.

    Attributes:
        held: bytes and files in the directory at the start of this worker.
    """

    def __init__(self, workdir: str, limit_mb: int, first: Sequence[int] | None, private: bool):
        self._workdir = workdir
        self._megabytes = limit_mb
        self._private = private
        self._free = _free(workdir)
        self._too_deep = False
        started = time.monotonic()
        self.held = self._measure_tree(None)
        self._next_check = started + _INTERVAL_SECONDS
        size, files = first or self.held
        # a worker that starts above the limit needs some room to delete files
        self._limit = max(size + limit_mb * _MEGABYTE, self.held[0] + _SLACK)
        self._files = max(files + MAX_NEW_FILES, self.held[1] + _SLACK_FILES)
        self._left = self._limit - self.held[0]
        self._left_files = self._files - self.held[1]

    def check(self) -> dict[str, object] | None:
        """Return a reason to kill the worker, or None.

        This measures the directory only if it is due, or if the file system fills quickly.
        """
        now = time.monotonic()
        free = _free(self._workdir)
        bytes_taken, files_taken = self._free[0] - free[0], self._free[1] - free[1]
        fast = bytes_taken >= max(self._left // 2, _FAST_GROWTH)
        fast |= files_taken >= max(self._left_files // 2, _FAST_GROWTH_FILES)
        if now < self._next_check and not fast:
            return None
        size, files = self._measure_tree(self._files)
        if self._private:
            size += self._size_of_deleted()
        took = time.monotonic() - now
        self._next_check = now + max(_INTERVAL_SECONDS, _PAUSE_FACTOR * took)
        self._free = free
        self._left, self._left_files = self._limit - size, self._files - files
        if size > self._limit:
            return {"why": "disk", "limit": self._megabytes}
        if self._too_deep:
            return {"why": "deep"}
        if files > self._files:
            return {"why": "files", "limit": MAX_NEW_FILES}
        return None

    def _measure_tree(self, most_files: int | None) -> tuple[int, int]:
        seen: set[int] = set()  # files with several names
        size = files = 0
        folders = [self._workdir]
        while folders and (most_files is None or files <= most_files):
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        files += 1
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                            continue
                        try:
                            facts = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # removed meanwhile
                            continue
                        if facts.st_nlink > 1:
                            if facts.st_ino in seen:
                                continue
                            seen.add(facts.st_ino)
                        size += facts.st_blocks * _BLOCK_BYTES
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:  # else removed meanwhile
                    self._too_deep = True
        return size, files

    def _size_of_deleted(self) -> int:
        """Return the total size of deleted files that are still open."""
        sizes: dict[int, int] = {}
        device = os.stat(self._workdir).st_dev  # noqa: PTH116
        for pid in os.listdir("/proc"):  # noqa: PTH208
            if not pid.isdigit() or pid == "1":
                continue
            try:
                for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                    facts = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                    if facts.st_nlink or facts.st_dev != device:
                        continue
                    if stat.S_ISREG(facts.st_mode):
                        sizes[facts.st_ino] = facts.st_blocks * _BLOCK_BYTES
            except OSError:  # the process has ended
                continue
        return sum(sizes.values())


def _free(place: str) -> tuple[int, int]:
    """Return the free bytes and file entries of a file system (some report 0 entries)."""
    try:
        facts = os.statvfs(place)
    except OSError:
        return 0, 0
    return facts.f_bfree * facts.f_frsize, facts.f_ffree
