"""Browsers for MCP calls: each browser action as a tool that returns the page after it."""

from __future__ import annotations

import inspect
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ck_pro.arguments import parameters_schema
from ck_pro.events import ErrorObservation
from ck_pro.exceptions import ParseError, ToolError
from ck_web.actions import ACTIONS, WEB_FUNCTIONS, parse_action
from ck_web.browser.config import WebEnvConfig
from ck_web.env import WebEnv

PREFIX = "browser_"
MAX_BROWSERS = 8
_BROWSER = {
    "type": "string",
    "description": "Id of the browser, from browser_open. Default: the one opened last.",
}


class Browsers:
    """The browsers of a server, by the ids that `open` returns. Thread-safe.

    Args:
        config: their settings.
    """

    def __init__(self, config: WebEnvConfig):
        self.config = config
        self._envs: dict[str, WebEnv] = {}
        self._lock = threading.Lock()
        self._count = 0
        self._folder = tempfile.TemporaryDirectory(prefix="ck-pro-mcp-")

    @property
    def names(self) -> list[str]:
        """The names of the web actions that the settings allow."""
        return [
            name
            for name in WEB_FUNCTIONS
            if not ACTIONS[name].setting or getattr(self.config, ACTIONS[name].setting)
        ]

    def tools(self) -> list[dict[str, Any]]:
        """Return name, description and schema of every tool."""
        opened = {
            "type": "object",
            "properties": {"url": {"type": "string", "description": "An http(s) address."}},
            "required": ["url"],
        }
        one = {"type": "object", "properties": {"browser": _BROWSER}}
        found = [
            (
                "open",
                "Open a page in a new browser; return its text. Elements are [id] role 'name'.",
                opened,
            ),
            ("observe", "Return the current page as text, with the ids of its elements.", one),
            ("close", "Close a browser.", one),
        ]
        for name in self.names:
            schema = parameters_schema(ACTIONS[name].write)
            properties = {**schema.get("properties", {}), "browser": _BROWSER}
            help_ = " ".join(inspect.cleandoc(ACTIONS[name].help).split())
            found.append((name, help_, {**schema, "properties": properties}))
        return [
            {"name": f"{PREFIX}{name}", "description": text, "input_schema": schema}
            for name, text, schema in found
        ]

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Do one call; return the result, and the page after an action.

        Raises:
            ToolError: the call is not possible.
            BrowserServerError: the server or the browser failed.
        """
        name = tool.removeprefix(PREFIX)
        given = dict(arguments)
        if name == "open":
            return self._open(str(given.get("url") or "about:blank"))
        browser, env = self._find(str(given.pop("browser", "") or ""))
        if name == "close":
            with self._lock:
                self._envs.pop(browser, None)
            env.close()
            return f"closed {browser}"
        if name == "observe":
            return env.observe().text
        if name not in self.names:
            raise ToolError(f"no tool {tool!r}")
        declared = ACTIONS[name]
        try:
            action = parse_action(declared.write(**given))
        except (TypeError, ParseError) as e:
            raise ToolError(f"{tool}: {e}") from None
        result = env.execute(action)
        if isinstance(result, ErrorObservation):
            raise ToolError(f"{result.text}\n\n{env.observe().text}")
        if declared.reads_only or declared.returns_data:
            return result.text
        return f"{result.text}\n\n{env.observe().text}"

    def close(self) -> None:
        """Close all browsers."""
        with self._lock:
            envs, self._envs = list(self._envs.values()), {}
        for env in envs:
            env.close()
        self._folder.cleanup()

    def _open(self, url: str) -> str:
        with self._lock:
            if len(self._envs) >= MAX_BROWSERS:
                raise ToolError(f"{MAX_BROWSERS} browsers are open: close one with browser_close")
            self._count += 1
            browser = f"b{self._count}"
        folder = Path(self._folder.name) / browser
        folder.mkdir()
        env = WebEnv(self.config, workdir=folder, target_url=url)
        with self._lock:
            self._envs[browser] = env
        return f"browser: {browser}\n\n{env.observe().text}"

    def _find(self, browser: str) -> tuple[str, WebEnv]:
        with self._lock:
            if not self._envs:
                raise ToolError("no browser is open: call browser_open first")
            known = browser or next(reversed(self._envs))
            if known not in self._envs:
                raise ToolError(f"no browser {browser!r}; open are: {', '.join(self._envs)}")
            return known, self._envs[known]
