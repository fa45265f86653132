"""For the browser tests: a web site made of page texts, and actions on elements by name."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ck_web import WebEnv


@dataclass(frozen=True)
class Page:
    """A response of the site with status and headers."""

    body: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Pages = Mapping[str, str | Page | Callable[[str], str | Page]]
"""Path without query -> HTML, a `Page`, or a function of the full path; "*": any other path."""


@contextmanager
def serve(pages: Pages) -> Iterator[str]:
    """Serve a web site on loopback; yield its address without a trailing slash."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = pages.get(self.path.partition("?")[0], pages.get("*", Page("?", 404)))
            found = found(self.path) if callable(found) else found
            page = found if isinstance(found, Page) else Page(found)
            data = page.body.encode()
            self.send_response(page.status)
            headers = {"Content-Type": "text/html; charset=utf-8", **page.headers}
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def browser_settings(**settings: Any) -> dict[str, Any]:
    """Return settings of a browser that may open the site; its server is kept for later tests."""
    return {"allow": ["127.0.0.1"], "keep_server_seconds": 600, **settings}


class ElementActions:
    """Does actions on elements found by role and name: `do("click {button .Go}")`."""

    def __init__(self, env: WebEnv) -> None:
        self.env = env

    def id(self, element: str) -> str:
        """Return the id of the first element whose line matches a pattern."""
        found = re.search(rf"\[(\d+)\] {element}", self.env.get_state().current_accessibility_tree)
        assert found, f"no {element} on the page:\n{self.env.observe().text}"
        return found[1]

    def attempt(self, action: str) -> str:
        """Do an action; return its result or the reason of its failure."""
        named = re.sub(r"\{(.*?)\}", lambda m: f"[{self.id(m[1])}]", action)
        return self.env.step_state(named)

    def __call__(self, action: str) -> str:
        """Do an action that must succeed; return its result."""
        done = self.attempt(action)
        assert " failed: " not in done and "not done: " not in done, done
        return done
