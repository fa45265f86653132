"""`Downloads`: the files that a browser downloaded, copied into the working directory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from ck_pro.exceptions import ToolError
from ck_web.browser.client import RequestRefused
from ck_web.browser.files import safe_name, write_inside
from web_server.contract import Observation

DOWNLOADS = "downloads"
"""Folder of the working directory that downloads are copied to."""

MAX_FILE = 100_000_000
MAX_TOTAL = 1_000_000_000
"""Most bytes of one copy, and of all copies of a run."""


class Downloads:
    """Keeps the working directory's copies of one browser's downloads.

    Names that a site proposes are made harmless; no path or link leads out of the directory.

    Args:
        workdir: the working directory.
        fetch: the content of a download by its path on the server; raises `RequestRefused`.
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
        """Path on the server -> that of the copy, empty where none was made; JSON-able."""
        return dict(self._copies)

    def remember(self, known: Mapping[str, str]) -> None:
        """Let the copies of an earlier `Downloads` on the same browser and directory be ours.

        Args:
            known: what its `known` told. A copy that the code has moved or deleted since is not
                made again.
        """
        self._copies.update(known)
        for copy in self.copies:
            with contextlib.suppress(OSError):
                self._bytes += (self._workdir / copy).lstat().st_size

    def take(self, seen: Observation) -> list[str]:
        """Copy what an observation lists and we have not yet; one line for each."""
        known = {d.path: d for d in seen.downloads}
        pending = []
        for path in seen.downloaded_file_path:
            if path not in self._copies:
                info = known.get(path)
                pending.append(
                    self._copy(path, info.name if info else path, info.size if info else 0)
                )
        return pending

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
            return f"the download {name!r} could not be copied: {e}"
        self._bytes += len(data)
        self._copies[path] = local
        return f"your code can open the download as {local!r}"

    def _too_large(self, name: str, size: int) -> str:
        if size > MAX_FILE:
            return f"the download {name!r} has {size:,} bytes: too large, not copied"
        if self._bytes + size > MAX_TOTAL:
            return f"the download {name!r} is not copied: this run's downloads are too large"
        return ""

    def save_new(self, seen: Observation, local: str) -> str:
        """Write the newest download, which was asked for under this name; the path written.

        Args:
            seen: an observation after it.
            local: a path in the working directory.

        Raises:
            ToolError: there is no new download, it is too large, or the path cannot be written.
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
        """Write a download under another name; the path that was written.

        Args:
            remote: its path on the server, or that of its copy, or the last part of either.
            local: a path in the working directory.

        Raises:
            ToolError: there is no such download, or the path cannot be written.
        """
        wanted = remote.strip().removeprefix("./")
        for path, copy in self._copies.items():
            if wanted in (path, copy, path.rsplit("/", 1)[-1], copy.rsplit("/", 1)[-1]):
                return write_inside(self._workdir, local, self._fetch(path))
        known = ", ".join(self.copies) or "none"
        raise ToolError(f"no downloaded file {remote!r}; downloaded are: {known}")
