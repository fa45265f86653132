"""The isolated world in which `settle.js` watches the document that a page shows."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from playwright.async_api import CDPSession, Error

_SCRIPT = files("web_server").joinpath("settle.js").read_text(encoding="utf-8")
_TIMERS = files("web_server").joinpath("timers.js").read_text(encoding="utf-8")


def timers_script(token: str) -> str:
    """The script that a context must run in every frame before the page's own ones."""
    return f"({_TIMERS})({json.dumps(token)})"


class SettleWorld:
    """`settle.js` in a page's main frame, one document after the other.

    Args:
        cdp: the DevTools session of the page.
        frame_id: of the main frame; it changes when another process takes the page over.
        token: the secret under which `timers.js` answers in that page's context.
    """

    def __init__(self, cdp: CDPSession, frame_id: str, token: str) -> None:
        self.frame_id = frame_id
        self._cdp = cdp
        self._token = token
        self._context: int | None = None

    def forget(self) -> None:
        """Another document came: its world is asked for anew."""
        self._context = None

    async def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of `settle.js`; None when the document went away meanwhile."""
        listed = ", ".join(json.dumps(argument) for argument in arguments)
        expression = f"ckSettle.{function}({listed})"
        try:
            if self._context is None:
                world = await self._cdp.send(
                    "Page.createIsolatedWorld",
                    {"frameId": self.frame_id, "worldName": "ck-settle-" + self._token},
                )
                self._context = world["executionContextId"]
                expression = f"({_SCRIPT})({json.dumps(self._token)}); {expression}"
            answer = await self._cdp.send(
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
