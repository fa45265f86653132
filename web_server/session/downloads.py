"""The downloads of one session, in its own folder, limited in size and number."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, CDPSession, Error

from web_server.contract import Download

ROOT = "DownloadedFiles"
"""First part of a download's path on the wire."""
MAX_FILES = 200


class Downloads:
    """The downloads of one session.

    Args:
        browser_id: the session's id, the second part of every path.
        folder: the session's own empty folder.
        max_bytes: size limit of one download, and half the limit of all together.
        note: called with one line when a download ends.
        owns: returns whether a frame, by its DevTools id, belongs to a page of the session.

    Attributes:
        done: the complete downloads, in the order in which they ended.
        restoring: pages were loaded again after a crash, and no action followed. Downloads that
            they repeat are cancelled.
    """

    def __init__(
        self,
        browser_id: str,
        folder: Path,
        max_bytes: int,
        note: Callable[[str], None],
        owns: Callable[[str], bool],
    ) -> None:
        self._browser_id = browser_id
        self._incoming = folder / "incoming"
        self._folder = folder / "files"
        self._max_bytes = max_bytes
        self._note = note
        self._owns = owns
        self._unclaimed: dict[str, str] = {}
        self._active: dict[str, str] = {}
        self._sources: dict[str, str] = {}
        self._complete: set[str] = set()
        self._expected: dict[str, asyncio.Future[Download | str]] = {}
        self._awaited: dict[str, asyncio.Future[Download | str]] = {}
        self._last_start = 0.0
        self._started = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._cdp: CDPSession | None = None
        self._context_id = ""
        self._cancelling: set[asyncio.Task[None]] = set()
        self.done: list[Download] = []
        self.restoring = False
        self._incoming.mkdir(parents=True, exist_ok=True)
        self._folder.mkdir(parents=True, exist_ok=True)

    async def attach(self, browser: Browser, context_id: str) -> None:
        """Start receiving the downloads of a browser context.

        Args:
            browser: its Chromium.
            context_id: its DevTools id.
        """
        self._active.clear()
        self._unclaimed.clear()
        self._sources.clear()
        self._idle.set()
        self._context_id = context_id
        self._cdp = await browser.new_browser_cdp_session()
        self._cdp.on("Browser.downloadWillBegin", self._on_begin)
        self._cdp.on("Browser.downloadProgress", self._on_progress)
        await self._cdp.send(
            "Browser.setDownloadBehavior",
            {
                "behavior": "allowAndName",
                "browserContextId": context_id,
                "downloadPath": str(self._incoming),
                "eventsEnabled": True,
            },
        )

    async def detach(self) -> None:
        """Stop receiving; unfinished downloads end with their context."""
        if self._cdp is not None:
            try:
                await self._cdp.detach()
            except Error:
                pass  # Chromium ended already
            self._cdp = None

    @property
    def active(self) -> bool:
        """Whether a download is in progress."""
        return bool(self._active)

    def has(self, url: str) -> bool:
        """Return whether a URL has been downloaded."""
        return url.partition("#")[0] in self._complete

    def expect(self, frame_id: str) -> asyncio.Future[Download | str]:
        """Return a future of the next download of a frame, or of the reason why it failed.

        Only the future reports that download.
        """
        future: asyncio.Future[Download | str] = asyncio.get_running_loop().create_future()
        self._expected[frame_id] = future
        return future

    def expect_no_more(self, frame_id: str) -> None:
        """Cancel the future that `expect` returned for a frame, and its download."""
        self._expected.pop(frame_id).cancel()
        for guid in [guid for guid, future in self._awaited.items() if future.cancelled()]:
            self._forget(guid)
            self._cancel_soon(guid)

    async def wait_for_begin(self, since: float, seconds: float) -> bool:
        """Wait until a download starts after `since`, by the monotonic clock.

        Args:
            since: the earliest start.
            seconds: time limit of the wait.

        Returns:
            whether a download started.
        """
        end = time.monotonic() + seconds
        while self._last_start < since and time.monotonic() < end:
            self._started.clear()
            try:
                await asyncio.wait_for(self._started.wait(), end - time.monotonic())
            except asyncio.TimeoutError:
                break  # it was not a download
        return self._last_start >= since

    async def wait(self, seconds: float) -> None:
        """Wait until no download is in progress, at most so many seconds."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except asyncio.TimeoutError:
            for name in self._active.values():
                self._note(f"still downloading {name}")

    def find(self, wire_path: str) -> Path | None:
        """Return the file of a download by its wire path; None if it is not of this session."""
        normal = "/".join(wire_parts(wire_path))
        known = any(download.path == normal for download in self.done)
        path = self._folder / normal.rpartition("/")[2]
        return path if known and path.is_file() else None

    def _on_begin(self, event: dict[str, Any]) -> None:
        # Chromium reports the downloads of all sessions to each of them.
        guid = event["guid"]
        name = self._unclaimed[guid] = safe_name(event.get("suggestedFilename", ""))
        self._sources[guid] = _source(event.get("url", ""), name)
        if event["frameId"] in self._expected:
            self._awaited[guid] = self._expected[event["frameId"]]
        if self._owns(event["frameId"]):
            self._claim(guid)

    def _claim(self, guid: str) -> None:
        """Add a download to this session."""
        name = self._unclaimed.pop(guid)
        self._last_start = time.monotonic()
        self._started.set()
        again = self.restoring and guid not in self._awaited
        if again and self._sources[guid] in self._complete:
            self._forget(guid)
            self._cancel_soon(guid)
            return
        self._active[guid] = name
        self._idle.clear()
        if len(self.done) + len(self._active) > MAX_FILES:
            self._cancel(guid, f"more than {MAX_FILES} downloads")

    def _on_progress(self, event: dict[str, Any]) -> None:
        guid = event["guid"]
        if guid in self._unclaimed:
            # A window that opens only for a download has an unknown frame.
            if any(self._incoming.glob(f"{guid}*")):
                self._claim(guid)
            elif event["state"] != "inProgress":
                del self._unclaimed[guid], self._sources[guid]
        if guid not in self._active:
            return
        if event["state"] == "completed":
            self._finish(guid)
        elif event["state"] == "canceled":
            self._report(guid, f"download of {self._active[guid]} was cancelled")
            self._forget(guid)
        else:
            size = max(event.get("receivedBytes", 0), event.get("totalBytes", 0))
            used = sum(download.size for download in self.done)
            if size > self._max_bytes or used + size > 2 * self._max_bytes:
                self._cancel(guid, f"more than {self._max_bytes:,} bytes")

    def _finish(self, guid: str) -> None:
        name = self._unique(self._active[guid])
        path = self._folder / name
        try:
            (self._incoming / guid).rename(path)
            size = path.stat().st_size
        except OSError as error:
            self._report(guid, f"download of {name} failed: {error.strerror}")
        else:
            wire_path = f"{ROOT}/{self._browser_id}/{name}"
            self._complete.add(self._sources[guid])
            done = Download(path=wire_path, name=self._active[guid], size=size)
            self.done.append(done)
            self._report(guid, f"downloaded {name} ({size:,} bytes)", done)
        self._forget(guid)

    def _cancel(self, guid: str, why: str) -> None:
        self._report(guid, f"download of {self._active[guid]} refused: {why}")
        self._forget(guid)
        self._cancel_soon(guid)

    def _report(self, guid: str, line: str, done: Download | None = None) -> None:
        """Report how a download ended: to the future that expects it, or as an event."""
        future = self._awaited.pop(guid, None)
        if future is None:
            self._note(line)
        elif not future.done():
            future.set_result(done or line)

    def _cancel_soon(self, guid: str) -> None:
        task = asyncio.ensure_future(self._cancel_in_browser(guid))
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def _cancel_in_browser(self, guid: str) -> None:
        if self._cdp is None:
            return
        arguments = {"guid": guid, "browserContextId": self._context_id}
        try:
            await self._cdp.send("Browser.cancelDownload", arguments)
        except Error:
            pass  # it ended meanwhile
        (self._incoming / guid).unlink(missing_ok=True)

    def _forget(self, guid: str) -> None:
        self._active.pop(guid, None)
        self._sources.pop(guid, None)
        self._awaited.pop(guid, None)
        if not self._active:
            self._idle.set()

    def _unique(self, name: str) -> str:
        stem, dot, suffix = name.rpartition(".")
        if not stem:
            stem, dot, suffix = name, "", ""
        candidate = name
        number = 1
        while (self._folder / candidate).exists():
            number += 1
            candidate = f"{stem} ({number}){dot}{suffix}"
        return candidate


def _source(url: str, name: str) -> str:
    """Return what identifies a download: its URL, unless that is temporary."""
    scheme = url.split(":", 1)[0]
    return f"{scheme}:{name}" if scheme in ("blob", "data") else url


def wire_parts(wire_path: str) -> list[str]:
    """Return the parts of a wire path: the root, the session's id and a name."""
    return wire_path.strip().replace("\\", "/").split("/")


def safe_name(suggested: str) -> str:
    """Return a file name that a site suggested as a safe path component of at most 120 bytes."""
    name = re.sub(r"[^\w .()+,=@-]", "_", suggested.replace("\\", "/").rsplit("/", 1)[-1])
    name = name.strip(" .") or "download"
    stem, dot, suffix = name.rpartition(".")
    if not stem or len(suffix) > 10:
        stem, dot, suffix = name, "", ""
    while len(f"{stem}{dot}{suffix}".encode()) > 120:
        stem = stem[:-1]
    return f"{stem}{dot}{suffix}"
