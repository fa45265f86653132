"""A real browser for the tests of observations: pages, observed as by the server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeVar

from person_browser import FLAGS
from playwright.async_api import BrowserContext, Page, async_playwright

from web_server.chromium.chromium import find_chromium
from web_server.observe.observer import Observed, Observer

T = TypeVar("T")


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a page that navigates cancels its requests


class Site:
    """Pages by path on two loopback ports: two origins of a site, and other sites by name."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = site.pages.get(self.path, "").encode()
                self.send_response(200 if self.path in site.pages else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._servers = [_Server(("127.0.0.1", 0), Handler) for _ in range(2)]
        self._threads = [threading.Thread(target=s.serve_forever) for s in self._servers]
        for thread in self._threads:
            thread.start()
        self.port, self.other_port = (s.server_port for s in self._servers)

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()


class Lab:
    """A browser, a page and an observer; `run` runs coroutines."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.site = Site()
        self.page: Page
        self.observer: Observer
        self._context: BrowserContext | None = None

    def __enter__(self) -> Lab:
        self.run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.run(self._stop())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        self.site.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def _start(self) -> None:
        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=find_chromium(), args=FLAGS, chromium_sandbox=os.geteuid() != 0
        )
        await self._new_page()

    async def _new_page(self) -> None:
        if self._context is not None:
            await self._context.close()
        self._context = await self._browser.new_context(viewport={"width": 1280, "height": 720})
        await Observer.prepare_context(self._context)
        self.page = await self._context.new_page()
        self.observer = Observer(self.page)
        await self.observer.attach()

    async def _stop(self) -> None:
        await self._browser.close()
        await self._playwright.stop()

    def new_page(self) -> None:
        """Open a new page in a new context."""
        self.run(self._new_page())

    def show(self, html: str) -> None:
        self.run(self.page.set_content(html))

    def open(self, path: str, html: str) -> None:
        self.site.pages[path] = html
        self.run(self.page.goto(f"http://127.0.0.1:{self.site.port}{path}"))

    def observe(self, **options: Any) -> Observed:
        return self.run(self.observer.observe(**options))

    def lines(self, html: str, **options: Any) -> list[str]:
        """Return the lines of a page from line [3], without ids and indentation."""
        self.show(html)
        return bare(self.observe(**options).yaml_body)

    def id_of(self, text: str) -> int:
        """Return the id of the first line that contains a text."""
        body = self.observe(scope="page").yaml_body
        for line in body.split("\n"):
            if text in line:
                return int(line.split("]")[0].strip().lstrip("["))
        raise AssertionError(f"no line with {text!r} in:\n{body}")


def bare(body: str) -> list[str]:
    return [line.split("] ", 1)[1] for line in body.split("\n")[2:]]
