"""The contenders of `web.py` from this project: the browser server and two floors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import requests

from web_server.chromium.chromium import find_chromium, launch_flags

ROOT = Path(__file__).resolve().parent.parent
_JS = Path(__file__).parent / "js"
_WALK = (_JS / "plain_walk.js").read_text(encoding="utf-8")
_NAMES_IN_VIEW = (_JS / "names_in_view.js").read_text(encoding="utf-8")


class ContenderFailed(Exception):
    """A contender failed. The message is its own."""


class Contender(Protocol):
    """The interface of a contender. `open` and `click` raise `ContenderFailed`."""

    name: str
    floor: bool

    def open(self, url: str) -> tuple[Any, str]:
        """Open a page in a new session. Returns the session and the observation."""

    def click(self, session: Any) -> str:
        """Click the page's button. Returns the next observation."""

    def close(self, session: Any) -> None:
        """Close a session."""

    def pids(self) -> list[int]:
        """Ids of the top processes, for the memory."""

    def stop(self) -> None:
        """Close all sessions and processes."""


class BrowserServer:
    """This project's browser server, as a separate process, over HTTP.

    Args:
        allow: `host:port` of the pages.
        sessions: largest number of sessions.
        name: the name in the tables.
        further: additional fields of each request.
    """

    floor = False

    def __init__(self, allow: str, sessions: int, name: str = "web_server", **further: Any) -> None:
        self.name = name
        self._further = further
        command = [sys.executable, "-m", "web_server", "--port", "0", "--allow", allow]
        command += ["--max-browsers", str(sessions)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError("the browser server did not start: run python -m web_server")
        self._url = line.removeprefix("listening on ").strip()
        self._http = requests.Session()
        self._http.trust_env = False

    def post(self, route: str, **body: Any) -> dict[str, Any]:
        """Send a request and return its response."""
        reply = self._http.post(f"{self._url}/{route}", json=body, timeout=120)
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def status(self) -> dict[str, Any]:
        """Return the response of /status."""
        reply: dict[str, Any] = self._http.get(f"{self._url}/status", timeout=60).json()
        return reply

    def open(self, url: str) -> tuple[Any, str]:
        lean = {
            "browserId": self.post("getBrowser")["browserId"],
            "pageId": "0",
            "observe": True,
            "screenshot": "none",
            "html": False,
            "fulltree": False,
            "snapshot": False,
            **self._further,
        }
        text = self.post("openPage", **lean, url=url)["observation"]["yaml"]
        button = text.split("] button 'Count'")[0].rsplit("[", 1)[1]
        return {**lean, "actionName": "click", "targetId": button}, text

    def click(self, session: Any) -> str:
        return str(self.post("performAction", **session)["observation"]["yaml"])

    def close(self, session: Any) -> None:
        self.post("closeBrowser", browserId=session["browserId"])

    def pids(self) -> list[int]:
        return [self._process.pid]

    def stop(self) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Floor:
    """The least possible work: a click by Playwright and a plain walk over the page.

    Args:
        playwright: a started `sync_playwright`.
        mouse: click at a point, instead of by `page.click`, which waits for actionability.
    """

    floor = True

    def __init__(self, playwright: Any, *, mouse: bool) -> None:
        self.name = "floor: mouse + walk" if mouse else "floor: click + walk"
        self._mouse = mouse
        self._browser = playwright.chromium.launch(
            executable_path=find_chromium(),
            args=[f for f in launch_flags() if "proxy" not in f and "resolver" not in f],
        )

    def open(self, url: str) -> tuple[Any, str]:
        page = self._browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(url)
        box = page.locator("#b").bounding_box()
        at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        return (page, at), page.evaluate(_WALK)

    def click(self, session: Any) -> str:
        page, at = session
        if self._mouse:
            page.mouse.click(*at)
        else:
            page.click("#b")
        return str(page.evaluate(_WALK))

    def in_view(self, session: Any) -> list[str]:
        """Return the names of the interactive elements in the viewport, for the recall."""
        names: list[str] = session[0].evaluate(_NAMES_IN_VIEW)
        return names

    def close(self, session: Any) -> None:
        session[0].context.close()

    def pids(self) -> list[int]:
        return [os.getpid()]

    def stop(self) -> None:
        self._browser.close()
