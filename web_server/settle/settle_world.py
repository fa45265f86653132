"""The isolated world in which `settle.js` watches the document that a page shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.async_api import Error

from web_server.settle.activity import Activity

_SCRIPTS = Path(__file__).parent / "js"
_SCRIPT = (_SCRIPTS / "settle.js").read_text(encoding="utf-8")
_TIMERS = (_SCRIPTS / "timers.js").read_text(encoding="utf-8")


def timers_script(token: str) -> str:
    """The script that a context must run in every frame before the page's own ones."""
    return f"({_TIMERS})({json.dumps(token)})"


class SettleWorld:
    """`settle.js` in a page's main frame, one document after the other.

    Args:
        activity: tells which frame that is, and which document it shows.
        token: the secret under which `timers.js` answers in that page's context.
    """

    def __init__(self, activity: Activity, token: str) -> None:
        self._activity = activity
        self._token = token
        self._context: int | None = None
        self._commits = 0

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of `settle.js`; None when the document went away meanwhile."""
        listed = ", ".join(json.dumps(argument) for argument in arguments)
        expression = f"ckSettle.{function}({listed})"
        activity = self._activity
        if self._commits != activity.commits:
            self._commits, self._context = activity.commits, None
        try:
            if self._context is None:
                world = await activity.cdp.send(
                    "Page.createIsolatedWorld",
                    {"frameId": activity.frame_id, "worldName": "ck-settle-" + self._token},
                )
                self._context = world["executionContextId"]
                expression = f"({_SCRIPT})({json.dumps(self._token)}); {expression}"
            answer = await activity.cdp.send(
                "Runtime.evaluate",
                {
                    "expression": expression,
                    "contextId": self._context,
                    "awaitPromise": True,
                    "returnByValue": True,
                },
            )
        except Error:
            self._context = None
            return None
        if "exceptionDetails" in answer:
            self._context = None
            return None
        return answer["result"].get("value")
