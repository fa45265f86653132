"""`Downloads`: the downloaded files of a browser, copied to the working directory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from ck_pro.exceptions import ToolError
from ck_pro.files.kinds import is_document
from ck_web.browser.client import RequestRefused
from ck_web.browser.files import safe_name, write_inside
from web_server.contract import Observation

DOWNLOADS = "downloads"
"""Folder of the working directory for copies of downloads."""

MAX_FILE = 100_000_000
MAX_TOTAL = 1_000_000_000
"""Maximum bytes of one copy, and of all copies of a run."""


class Downloads:
    """The copies of one browser's downloads in the working directory.

    File names from web sites are sanitized. No path or link leads out of the directory.

    Args:
        workdir: the working directory.
        fetch: returns the content of a download by its path on the server; may raise
            `RequestRefused`.
    """

    def __init__(self, workdir: Path, fetch: Callable[[str], bytes]):
        self._workdir = workdir
        self._fetch = fetch
        self._copies: dict[str, str] = {}  # path on the server -> path in the working directory
        self._bytes = 0

    @property
    def copies(self) -> tuple[str, ...]:
        """Paths of the copies, relative to the working directory."""
        return tuple(copy for copy in self._copies.values() if copy)

    def known(self) -> dict[str, str]:
        """Return path on the server -> path of the copy, "" for no copy; JSON-able."""
        return dict(self._copies)

    def restore(self, known: Mapping[str, str]) -> None:
        """Take over the copies of an earlier `Downloads` of the same browser and directory.

        Args:
            known: what its `known` returned. A copy that the code has moved or deleted is not made
                again.
        """
        self._copies.update(known)
        for copy in self.copies:
            with contextlib.suppress(OSError):
                self._bytes += (self._workdir / copy).lstat().st_size

    def copy_new(self, seen: Observation) -> list[str]:
        """Copy the new downloads of an observation; return one line for each."""
        known = {d.path: d for d in seen.downloads}
        lines = []
        for path in seen.downloaded_file_path:
            if path not in self._copies:
                info = known.get(path)
                name, size = (info.name, info.size) if info else (path, 0)
                lines.append(self._copy(path, name, size))
        return lines

    def _copy(self, path: str, name: str, size: int) -> str:
        self._copies[path] = ""
        if refused := self._too_large(name, size):
            return refused
        try:
            data = self._fetch(path)
            if refused := self._too_large(name, len(data)):
                return refused
            local = f"{DOWNLOADS}/{safe_name(name)}"
            local = write_inside(self._workdir, local, data, unique=True)
        except (RequestRefused, ToolError) as e:
            return f"cannot copy the download {name!r}: {e}"
        self._bytes += len(data)
        self._copies[path] = local
        reads = f", or call read_document({local!r})" if is_document(local) else ""
        return f"your code can open the download as {local!r}{reads}"

    def _too_large(self, name: str, size: int) -> str:
        """Return the reason not to copy a file; empty if it is small enough."""
        if size > MAX_FILE:
            return f"the download {name!r} has {size:,} bytes: too large, not copied"
        if self._bytes + size > MAX_TOTAL:
            return f"the download {name!r} is not copied: this run's downloads are too large"
        return ""

    def save_new(self, seen: Observation, local: str) -> str:
        """Write the newest download to a path; return the path.

        Args:
            seen: an observation after the download.
            local: a path in the working directory.

        Raises:
            ToolError: no new download, or it is too large, or the path cannot be written.
        """
        new = [path for path in seen.downloaded_file_path if path not in self._copies]
        if not new:
            raise ToolError("the browser server reports no new download")
        path = new[-1]
        self._copies[path] = ""
        size = next((d.size for d in seen.downloads if d.path == path), 0)
        if refused := self._too_large(local, size):
            raise ToolError(refused)
        data = self._fetch(path)
        written = self._copies[path] = write_inside(self._workdir, local, data)
        self._bytes += len(data)
        return written

    def save(self, remote: str, local: str) -> str:
        """Write a download to another path; return the path.

        Args:
            remote: its path on the server, or that of its copy, or the last part of either.
            local: a path in the working directory.

        Raises:
            ToolError: the download is unknown, or the path cannot be written.
        """
        asked = remote.strip().removeprefix("./")
        for path, copy in self._copies.items():
            if asked in (path, copy, path.rsplit("/", 1)[-1], copy.rsplit("/", 1)[-1]):
                return write_inside(self._workdir, local, self._fetch(path))
        known = ", ".join(self.copies) or "none"
        raise ToolError(f"no downloaded file {remote!r}; downloads: {known}")
