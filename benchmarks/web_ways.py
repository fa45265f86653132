"""The contenders of `web.py` that need nothing but our own packages: the server, and two floors.

All contenders have the same three methods: `open` gives a session and the text that a model would
read, `click` presses the page's button and gives the text that follows, `close` ends the session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

import requests

from web_server.chromium.chromium import find_chromium, launch_flags

ROOT = Path(__file__).resolve().parent.parent
_WALK = """() => {
  const lines = [];
  const visit = (node) => {
    if (node.nodeType === 3) { const t = node.data.trim(); if (t) lines.push(t); return; }
    if (node.nodeType !== 1) return;
    const box = node.getBoundingClientRect();
    if (box.width && box.bottom > 0 && box.top < innerHeight) lines.push(node.tagName);
    for (const child of node.childNodes) visit(child);
  };
  visit(document.body);
  return lines.join('\\n');
}"""
_IN_SIGHT = """() => [...document.querySelectorAll('button, a, input, select')].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}).map((e) => (e.labels && e.labels.length ? e.labels[0] : e).innerText.split('\\n')[0].trim())"""


class Failed(Exception):
    """A contender could not do what it was asked; its own words."""


class Contender(Protocol):
    """What is measured. `open` and `click` raise `Failed` where the contender gives up."""

    name: str
    floor: bool

    def open(self, url: str) -> tuple[Any, str]:
        """A new session at a page, and what it shows."""

    def click(self, session: Any) -> str:
        """Click the page's button; what is shown then."""

    def close(self, session: Any) -> None:
        """End a session."""

    def pids(self) -> list[int]:
        """The processes at the top, whose trees hold all the memory."""

    def end(self) -> None:
        """End everything."""


class Ours:
    """Our browser server, as a process of its own, over HTTP.

    Args:
        allow: `host:port` of the pages.
        sessions: at once.
        further: fields of each request beside the leanest.
    """

    floor = False

    def __init__(self, allow: str, sessions: int, name: str = "ours", **further: Any) -> None:
        self.name = name
        self._further = further
        command = [sys.executable, "-m", "web_server", "--port", "0", "--allow", allow]
        command += ["--max-browsers", str(sessions)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith("listening on "):
            raise RuntimeError("the browser server did not start: python -m web_server says why")
        self._url = said.removeprefix("listening on ").strip()
        self._http = requests.Session()
        self._http.trust_env = False

    def post(self, route: str, **body: Any) -> dict[str, Any]:
        """One request."""
        reply = self._http.post(f"{self._url}/{route}", json=body, timeout=120)
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def status(self) -> dict[str, Any]:
        """What the server says of itself."""
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

    def end(self) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait(60)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Floor:
    """The least that could do: Playwright, a click, one plain walk over the page from inside it.

    Args:
        playwright: a started `sync_playwright`.
        mouse: click at a point instead of with `page.click`, which waits for actionability.
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

    def in_sight(self, session: Any) -> list[str]:
        """Names of the interactive elements within the viewport: what recall is measured by."""
        names: list[str] = session[0].evaluate(_IN_SIGHT)
        return names

    def close(self, session: Any) -> None:
        session[0].context.close()

    def pids(self) -> list[int]:
        return [os.getpid()]

    def end(self) -> None:
        self._browser.close()
