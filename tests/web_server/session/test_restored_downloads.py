"""What a crash of Chromium does to the downloads of a session: nothing."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Error, Page
from server_client import Client
from server_process import Process, serving
from server_site import PAGES, Site

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def process(server_site: Site) -> Iterator[Process]:
    with Process("--max-browsers", "1", site=server_site) as running:
        yield running


def test_what_a_page_downloads_by_itself_is_not_downloaded_again(
    process: Process, server_site: Site
) -> None:
    PAGES["/downloads-at-load"] = """<title>D</title><iframe src=/file></iframe>
        <button onclick="a = document.createElement('a'); a.download = 'b.csv';
        a.href = window.URL.createObjectURL(new Blob(['x'])); a.click()">Make</button>
        <script>document.querySelector('button').click()</script><a href=/file>Get</a>"""
    with Client(process.url, server_site.url) as client:
        client.open("/downloads-at-load")
        paths = sorted(client.view["downloaded_file_path"])
        assert [path.rpartition("/")[2] for path in paths] == ["_data.csv", "b.csv"]
        os.kill(process.chromium(), signal.SIGKILL)
        for _ in range(2):
            client.act("wait", timeout=100)
            assert sorted(client.view["downloaded_file_path"]) == paths
            assert not any(line.startswith("download") for line in client.view["events"])
        client.act("click", "link 'Get'")
        client.act("click", "button 'Make'")
        assert len(client.view["downloaded_file_path"]) == 4


def test_a_chromium_that_makes_no_pages_any_more_is_replaced(
    server_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(server_site, max_browsers=2) as server, _client(server, server_site) as client:
        client.open("/storage")
        client.act("click", "button 'Save'")
        client.tree()  # what a crash would lose is noted after the reply before
        engine = server._pool._next_engine()
        stuck = engine._browser
        make = BrowserContext.new_page

        async def new_page(context: BrowserContext) -> Page:
            if context.browser is stuck:
                raise asyncio.TimeoutError
            return await make(context)

        monkeypatch.setattr(BrowserContext, "new_page", new_page)
        assert "Second page" in client.open("/two")
        assert engine._browser is not stuck and server._pool.engines.crashes == 1
        client.page = "0"
        assert "local kept session too c=1" in client.act("wait", timeout=50)
        with _client(server, server_site) as other:
            assert "Home" in other.open("/")


@pytest.mark.parametrize("failing", [{2}, {1, 2, 3, 4}])
def test_tabs_that_could_not_be_brought_back_at_once_are_later(
    server_site: Site, monkeypatch: pytest.MonkeyPatch, failing: set[int]
) -> None:
    with serving(server_site, max_browsers=1) as server, _client(server, server_site) as client:
        pages = {"0": "Home", "1": "Second page", "2": "Storage"}
        for path in ("/", "/two", "/storage"):
            client.open(path)
            client.tree()  # what a crash would lose is noted after the reply before
        make, made = BrowserContext.new_page, itertools.count(1)

        async def new_page(context: BrowserContext) -> Page:
            page = await make(context)
            if next(made) in failing:
                await page.close()
                raise Error("the renderer died")
            return page

        server._pool.spare.replenish = lambda: None  # it makes pages too
        engine = server._pool._next_engine()
        crashing = asyncio.wait_for(engine._probe.send("Browser.crash"), 10)
        with suppress(Error, asyncio.TimeoutError):
            server._loop.call(crashing)
        monkeypatch.setattr(BrowserContext, "new_page", new_page)
        for client.page in reversed(pages):
            view = client.tree(screenshot="none")
            assert [tab["pageId"] for tab in view["tabs"]] == list(pages)
            assert pages[client.page] in view["yaml"]


def _client(server: Any, site: Site) -> Client:
    return Client(server.url, site.url)


def _content(client: Client, path: str) -> bytes:
    return base64.b64decode(client.ok("getFile", filename=path)["file"])


@pytest.mark.parametrize("way", ["click", "open", "goto"])
def test_a_download_is_listed_once_whatever_dies(
    process: Process, server_site: Site, way: str
) -> None:
    with Client(process.url, server_site.url) as client:
        if way == "open":
            body = {"browserId": client.browser, "url": f"{server_site.url}/file"}
            client.page = client.ok("openPage", **body)["pageId"]
        else:
            client.open("/")
            if way == "click":
                client.act("click", "link 'Get file'")
            else:
                client.act("goto", actionValue=f"{server_site.url}/file", observe=False)
        os.kill(process.chromium(), signal.SIGKILL)
        for _ in range(2):
            view = client.tree(screenshot="none")
            (path,) = view["downloaded_file_path"]
            assert path == f"DownloadedFiles/{client.browser}/_data.csv"
            assert view["downloads"] == [{"path": path, "name": "_data.csv", "size": 8}]
            assert _content(client, path) == b"a,b\n1,2\n"
        # A new one gets another name than the one from before the crash.
        client.go("/")
        client.act("click", "link 'Get file'")
        assert client.view["downloaded_file_path"] == [path, path.replace("_data", "_data (2)")]
        for trick in (f"{path}/../_data.csv", path.replace("_data.csv", "../rounds"), path[1:]):
            assert client.post("getFile", filename=trick).status_code == 404
