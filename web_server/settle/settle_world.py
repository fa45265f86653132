"""The isolated world in which js/settle.js watches the document of a page."""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import Error

from web_server.javascript import bundle_script
from web_server.settle.activity import Activity

PARTS = ("changes", "user_events", "motion", "scroll", "blank", "settle")


def timers_script(token: str) -> str:
    """Return the script that a context must run in every frame before the page's own scripts."""
    return bundle_script("settle", ("timers",), TOKEN=token)


class SettleWorld:
    """js/settle.js in the main frame of a page, in each document that the frame shows.

    Args:
        activity: provides the frame and the number of its document.
        token: the secret under which js/timers.js answers in this page's context.
    """

    def __init__(self, activity: Activity, token: str) -> None:
        self._activity = activity
        self._token = token
        self._context: int | None = None
        self._commits = 0

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of js/settle.js; None if the document was replaced meanwhile."""
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
                script = bundle_script("settle", PARTS, TOKEN=self._token)
                expression = f"if (!globalThis.ckSettle) {script}\n{expression}"
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
