"""Limits on what one page may start: frames, workers, requests, and reports of its scripts.

All pages share one connection to Chromium, and Chromium reports each frame, worker, request,
console message and script error over it. A page without limits would block every other session.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from playwright.async_api import Page

MAX_FRAMES = 300
MAX_WORKERS = 64
MAX_REPORTS = 2000
"""Console messages and errors that a page may report within `WINDOW_SECONDS`. Each document reports
at most 100 of each kind (`report_limits.js`), so only workers and many documents reach it."""
MAX_REQUESTS = 3000
"""Requests that a page may make within `WINDOW_SECONDS`, those of `blob:` URLs included."""
WINDOW_SECONDS = 10.0


class PageLimits:
    """Watch one page, and report the first limit that it exceeds.

    Args:
        page: the page.
        on_excess: called once with the reason, such as "opened more than 300 frames".
    """

    def __init__(self, page: Page, on_excess: Callable[[str], None]) -> None:
        self._page = page
        self._on_excess = on_excess
        self._exceeded = False
        self._reports = self._requests = 0
        self._window_end = 0.0
        page.on("frameattached", lambda _frame: self._check_frames())
        page.on("worker", lambda _worker: self._check_workers())
        page.on("request", lambda _request: self._count_request())
        page.on("console", lambda _message: self.count_report())
        page.on("pageerror", lambda _error: self.count_report())

    def busy_reason(self) -> str:
        """Return what may keep the page busy, such as "it runs 40 workers"; empty if nothing."""
        frames, workers = len(self._page.frames) - 1, len(self._page.workers)
        reasons = [f"it has {frames} frames"] if frames >= MAX_FRAMES / 10 else []
        reasons += [f"it runs {workers} workers"] if workers >= MAX_WORKERS / 10 else []
        return " and ".join(reasons)

    def count_report(self) -> None:
        """Count a console message, an error or a log entry of the page."""
        self._begin_window()
        self._reports += 1
        if self._reports > MAX_REPORTS:
            most = f"more than {MAX_REPORTS:,} messages and errors"
            self._exceed(f"reported {most} in {WINDOW_SECONDS:g} s")

    def _count_request(self) -> None:
        self._begin_window()
        self._requests += 1
        if self._requests > MAX_REQUESTS:
            self._exceed(f"made more than {MAX_REQUESTS:,} requests in {WINDOW_SECONDS:g} s")

    def _begin_window(self) -> None:
        """Count from zero if the last window is over."""
        now = time.monotonic()
        if now >= self._window_end:
            self._window_end = now + WINDOW_SECONDS
            self._reports = self._requests = 0

    def _check_frames(self) -> None:
        if len(self._page.frames) > MAX_FRAMES + 1:
            self._exceed(f"opened more than {MAX_FRAMES} frames")

    def _check_workers(self) -> None:
        if len(self._page.workers) > MAX_WORKERS:
            self._exceed(f"started more than {MAX_WORKERS} workers")

    def _exceed(self, reason: str) -> None:
        if not self._exceeded:
            self._exceeded = True
            self._on_excess(reason)
