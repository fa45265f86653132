"""browsergym-core behind the line protocol of `web_peers`; runs in the peer's own Python.

    python web_peer_browsergym.py CHROMIUM DELAY

DELAY is the seconds that it waits before it observes (its default is 0.5).
"""

from __future__ import annotations

import re
import sys
from typing import Any

from web_peer_lines import serve


class Peer:
    """Sessions of BrowserGym: one environment, and so one Chromium, for each."""

    def __init__(self) -> None:
        from browsergym.core.env import BrowserEnv
        from browsergym.core.task import OpenEndedTask
        from browsergym.utils.obs import flatten_axtree_to_str
        from playwright.sync_api import BrowserType

        launch = BrowserType.launch

        def launch_given(self: Any, **kwargs: Any) -> Any:  # its chat window takes no settings
            return launch(self, **{**kwargs, "executable_path": sys.argv[1]})

        BrowserType.launch = launch_given
        self._flatten = flatten_axtree_to_str
        self._make = lambda url: BrowserEnv(
            OpenEndedTask,
            {"start_url": url, "goal": "count"},
            headless=True,
            viewport={"width": 1280, "height": 720},
            pre_observation_delay=float(sys.argv[2]),
        )
        self._sessions: dict[int, tuple[Any, str]] = {}

    def open(self, url: str) -> dict[str, Any]:
        """A new session at a page."""
        env = self._make(url)
        seen, _ = env.reset()
        text = self._flatten(seen["axtree_object"])
        found = re.search(r"\[(\w+)\] button 'Count'", text)
        session = len(self._sessions)
        self._sessions[session] = (env, found[1] if found else "")
        return {"session": session, "text": text}

    def click(self, session: int) -> dict[str, Any]:
        """Click the button; what is seen then."""
        env, button = self._sessions[session]
        seen, *_ = env.step(f"click('{button}')")
        if seen["last_action_error"]:
            raise RuntimeError(seen["last_action_error"])
        return {"text": self._flatten(seen["axtree_object"])}

    def close(self, session: int) -> dict[str, Any]:
        """End a session."""
        self._sessions.pop(session)[0].close()
        return {}


if __name__ == "__main__":
    serve(Peer())
