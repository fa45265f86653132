"""browsergym-core behind the protocol of `web_peer_lines`, in its own Python environment.

    python web_peer_browsergym.py CHROMIUM DELAY

DELAY is its wait before an observation, in seconds (default 0.5).
"""

from __future__ import annotations

import re
import sys
from typing import Any

from web_peer_lines import serve


class Peer:
    """Sessions of BrowserGym, each an environment with its own Chromium."""

    def __init__(self) -> None:
        from browsergym.core.env import BrowserEnv
        from browsergym.core.task import OpenEndedTask
        from browsergym.utils.obs import flatten_axtree_to_str
        from playwright.sync_api import BrowserType

        launch = BrowserType.launch

        def launch_given(
            self: Any, **kwargs: Any
        ) -> Any:  # its chat window has no setting for this
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
        """Open a page in a new session."""
        env = self._make(url)
        seen, _ = env.reset()
        text = self._flatten(seen["axtree_object"])
        found = re.search(r"\[(\w+)\] button 'Count'", text)
        session = len(self._sessions)
        self._sessions[session] = (env, found[1] if found else "")
        return {"session": session, "text": text}

    def click(self, session: int) -> dict[str, Any]:
        """Click the button and observe."""
        env, button = self._sessions[session]
        seen, *_ = env.step(f"click('{button}')")
        if seen["last_action_error"]:
            raise RuntimeError(seen["last_action_error"])
        return {"text": self._flatten(seen["axtree_object"])}

    def close(self, session: int) -> dict[str, Any]:
        """Close a session."""
        self._sessions.pop(session)[0].close()
        return {}


if __name__ == "__main__":
    serve(Peer())
