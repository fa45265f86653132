"""Waiting until what an action started has come to rest: by events, never by a fixed sleep.

`Settler` asks what the page is busy with (`activity`) and, through `settle.js` in an isolated
world (`settle_world`), for changes of the document, running animations and the short timers that
the action's handlers set (`timers.js`).

A page may never rest. So every wait has a cap, and what kept it waiting (a polled URL, a ticking
node) is left out of the next ones for as long as the document lives.
"""

from __future__ import annotations

import json
import time
from typing import Any

from web_server.settle.activity import Activity
from web_server.settle.settle_world import SettleWorld

NAVIGATION_SECONDS = 12.0
"""How long a navigation may take until its document is there."""
MOST_DEPARTURES = 15
"""How many navigations a page may begin after one action. One that begins more never rests."""
LOAD_SECONDS = 8.0
"""How long, after the document came, scripts, styles and data of a new page are waited for."""
LOAD_EVENT_SECONDS = 1.5
"""How long, after all that, the event `load` of a new page is waited for: pictures hold it up."""
REQUEST_SECONDS = 4.0
"""How long the requests that an action started are waited for."""
QUIET_SECONDS = 1.5
"""How long the document may go on changing after an action."""
WINDOW_SECONDS = 5.0
"""How long a window that a page opened may take to become a page."""
SLOW_DEPARTURES = 4
"""How many of them are too many for a page that did not rest in time."""
LONGEST_SECONDS = 12.0
"""How long one wait may take where its caller sets no end."""


class Settler:
    """Waits for a page to come to rest.

    Args:
        activity: what the page is busy with.
        token: the secret under which `timers.js` answers in that page's context.

    Attributes:
        linked_download: the URL of a link with `download` that was clicked since `arm`, or empty.
        reloading: whether the page was stopped, since it began so many navigations.
    """

    def __init__(self, activity: Activity, token: str) -> None:
        self._activity = activity
        self._token = token
        self._world = SettleWorld(activity, token)
        self._armed_at = 0.0
        self._commits_before = 0
        self._load_awaited = -1
        self._restless_document = -1
        self._untold = False
        self.linked_download = ""
        self.reloading = False

    async def attach(self) -> None:
        """Begin to listen. To be called once, before the page goes anywhere."""
        await self._activity.attach()
        await self.call("arm")  # so that the script is there when the first page is asked for

    @property
    def still(self) -> str:
        """Name of the event of the document by which `settle.js` tells that it came to rest."""
        return self._token + "still"

    async def arm(self) -> None:
        """Begin to watch the document. To be called right before an action."""
        self._activity.begin()
        self.linked_download = ""
        self._armed_at = time.monotonic()
        self._commits_before = self._activity.commits
        await self.call("arm")

    async def until_loaded(self, seconds: float) -> None:
        """Wait for pictures that were asked for since `arm`, at most so long."""
        activity = self._activity
        await activity.until(lambda: not activity.pictures, time.monotonic() + seconds)

    async def settle(self, until: float | None = None) -> dict[str, Any]:
        """Wait until the page has come to rest.

        Args:
            until: when the wait ends at the latest, by the monotonic clock; by default after
                `LONGEST_SECONDS`.

        Returns:
            `navigated`: a new document came since `arm`; `changed`: the document changed;
            `late`: a cap ended the wait; `copied`: the page copied something; `failure`: why a
            navigation came to nothing, or empty;
            `unseen`: what changed cannot be told: the focus is in a foreign frame, or there is a
            canvas;
            `seen`: what listens for `still` heard of the very end, after which nothing came.
        """
        activity = self._activity
        until = time.monotonic() + LONGEST_SECONDS if until is None else until
        changes = 0
        late = copied = unseen = seen = False
        deadline = min(until, time.monotonic() + REQUEST_SECONDS)
        while True:
            if await self._stop_reloading() or time.monotonic() > until:
                late = True
                break
            quiet = await self.call("quiet", QUIET_SECONDS * 1000)
            seen = quiet is not None and bool(quiet["seen"])
            if quiet is not None:
                changes += quiet["changes"]
                late = late or quiet["late"]
                unseen = bool(quiet["unseen"])
                copied = copied or quiet["copied"]
                self.linked_download = next(iter(quiet["downloads"]), self.linked_download)
            if activity.navigating:
                if not await self._until_committed(until):
                    late = True
                    break
                deadline = min(until, time.monotonic() + LOAD_SECONDS)
                continue
            if self._navigated and not activity.dom_ready:
                if not await activity.until(lambda: activity.dom_ready, deadline):
                    late = True
                    break
                continue
            waiting = activity.awaited
            if not waiting and (quiet is not None or time.monotonic() > deadline):
                if await self._loaded_meanwhile(until):
                    continue  # to see what the page does then
                break
            if time.monotonic() > deadline:
                late = True
                activity.leave_out(waiting)
                break
            await self._until_more_is_known(bool(waiting), deadline)
        if late and not self.reloading and activity.departures >= SLOW_DEPARTURES:
            await self._stop()
        if activity.windows_due:
            seen = False
            soon = min(until, time.monotonic() + WINDOW_SECONDS)
            await activity.until(lambda: activity.windows_due == 0, soon)
        if late:
            self._restless_document = activity.commits
        return {
            "navigated": self._navigated,
            "changed": changes > 0,
            "late": late,
            "copied": copied,
            "failure": activity.failure,
            "unseen": unseen,
            "seen": seen,
        }

    @property
    def _navigated(self) -> bool:
        """Whether a new document came since `arm`."""
        return self._activity.commits != self._commits_before

    async def _stop_reloading(self) -> bool:
        """Stop the navigation of a page that loads one document after the other.

        Returns:
            whether the page does so.
        """
        if self._activity.departures < MOST_DEPARTURES:
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
        """Wait for the event `load` of a new document, once; whether it came."""
        activity = self._activity
        if not self._navigated or activity.loaded or self._load_awaited == activity.commits:
            return False
        self._load_awaited = activity.commits
        end = min(until, time.monotonic() + LOAD_EVENT_SECONDS)
        return await activity.until(lambda: activity.loaded or activity.navigating, end)

    async def _until_more_is_known(self, waiting: bool, deadline: float) -> None:
        """Wait for the requests in flight; for anything if the document went away meanwhile."""
        activity = self._activity
        if waiting:
            await activity.until(lambda: not activity.awaited or activity.navigating, deadline)
        else:
            await activity.until(lambda: activity.told, min(deadline, time.monotonic() + 0.1))

    @property
    def keeps_changing(self) -> bool:
        """Whether the document is one that does not come to rest."""
        return self._restless_document == self._activity.commits

    @property
    def download_due(self) -> float | None:
        """When the action was begun that seems to have started a download; None if none did."""
        hinted = self._activity.download_hinted or self.linked_download
        return self._armed_at if hinted else None

    async def rest(self) -> list[Any] | None:
        """Stop watching the document.

        Returns:
            origin, local storage, session storage (both as objects) and cookies (as the document
            tells them) of the document; None if they are as they were at the last time.
        """
        again, self._untold = self._untold, True
        answer = await self.call("rest", again)
        self._untold = False
        if not isinstance(answer, str):
            return None
        told: list[Any] = json.loads(answer)
        return told

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of `settle.js`; None when the document went away meanwhile."""
        return await self._world.call(function, *arguments)
