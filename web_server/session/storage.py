"""Backup of what a session would lose with its Chromium: cookies, storage and URLs."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from playwright.async_api import BrowserContext, Error

from web_server.javascript import call_script
from web_server.session.page import Tab
from web_server.view import one_line

_SECONDS = 5.0
_MAX_REASON = 300


class Storage:
    """Cookies and storage of a session, for the context of the next Chromium.

    Args:
        given: the client's `storageState`, used until there is a newer state.
    """

    def __init__(self, given: dict[str, Any] | None) -> None:
        self.given = given
        self._cookies: list[Any] = []
        self._origins: dict[str, dict[str, str]] = {}

    def state(self) -> dict[str, Any] | None:
        """Return cookies and local storage as Playwright's `storage_state`."""
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

    async def save(self, context: BrowserContext, tab: Tab) -> None:
        """Stop watching a tab, and save its present state."""
        tab.last_url = tab.url()
        activity = tab.page_handle.activity
        requests = activity.requests
        try:
            stored = await asyncio.wait_for(tab.page_handle.settler.rest(), _SECONDS)
            if stored is not None or requests != tab.remembered_requests:
                # Scripts change cookies, which `stored` shows; so do responses.
                self._cookies = list(await asyncio.wait_for(context.cookies(), _SECONDS))
                tab.remembered_requests = requests
        except (Error, asyncio.TimeoutError):
            return
        if stored is not None and stored[0].startswith("http"):
            origin, local, session, _ = stored
            self._origins[origin] = local
            tab.session_storage[origin] = json.dumps(session)


def storage_state_problem(error: Exception) -> str:
    """Return one line on why Chromium or Playwright refused the client's `storageState`."""
    text = str(error).split("\nCall log", 1)[0].strip()
    reason = text.splitlines()[-1] if text else type(error).__name__
    reason = re.sub(r"^Protocol error \([\w.]+\): ", "", reason.strip().removesuffix(":"))
    reason = one_line(reason)[:_MAX_REASON]
    if reason.startswith("storageState"):
        return reason
    return f"storageState cannot be used: {reason}"


def session_storage_script(tab: Tab) -> str:
    """Return a script that restores the session storage of a tab in its new page."""
    return call_script("session", "session_storage", tab.session_storage)
