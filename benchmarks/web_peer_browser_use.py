"""browser-use behind the protocol of `web_peer_lines`, in its own Python environment.

python web_peer_browser_use.py CHROMIUM
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from web_peer_lines import serve


class Peer:
    """Sessions of browser-use, each with its own Chromium and the default waits."""

    def __init__(self) -> None:
        import browser_use.browser.events  # now, so that no session includes the import
        from browser_use import BrowserSession  # noqa: F401

        self._click_event = browser_use.browser.events.ClickElementEvent
        self._loop = asyncio.new_event_loop()
        self._sessions: dict[int, tuple[Any, int]] = {}

    def open(self, url: str) -> dict[str, Any]:
        """Open a page in a new session."""
        return self._loop.run_until_complete(self._open(url))

    def click(self, session: int) -> dict[str, Any]:
        """Click the button and observe."""
        return self._loop.run_until_complete(self._click(session))

    def close(self, session: int) -> dict[str, Any]:
        """Close a session."""
        self._loop.run_until_complete(self._sessions.pop(session)[0].kill())
        return {}

    async def _open(self, url: str) -> dict[str, Any]:
        from browser_use import BrowserProfile, BrowserSession

        profile = BrowserProfile(
            executable_path=sys.argv[1],
            headless=True,
            chromium_sandbox=False,
            enable_default_extensions=False,
            user_data_dir=None,
            viewport={"width": 1280, "height": 720},
            no_viewport=False,
        )
        browser = BrowserSession(browser_profile=profile)
        await browser.start()
        await browser.navigate_to(url)
        text, button = await self._look(browser)
        session = len(self._sessions)
        self._sessions[session] = (browser, button)
        return {"session": session, "text": text}

    async def _look(self, browser: Any) -> tuple[str, int]:
        state = await browser.get_browser_state_summary(include_screenshot=False)
        button = next(
            (i for i, node in state.dom_state.selector_map.items() if node.tag_name == "button"), -1
        )
        return state.dom_state.llm_representation(), button

    async def _click(self, session: int) -> dict[str, Any]:
        browser, button = self._sessions[session]
        node = await browser.get_element_by_index(button)
        event = browser.event_bus.dispatch(self._click_event(node=node))
        await event
        await event.event_result(raise_if_any=True, raise_if_none=False)
        text, button = await self._look(browser)
        self._sessions[session] = (browser, button)
        return {"text": text}


if __name__ == "__main__":
    serve(Peer())
