"""How much the working directory holds: what the watchdog of a session looks at beside memory."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence

MAX_NEW_FILES = 100_000
_MEGABYTE = 1 << 20
_SLACK = 16 * _MEGABYTE
_QUICK = 64 * _MEGABYTE
_SLACK_FILES, _QUICK_FILES = 1000, 10_000
_EVERY_SECONDS, _SHARE = 1.0, 50
_BLOCK = 512  # of `st_blocks`, whatever the file system's own are


class Disk:
    """Watches the files of a working directory: their size and their number.

    Args:
        workdir: the directory.
        limit_mb: megabytes that may be added to what it held at the beginning of the session.
        first: what it held then, as `held` of the session's first worker; None for the first one.
        private: `/proc` shows the worker's processes only: files that have no name are found too.
    """

    def __init__(self, workdir: str, limit_mb: int, first: Sequence[int] | None, private: bool):
        self._workdir = workdir
        self._megabytes = limit_mb
        self._private = private
        self._free = _free(workdir)
        self._too_deep = False
        began = time.monotonic()
        self.held = self._measure_tree(None)
        self._look_at = began + _EVERY_SECONDS
        size, files = self.held if first is None else first
        # what is too full already may still be cleared up
        self._limit = max(size + limit_mb * _MEGABYTE, self.held[0] + _SLACK)
        self._files = max(files + MAX_NEW_FILES, self.held[1] + _SLACK_FILES)
        self._left = self._limit - self.held[0]
        self._left_files = self._files - self.held[1]

    def look(self) -> dict[str, object] | None:
        """Give why all must end, or None. Cheap, save if much was written or some time went by."""
        now = time.monotonic()
        free = _free(self._workdir)
        bytes_gone, files_gone = self._free[0] - free[0], self._free[1] - free[1]
        filling = bytes_gone >= max(self._left // 2, _QUICK)
        filling |= files_gone >= max(self._left_files // 2, _QUICK_FILES)
        if now < self._look_at and not filling:
            return None
        size, files = self._measure_tree(self._files)
        if self._private:
            size += self._nameless()
        self._look_at = now + max(_EVERY_SECONDS, _SHARE * (time.monotonic() - now))
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
        seen: set[int] = set()  # files of several names
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
                        except FileNotFoundError:  # it went away; the others are still there
                            continue
                        if facts.st_nlink > 1:
                            if facts.st_ino in seen:
                                continue
                            seen.add(facts.st_ino)
                        size += facts.st_blocks * _BLOCK
            except OSError as error:  # the folder went away while we looked
                if error.errno == errno.ENAMETOOLONG:  # or so deep that it cannot be measured
                    self._too_deep = True
        return size, files

    def _nameless(self) -> int:
        """Sum up the files that were deleted while they were open."""
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
                        sizes[facts.st_ino] = facts.st_blocks * _BLOCK
            except OSError:  # its process has ended
                continue
        return sum(sizes.values())


def _free(place: str) -> tuple[int, int]:
    """Give the bytes and the files that the file system still has room for (some: 0 files)."""
    try:
        facts = os.statvfs(place)
    except OSError:
        return 0, 0
    return facts.f_bfree * facts.f_frsize, facts.f_ffree
