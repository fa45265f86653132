"""What a session would lose with its Chromium: cookies, local and session storage, URLs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from playwright.async_api import BrowserContext, Error

from web_server.javascript import call_script
from web_server.session.page import Tab

_SECONDS = 5.0


class Storage:
    """Notes it while Chromium lives, and gives it to the next one.

    Args:
        given: the client's own `storageState`, in force until there is something newer.
    """

    def __init__(self, given: dict[str, Any] | None) -> None:
        self.given = given
        self._cookies: list[Any] = []
        self._origins: dict[str, dict[str, str]] = {}

    def state(self) -> dict[str, Any] | None:
        """Cookies and local storage in the form of Playwright's `storage_state`."""
        if not self._cookies and not self._origins:
            return self.given
        return {
            "cookies": self._cookies,
            "origins": [
                {
                    "origin": origin,
                    "localStorage": [{"name": k, "value": v} for k, v in items.items()],
                }
                for origin, items in self._origins.items()
            ],
        }

    async def note(self, context: BrowserContext, tab: Tab) -> None:
        """Stop watching a tab, and note what it holds now."""
        tab.last_url = tab.url()
        activity = tab.page_handle.activity
        requests = activity.requests
        try:
            told = await asyncio.wait_for(tab.page_handle.settler.rest(), _SECONDS)
            if told is not None or requests != tab.remembered_requests:
                # Cookies change by scripts, which `told` shows, or by what a server answers.
                self._cookies = list(await asyncio.wait_for(context.cookies(), _SECONDS))
                tab.remembered_requests = requests
        except (Error, asyncio.TimeoutError):
            return
        if told is not None and told[0].startswith("http"):
            origin, local, session, _ = told
            self._origins[origin] = local
            tab.session_storage[origin] = json.dumps(session)


def session_storage_script(tab: Tab) -> str:
    """Return a script that restores the session storage of a tab in its new page."""
    return call_script("session", "session_storage", tab.session_storage)
