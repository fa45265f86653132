"""A small browser server for tests, with pages as texts, injected faults and recorded requests."""

from __future__ import annotations

import base64
import copy
import json
import threading
import time
from collections import defaultdict, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from web_server.contract import FEATURES

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

SHOP = "http://shop.test/"
PAGES = {
    "about:blank": ("", ["[1] RootWebArea ''", "[2] StaticText 'all of the page is shown'"]),
    SHOP: (
        "Shop",
        [
            "[1] RootWebArea 'Shop'",
            "[2] StaticText 'top of the page'",
            "\t[3] link 'Lamps'",
            "\t[4] textbox 'Search it's' value: ",
            "\t[5] button 'Export'",
        ],
    ),
    "http://shop.test/lamps": (
        "Lamps",
        ["[1] RootWebArea 'Lamps'", "[2] StaticText 'top'", "\t[13] heading 'Lamps'"],
    ),
}


class FakeWire:
    """The server; `with FakeWire() as wire: wire.url`.

    Attributes:
        requests: (route, body) of every request.
        faults: route -> faults of the next requests: a status, "text" or "drop".
        old: like older servers, without error codes and /renewBrowser.
        without_observation: like older servers, without an observation in replies to actions.
        pages: URL -> title and lines.
        replies: actionName -> messages of the next replies to it.
        elements: `elements` of observations with that option.
        features: features that the server reports.
        target_facts: overrides fields of replies of describeAction.
        data: actionName -> `data` of every reply to it.
        failures: URL -> why it has no page, or its HTTP error.
        removes: id of a button -> how many lines before it a click removes with it.
    """

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, deque[int | str]] = {}
        self.without_observation = self.old = False
        self.browsers: dict[str, dict[str, Any]] = {}
        self.files = {"DownloadedFiles/b1/x-1": ("../data set.csv", b"a,b\n1,2\n")}
        self.pages = copy.deepcopy(PAGES)  # tests change the lines of pages
        self.replies: defaultdict[str, deque[str]] = defaultdict(deque)
        self.elements: dict[str, Any] = {}
        self.features = list(FEATURES)
        self.target_facts: dict[str, Any] = {}
        self.removes: dict[str, int] = {}
        self.failures: dict[str, str] = {}
        self.data: dict[str, Any] = {}
        self._made = 0
        handler = type("Handler", (_Handler,), {"wire": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    def __enter__(self) -> FakeWire:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def fail(self, route: str, *faults: int | str) -> None:
        """Make the next requests of a route fail."""
        self.faults[route] = deque(faults)

    def count(self, route: str) -> int:
        """Return the number of requests of a route."""
        return sum(r == route for r, _ in self.requests)

    @property
    def acted(self) -> list[dict[str, Any]]:
        """The bodies of all actions."""
        return [body for route, body in self.requests if route == "performAction"]

    # --- the routes ------------------------------------------------------------------------

    def answer(self, route: str, body: dict[str, Any]) -> tuple[int, Any]:
        if route == "getBrowser":
            self._made += 1
            key = f"b{self._made}"
            self.browsers[key] = {"history": [], "files": [], "events": [], "text": ""}
            return 200, {"browserId": key, "expiresAt": 2e9, "features": self.features}
        if route == "getFile":
            found = self.files.get(body["filename"])
            if found is None:
                return 404, {"error": "no such file"}
            return 200, {"file": base64.b64encode(found[1]).decode()}
        browser = self.browsers.get(body.get("browserId", ""))
        if browser is None:
            error = {"error": "no such browser; its lease may have ended"}
            return 404, error if self.old else {**error, "code": "browser_gone"}
        if route == "renewBrowser" and not self.old:
            browser["parked"] = body.get("parked")
            return 200, {"browserId": body["browserId"], "expiresAt": time.time() + 3600}
        if route == "renewBrowser":
            return 404, {"error": "no such route"}
        if route == "closeBrowser":
            del self.browsers[body["browserId"]]
            return 200, {"message": "closed"}
        if route == "takeScreenshot":
            return 200, PNG
        if route == "takePicture":
            return 200, self._picture(browser, body)
        if route == "openPage":
            browser["history"] = [body["url"]]
            return 200, self._with_view({"browserId": body["browserId"], "pageId": "0"}, browser)
        if route == "describeAction":
            body, named = self._with_ids(browser, body)
            return 200, {**self._reached(browser, body), **named}
        if route == "getAccessibilityTree" and not browser["history"]:
            return 404, {"error": "no page is open"}
        if route == "getAccessibilityTree":
            return 200, self._view(browser, body)
        return self._act(browser, body)

    def _picture(self, browser: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        """Return a picture whose content is the URL; element N is a box at N, N."""
        url, target = browser["history"][-1], body.get("targetId")
        return {
            "image": base64.b64encode(url.encode()).decode(),
            "width": 1280,
            "height": 720,
            "url": url,
            "elements": {"3": [3, 3, 10, 10]},
            "targets": [[int(target), int(target), 10, 10]] if target else [],
        }

    def _reached(self, browser: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        url, mark = browser["history"][-1], f"[{body.get('targetId')}] "
        lines = [line.strip() for line in self.pages.get(url, ("", []))[1]]
        found = next((line.removeprefix(mark) for line in lines if line.startswith(mark)), "")
        return {"target": found or "nothing", "url": url, "secret": False, **self.target_facts}

    def _with_ids(
        self, browser: dict[str, Any], body: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the body with the id of an element that it names, and the line of the element."""
        name = str(body.get("targetId") or "")
        if not name.endswith("'"):
            return body, {}
        page = self.pages.get(browser["history"][-1], ("", []))[1]
        line = next((line.strip() for line in page if name in line), "[404]")
        return {**body, "targetId": line[1 : line.index("]")]}, {"named": {name: line}}

    def _act(self, browser: dict[str, Any], body: dict[str, Any]) -> tuple[int, Any]:
        body, named = self._with_ids(browser, body)
        action, target = body["actionName"], body.get("targetId")
        expected = body.get("expectedTarget")
        if expected and expected != self._reached(browser, body)["target"]:
            return 409, {"error": "not done: it would reach something else"}
        page = self.pages.get(browser["history"][-1], ("", []))[1]
        if target and not any(line.strip().startswith(f"[{target}] ") for line in page):
            view = {} if self.without_observation else {"observation": self._view(browser, {})}
            return 404, {"error": f"no element {target} on this page", **view}
        if action == "click" and target == "3":
            browser["history"].append("http://shop.test/lamps")
        elif action == "click" and target == "5":
            browser["files"].append("DownloadedFiles/b1/x-1")
            browser["events"].append("downloaded a\nfile")
        elif action == "type":
            browser["text"] = body["actionValue"]
        elif action == "goback":
            if len(browser["history"]) == 1:
                return 409, {"error": "there is no page to go back to"}
            browser["history"].pop()
        elif action == "goto":
            browser["history"].append(body["actionValue"])
        elif action == "click" and target in self.removes:
            at = next(i for i, line in enumerate(page) if f"[{target}] " in line)
            kept = page[: at - self.removes[target]] + page[at + 1 :]
            url = browser["history"][-1]
            self.pages[url] = (self.pages[url][0], kept)
        data = {"data": self.data[action]} if action in self.data else {}
        said = self.replies.get(action)
        message = said.popleft() if said else "done"
        return 200, self._with_view({"message": message, **named, **data}, browser)

    def _with_view(self, reply: dict[str, Any], browser: dict[str, Any]) -> dict[str, Any]:
        return (
            reply if self.without_observation else {**reply, "observation": self._view(browser, {})}
        )

    def _view(self, browser: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        url = browser["history"][-1]
        title, lines = self.pages.get(url, ("not found", ["[1] RootWebArea 'not found'"]))
        tree = "\n".join([f"Tab 0 (current): {title}", *lines]) + "\n"
        events, browser["events"] = browser["events"], []
        wants = body.get("screenshot", "none")
        return {
            "yaml": tree.replace("value: ", f"value: {browser['text']}"),
            "url": url,
            "title": title,
            "html": None,
            "elements": self.elements if body.get("elements") else {},
            "boxed_screenshot": base64.b64encode(PNG).decode() if wants == "boxed" else "",
            "nonboxed_screenshot": base64.b64encode(PNG).decode() if wants == "plain" else "",
            "downloaded_file_path": browser["files"],
            "downloads": [
                {"path": p, "name": self.files[p][0], "size": len(self.files[p][1])}
                for p in browser["files"]
            ],
            "events": events,
            "failure": self.failures.get(url, ""),
        }


class _Handler(BaseHTTPRequestHandler):
    wire: FakeWire
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per reply: two would wait for each other's acknowledgement

    def do_GET(self) -> None:
        self._reply(200, {"version": "fake", "browsers": sorted(self.wire.browsers)})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        route = self.path.strip("/")
        self.wire.requests.append((route, body))
        faults = self.wire.faults.get(route)
        fault = faults.popleft() if faults else None
        if fault == "drop":
            self.close_connection = True
        elif fault == "text":
            self._reply(200, b"<html>not a browser server</html>")
        elif isinstance(fault, int):
            self._reply(fault, {"error": "injected\nfault"})
        elif self.wire.token and self.headers["Authorization"] != f"Bearer {self.wire.token}":
            self._reply(401, {"error": "token missing or wrong"})
        else:
            self._reply(*self.wire.answer(route, body))

    def _reply(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass
