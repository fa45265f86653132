"""A short client of the browser server for tests."""

from __future__ import annotations

import re
from typing import Any

import requests

LEAN: dict[str, Any] = {
    "observe": True,
    "screenshot": "none",
    "html": False,
    "fulltree": False,
    "snapshot": False,
}


class Client:
    """One leased browser with one page.

    Attributes:
        view: the last observation.
        message: the last message or error.
    """

    def __init__(self, server: str, site: str, **options: Any) -> None:
        self.server = server
        self.site = site
        self.http = requests.Session()
        self.http.trust_env = False
        self.browser = ""
        self.options = options
        self.page = "0"
        self.view: dict[str, Any] = {}
        self.message = ""

    def __enter__(self) -> Client:
        self.browser = self.ok("getBrowser", **self.options)["browserId"]
        return self

    def __exit__(self, *exc: object) -> None:
        self.post("closeBrowser", browserId=self.browser)
        self.http.close()

    def post(self, route: str, **body: Any) -> requests.Response:
        return self.http.post(f"{self.server}/{route}", json=body, timeout=120)

    def ok(self, route: str, **body: Any) -> dict[str, Any]:
        reply = self.post(route, **body)
        assert reply.status_code == 200, reply.text
        answer: dict[str, Any] = reply.json()
        return answer

    def open(self, path: str, **more: Any) -> str:
        """Open a page of the site and return its tree."""
        body = {**LEAN, "browserId": self.browser, "url": self.site + path, **more}
        reply = self.ok("openPage", **body)
        self.page = reply["pageId"]
        return self._take(reply)

    def go(self, path: str) -> str:
        """Go to a page of the site or a URL, and return its tree."""
        url = path if "://" in path else self.site + path
        where = {"browserId": self.browser, "pageId": self.page}
        return self._take(self.ok("gotoUrl", **{**LEAN, **where, "targetUrl": url}))

    def act(self, name: str, line: str = "", *, status: int = 200, **more: Any) -> str:
        """Act on the element whose line begins with `line`, and return the next tree."""
        body = {**LEAN, "browserId": self.browser, "pageId": self.page, "actionName": name}
        if line:
            body["targetId"] = self.id_of(line)
        reply = self.post("performAction", **{**body, **more})
        assert reply.status_code == status, reply.text
        return self._take(reply.json())

    def tree(self, **more: Any) -> dict[str, Any]:
        """Return the observation of the old wire."""
        where = {"browserId": self.browser, "pageId": self.page}
        return self.ok("getAccessibilityTree", **{**where, "currentRound": 1, **more})

    def id_of(self, line: str) -> str:
        found = re.search(rf"\[(\d+)\] {re.escape(line)}", self.view["yaml"])
        assert found, f"no line {line!r} in\n{self.view['yaml']}"
        return found[1]

    def _take(self, reply: dict[str, Any]) -> str:
        self.message = reply.get("message") or reply.get("error") or ""
        if "observation" in reply:
            self.view = reply["observation"]
            if self.options.get("tabs"):
                self.page = self.view["pageId"]
        return str(self.view.get("yaml", ""))
