"""A client for the old wire, that of the server which this project's server replaces.

It knows a page only by its text: it parses lines `[id] role 'name' ...` with regular expressions,
expects menu items below the line of their button, and `[1]` and `[2]` at the head of the page. It
sends every field, null where it has no value, and uses no newer feature.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any

import requests

_LINE = re.compile(r"^(\t*)\[(\d+)\] ([A-Za-z]+) '(.*?)'(?: (?!')(.*))?$")
_TAB = re.compile(r"^Tab (\d+)( \(current\))?: (.*)$")
_KEYS = {
    "yaml": str,
    "fulltree": str,
    "url": str,
    "html": str,
    "snapshot": dict,
    "nonboxed_screenshot": str,
    "boxed_screenshot": str,
    "downloaded_file_path": list,
}


@dataclass
class Element:
    """One line of the tree, with those nested below it."""

    depth: int
    id: str
    role: str
    name: str
    more: str
    below: list[Element] = field(default_factory=list)


class OldClient:
    """A browser controlled by the text of its pages.

    Args:
        server: address of the browser server.
        token: bearer token, which a proxy would add; the old wire has none.

    Attributes:
        seen: the last reply of `/getAccessibilityTree`.
        tabs, elements: parsed from its `yaml`.
        round: number of the observation; the server stores images and HTML under it.
    """

    def __init__(self, server: str, token: str) -> None:
        self._server = server
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.headers["Authorization"] = f"Bearer {token}"
        self.seen: dict[str, Any] = {}
        self.tabs: list[tuple[str, bool, str]] = []
        self.elements: list[Element] = []
        self.round = -1
        self.browser = self._ask("getBrowser", storageState=None, geoLocation=None)["browserId"]
        self.page = ""

    def open(self, url: str) -> None:
        """Open the only page of this client."""
        self.page = self._ask("openPage", browserId=self.browser, url=url)["pageId"]
        self.observe()

    def observe(self) -> None:
        """Observe the page; fail on any line in another form."""
        self.round += 1
        self.seen = self._ask("getAccessibilityTree", **self._here(), currentRound=self.round)
        assert {key: type(self.seen.get(key)) for key in _KEYS} == _KEYS
        self.tabs, self.elements = [], []
        for line in self.seen["yaml"].splitlines():
            if (tab := _TAB.match(line)) and not self.elements:
                self.tabs.append((tab[1], bool(tab[2]), tab[3]))
                continue
            parts = _LINE.match(line)
            assert parts, f"not the form of an element: {line!r}"
            self.elements.append(Element(len(parts[1]), *parts.groups(default="")[1:]))
        assert [current for _, current, _ in self.tabs].count(True) == 1
        assert (self.elements[0].id, self.elements[0].role) == ("1", "RootWebArea")
        assert self.elements[1].id == "2"
        assert self.elements[0].name == next(title for _, now, title in self.tabs if now)
        self._nest()

    def _nest(self) -> None:
        """Nest the elements; an open menu must list its items below its button."""
        for i, element in enumerate(self.elements):
            for other in self.elements[i + 1 :]:
                if other.depth <= element.depth:
                    break
                element.below.append(other)
            if "hasPopup: menu" in element.more and "expanded: true" in element.more:
                assert any(x.role.startswith("menuitem") for x in element.below), element

    def find(self, role: str, name: str) -> Element:
        """Return the element of the current page with this role and name."""
        found = [e for e in self.elements if e.role == role and e.name == name]
        assert found, f"no {role} {name!r} in:\n{self.seen['yaml']}"
        return found[0]

    def shows(self, text: str) -> bool:
        """Whether the visible part of the page contains a text."""
        return any(text in e.name or text in e.more for e in self.elements)

    def act(self, action: str, element: Element | None = None, value: str | None = None) -> None:
        """Send one action in the old form, then observe the page."""
        self._ask(
            "performAction",
            **self._here(),
            actionName=action,
            targetId=element.id if element else None,
            targetElementType=element.role if element else None,
            targetElementName=element.name if element else None,
            actionValue=value,
            needEnter=None,
        )
        self.observe()

    def type(self, element: Element, text: str, enter: bool) -> None:
        """Fill in a field."""
        hints = {"targetElementType": element.role, "targetElementName": element.name}
        body = {**self._here(), "actionName": "type", "targetId": int(element.id), **hints}
        self._ask("performAction", **body, actionValue=text, needEnter=enter)
        self.observe()

    def goto(self, url: str) -> None:
        """Navigate by the route /gotoUrl."""
        self._ask("gotoUrl", **self._here(), targetUrl=url)
        self.observe()

    def image(self, number: int) -> bytes:
        """Return the screenshot of an earlier observation."""
        return self._send("loadScreenshot", **self._here(), currentRound=number).content

    def full_screenshot(self) -> bytes:
        """Return an image of the whole page."""
        return self._send("takeScreenshot", **self._here()).content

    def html(self, number: int) -> tuple[str, str]:
        """Return URL and HTML of an earlier observation."""
        kept = self._ask("gethtmlcontent", **self._here(), currentRound=number)
        return kept["url"], kept["html"]

    def file(self, path: str) -> bytes:
        """Return the content of a download."""
        return base64.b64decode(self._ask("getFile", filename=path)["file"])

    def close(self) -> None:
        """Close the browser."""
        self._ask("closeBrowser", browserId=self.browser)
        self._http.close()

    def _here(self) -> dict[str, Any]:
        return {"browserId": self.browser, "pageId": self.page}

    def _ask(self, route: str, **body: Any) -> dict[str, Any]:
        reply: dict[str, Any] = self._send(route, **body).json()
        return reply

    def _send(self, route: str, **body: Any) -> requests.Response:
        reply = self._http.post(f"{self._server}/{route}", json=body, timeout=120)
        assert reply.status_code == 200, f"{route}: {reply.status_code} {reply.text[:300]}"
        return reply
