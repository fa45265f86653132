"""Wait until the effects of an action have finished: by events, without fixed delays.

`Settler` waits for requests and navigations (`activity`) and, by js/settle.js in an isolated world
(`settle_world`), for changes of the document, animations and the short timers that the action's
handlers set (js/timers.js).

Some pages never become quiet. Each wait has a limit, and later waits ignore its cause (a polled
URL, a ticking node) until the next document.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from web_server.settle.activity import Activity
from web_server.settle.settle_world import SettleWorld

NAVIGATION_SECONDS = 12.0
"""Limit for a navigation to show its document."""
MAX_NAVIGATIONS = 15
"""A page that starts more navigations after one action never becomes quiet."""
LOAD_SECONDS = 8.0
"""Limit for the scripts, styles and data of a new document, and for an application to start."""
LOAD_EVENT_SECONDS = 1.5
"""Limit for the event `load` after that, which images may delay."""
REQUEST_SECONDS = 4.0
"""Limit for the requests that an action started."""
QUIET_SECONDS = 1.5
"""Limit for changes of the document after an action."""
WINDOW_SECONDS = 5.0
"""Limit for a window that a page opened to become a page."""
SLOW_NAVIGATIONS = 4
"""The same limit as `MAX_NAVIGATIONS` for a page that was not quiet in time."""
BLANK_SECONDS = 8.0
"""Limit for a new document with script files to show something."""
BLANK_PAUSE_SECONDS = 2.0
"""The same if the document requests nothing meanwhile."""
MANY_REQUESTS = 3
"""A new document whose scripts have made so many requests is an application that loads data."""
CALM_SECONDS = 0.5
"""How long such a document must stay unchanged."""
LONGEST_SECONDS = 12.0
"""Default limit for one wait."""


@dataclass
class Settled:
    """The result of a wait.

    Attributes:
        navigated: whether a new document arrived since `arm`.
        changed: whether the document changed.
        late: whether a limit ended the wait.
        copied: whether the page copied something.
        invalid: name and message of the field because of which a form was not sent; else empty.
        failure: why a navigation failed, or empty.
        unseen: whether the page may have changed undetected: the focus is in a frame of another
            origin, or a canvas is in view.
        observed: whether `Observer.observe_when` observed the quiet page, and nothing followed.
    """

    navigated: bool = False
    changed: bool = False
    late: bool = False
    copied: bool = False
    invalid: tuple[str, ...] = ()
    failure: str = ""
    unseen: bool = False
    observed: bool = False


class Settler:
    """Wait for a page to become quiet.

    Args:
        activity: the activity of the page.
        token: the secret under which js/timers.js answers in this page's context.

    Attributes:
        linked_download: URL of a link with `download` that was clicked since `arm`, or empty.
        reloading: whether the page was stopped because it navigated too often.
    """

    def __init__(self, activity: Activity, token: str) -> None:
        self._activity = activity
        self._token = token
        self._world = SettleWorld(activity, token)
        self._armed_at = 0.0
        self._commits_before = 0
        self._load_awaited = -1
        self._restless_document = -1
        self._blank_awaited = -1
        self._blank = False
        self._grows = False
        self._slow = False
        self._reported_document = -1
        self._report_lost = False
        self.linked_download = ""
        self.reloading = False

    async def attach(self) -> None:
        """Subscribe to the page's events. Call once, before the first navigation."""
        await self._activity.attach()
        await self.call("arm")  # loads the script before the first navigation

    @property
    def quiet_event(self) -> str:
        """Name of the event that js/settle.js dispatches when the document is quiet."""
        return self._token + "still"

    async def arm(self, presses_keys: bool = False) -> None:
        """Start to watch the document. Call right before an action.

        Args:
            presses_keys: the action presses keys; of the animations that follow, `settle` waits
                only for the short ones, as games play a longer one after each key.
        """
        self._activity.begin()
        self._slow = False
        self.linked_download = ""
        self._armed_at = time.monotonic()
        self._commits_before = self._activity.commits
        await self.call("arm", presses_keys)

    async def wait_for_images(self, seconds: float) -> None:
        """Wait for images that were requested since `arm`, at most so long."""
        activity = self._activity
        await activity.until(lambda: not activity.loading_images, time.monotonic() + seconds)

    async def settle(self, until: float | None = None) -> Settled:
        """Wait until the effects of the action have finished.

        Args:
            until: end of the wait on the monotonic clock; by default after `LONGEST_SECONDS`.
        """
        activity = self._activity
        until = time.monotonic() + LONGEST_SECONDS if until is None else until
        settled = await self._until_quiet(until)
        if settled.late and not self.reloading and activity.navigations >= SLOW_NAVIGATIONS:
            await self._stop()
        if activity.pending_windows:
            settled.observed = False
            soon = min(until, time.monotonic() + WINDOW_SECONDS)
            await activity.until(lambda: activity.pending_windows == 0, soon)
        if settled.late:
            self._restless_document = activity.commits
        settled.navigated = self._navigated
        settled.failure = activity.failure
        return settled

    async def _until_quiet(self, until: float) -> Settled:
        """Wait until documents and requests are quiet, or a limit is reached (`late`)."""
        activity = self._activity
        settled = Settled()
        started = time.monotonic()
        while True:
            seconds = LOAD_SECONDS if self._navigated else REQUEST_SECONDS
            deadline = min(until, started + seconds)
            if await self._stop_reloading() or time.monotonic() > until:
                settled.late = True
                break
            quiet = await self._wait_for_document(settled)
            if activity.navigating:
                if not await self._until_committed(until):
                    settled.late = True
                    break
                started = time.monotonic()
                continue
            if self._navigated and not activity.dom_ready:
                if not await activity.until(lambda: activity.dom_ready, deadline):
                    settled.late = True
                    break
                continue
            requests = activity.pending_requests
            if not requests and (quiet or time.monotonic() > deadline):
                if await self._loaded_meanwhile(until):
                    continue  # the handlers of `load` may have started something
                if await self._filled_meanwhile(until):
                    continue
                if self._grows and time.monotonic() < deadline:
                    settled.late = False
                    continue
                if await self._changes_soon(deadline):
                    continue
                break
            if time.monotonic() > deadline:
                settled.late = True
                self._slow = True
                activity.ignore_requests(requests)
                break
            await self._until_requests_end(bool(requests), deadline)
        return settled

    async def _wait_for_document(self, settled: Settled) -> bool:
        """Wait until the document is quiet; False if it was replaced meanwhile."""
        quiet = await self.call("quiet", QUIET_SECONDS * 1000, self._navigated)
        settled.observed = quiet is not None and bool(quiet["seen"])
        if quiet is None:
            return False
        settled.changed = settled.changed or quiet["changes"] > 0
        settled.late = settled.late or quiet["late"]
        settled.unseen = bool(quiet["unseen"])
        self._blank = bool(quiet["blank"])
        self._grows = bool(quiet["grows"])
        settled.copied = settled.copied or quiet["copied"]
        settled.invalid = tuple(map(str, quiet["invalid"] or ()))
        self.linked_download = next(iter(quiet["downloads"]), self.linked_download)
        return True

    @property
    def _navigated(self) -> bool:
        """Whether a new document arrived since `arm`."""
        return self._activity.commits != self._commits_before

    async def _stop_reloading(self) -> bool:
        """Stop a page that navigates again and again; returns whether it does."""
        if self._activity.navigations < MAX_NAVIGATIONS:
            return False
        await self._stop()
        return True

    async def _stop(self) -> None:
        self.reloading = True
        await self._activity.stop_scripts()

    async def _until_committed(self, until: float) -> bool:
        activity = self._activity
        end = min(until, time.monotonic() + NAVIGATION_SECONDS)
        return await activity.until(lambda: not activity.navigating, end)

    async def _loaded_meanwhile(self, until: float) -> bool:
        """Wait for the event `load` of a new document, once; returns whether it fired."""
        activity = self._activity
        if not self._navigated or activity.loaded or self._load_awaited == activity.commits:
            return False
        self._load_awaited = activity.commits
        end = min(until, time.monotonic() + LOAD_EVENT_SECONDS)
        return await activity.until(lambda: activity.loaded or activity.navigating, end)

    async def _filled_meanwhile(self, until: float) -> bool:
        """Wait for a new document that is blank to show something; returns whether it waited.

        An application loads its parts step by step, so the document may be quiet in between.
        """
        activity = self._activity
        if not self._navigated or not self._blank or self._blank_awaited == activity.commits:
            return False
        self._blank_awaited = activity.commits
        end = min(until, time.monotonic() + BLANK_SECONDS)
        while (left := end - time.monotonic()) > 0:
            before = activity.requests
            filled = await self.call("filled", min(left, BLANK_PAUSE_SECONDS) * 1000)
            if filled is not False:
                break
            if activity.requests == before and not activity.pending_requests:
                break
        return True

    async def _changes_soon(self, until: float) -> bool:
        """Wait for the next part of a document that loads data; return whether one came.

        An application pauses between its parts: it waits for messages, workers and long timers.
        """
        activity = self._activity
        if not self._navigated or len(activity.background) < MANY_REQUESTS:
            return False
        before = activity.requests
        seconds = min(CALM_SECONDS, until - time.monotonic())
        if seconds <= 0:
            return False
        changed = await self.call("changed", seconds * 1000)
        return changed is not False or activity.requests != before

    async def _until_requests_end(self, pending: bool, deadline: float) -> None:
        """Wait for pending requests; without any, for the next event."""
        activity = self._activity
        if pending:
            await activity.until(
                lambda: not activity.pending_requests or activity.navigating, deadline
            )
        else:
            await activity.until(lambda: activity.has_events, min(deadline, time.monotonic() + 0.1))

    def take_notice(self) -> str:
        """Message if the document is still loading or, once, that it keeps changing; or empty."""
        document = self._activity.commits
        if self._blank and self._blank_awaited == document:
            return "the page is still loading: it shows nothing yet"
        if self._slow:
            self._slow = False
            return "the page is still loading: values may be placeholders"
        if self._restless_document != document or self._reported_document == document:
            return ""
        self._reported_document = document
        return "the page keeps changing"

    @property
    def download_due(self) -> float | None:
        """Start time of an action that seems to have started a download; None if it did not."""
        hinted = self._activity.download_hinted or self.linked_download
        return self._armed_at if hinted else None

    async def rest(self) -> list[Any] | None:
        """Stop watching the document.

        Returns:
            origin, local storage, session storage (both as objects) and the text of
            `document.cookie`; None if they have not changed.
        """
        repeat, self._report_lost = self._report_lost, True  # until this call returns
        answer = await self.call("rest", repeat)
        self._report_lost = False
        if not isinstance(answer, str):
            return None
        state: list[Any] = json.loads(answer)
        return state

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of js/settle.js; None if the document was replaced meanwhile."""
        return await self._world.call(function, *arguments)
