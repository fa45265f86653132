"""Callers that are slow, go away or queue: they take nothing from the others."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import requests
from server_client import Client
from server_process import serving
from server_site import Site, until

from web_server.contract import Download
from web_server.session.session import Session

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def narrow(server_site: Site) -> Iterator[Any]:
    """A server with one browser, for which one caller may wait."""
    with serving(server_site, max_browsers=1, max_waiting=1, queue_seconds=60) as server:
        yield server


@pytest.fixture(scope="module")
def callers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(30) as pool:
        yield pool


def _connect(server: Any) -> socket.socket:
    peer = socket.create_connection((server.host, server.port), 60)
    peer.settimeout(60)
    return peer


def _raw(route: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST /{route} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def _known(server: Any, peer: socket.socket) -> bool:
    """Whether the server holds that connection."""
    name = peer.getsockname()
    return any(each.addr[:2] == name[:2] for each in server._wsgi.connections)


def _status(server: Any) -> dict[str, Any]:
    answer: dict[str, Any] = requests.get(f"{server.url}/status", timeout=60).json()
    return answer


def test_bodies_that_never_come_take_no_thread(narrow: Any, server_site: Site) -> None:
    request = _raw("closeBrowser", {"browserId": "unknown"})
    slow = [_connect(narrow) for _ in range(40)]  # the threads are 11
    for peer in slow:
        peer.sendall(request[:-15])
    with Client(narrow.url, server_site.url) as client:
        assert "Home" in client.open("/")
        for byte in request[-15:]:
            slow[0].sendall(bytes([byte]))
            assert client.post("renewBrowser", browserId=client.browser).status_code == 200
        assert slow[0].recv(4096).startswith(b"HTTP/1.1 404 ")
    for peer in slow:
        peer.close()
    assert until(lambda: not any(_known(narrow, peer) for peer in slow if peer.fileno() >= 0))


def test_an_unread_response_takes_no_thread(narrow: Any, server_site: Site) -> None:
    with Client(narrow.url, server_site.url) as client:
        session = narrow._pool.leases[client.browser].session
        path = f"DownloadedFiles/{client.browser}/big"
        (session.folder / "files" / "big").write_bytes(b"x" * 40_000_000)
        session.downloads.done.append(Download(path=path, name="big", size=40_000_000))
        stalled = [_connect(narrow) for _ in range(3)]
        for peer in stalled:
            peer.sendall(_raw("getFile", {"filename": path}))
            assert peer.recv(8).startswith(b"HTTP/1.1")
        assert narrow._requests.wait_until_idle(60)
        assert len(client.ok("getFile", filename=path)["file"]) > 53_000_000
        for peer in stalled:
            name = peer.getsockname()
            peer.close()
            assert until(lambda n=name: all(c.addr[:2] != n for c in narrow._wsgi.connections))  # type: ignore[misc]


@pytest.mark.parametrize("leave", [socket.socket.close, lambda peer: peer.shutdown(socket.SHUT_WR)])
def test_who_stops_talking_while_queueing_is_taken_for_gone(
    narrow: Any, server_site: Site, leave: Callable[[socket.socket], None]
) -> None:
    with Client(narrow.url, server_site.url):
        peer = _connect(narrow)
        name = peer.getsockname()
        peer.sendall(_raw("getBrowser", {}))
        assert until(lambda: _status(narrow)["waiting"] == 1)
        leave(peer)
        assert until(lambda: all(each.addr[:2] != name for each in narrow._wsgi.connections))
    peer.close()
    assert _status(narrow)["free"] == 1
    with Client(narrow.url, server_site.url) as client:
        assert "Home" in client.open("/")


def test_a_client_that_hangs_up_while_its_browser_starts_gets_none(
    narrow: Any, server_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, left = threading.Event(), threading.Event()
    make = narrow._pool._make_session

    async def slowly(*arguments: Any) -> Session:
        if arguments[0].viewport is not None:
            started.set()
            await asyncio.to_thread(left.wait, 60)
        session: Session = await make(*arguments)
        return session

    monkeypatch.setattr(narrow._pool, "_make_session", slowly)
    peer = _connect(narrow)
    name = peer.getsockname()
    peer.sendall(_raw("getBrowser", {"viewport": {"width": 500, "height": 500}}))
    assert started.wait(60)
    peer.close()
    assert until(lambda: all(each.addr[:2] != name for each in narrow._wsgi.connections))
    left.set()
    assert until(lambda: _status(narrow)["free"] == 1)
    assert not narrow._pool.leases


def test_closing_a_browser_waits_for_no_other_request(
    narrow: Any, server_site: Site, callers: ThreadPoolExecutor
) -> None:
    client = Client(narrow.url, server_site.url)
    client.__enter__()
    client.open("/")

    def send(route: str, **body: Any) -> Future[requests.Response]:
        url = f"{narrow.url}/{route}"
        return callers.submit(requests.post, url, json=body, timeout=120)

    where = {"browserId": client.browser, "actionName": "wait_for", "timeout": 60_000}
    working = send("performAction", **where)
    lease = narrow._pool.leases[client.browser]
    assert until(lease.session.lock.locked)
    queueing = send("getBrowser")
    assert until(lambda: _status(narrow)["waiting"] == 1)
    # One more may be at work; all others are turned away, and none of them is kept waiting.
    others = [send("performAction", **where) for _ in range(10)]
    others += [send("getBrowser") for _ in range(10)]
    assert until(lambda: sum(each.done() for each in others) >= 19)
    client.ok("closeBrowser", browserId=client.browser)
    assert working.result(60).status_code == 404
    given = queueing.result(60)
    assert given.status_code == 200
    refused = {each.result(60).status_code for each in others}
    assert refused <= {404, 429, 503}
    client.ok("closeBrowser", browserId=given.json()["browserId"])
    client.http.close()


def test_what_takes_too_long_at_the_end_is_told_so(
    server_site: Site, monkeypatch: pytest.MonkeyPatch, callers: ThreadPoolExecutor
) -> None:
    from web_server.api import server as server_module

    monkeypatch.setattr(server_module, "_DRAIN_SECONDS", 0.2)
    with serving(server_site, max_browsers=1) as ending:
        client = Client(ending.url, server_site.url)
        client.__enter__()
        client.open("/")
        body = {"browserId": client.browser, "actionName": "wait_for", "timeout": 60_000}
        url = f"{ending.url}/performAction"
        working = [callers.submit(requests.post, url, json=body, timeout=120) for _ in range(2)]
        assert until(ending._pool.leases[client.browser].session.lock.locked)
        assert until(lambda: ending._requests.in_progress == 2)
        ending.finish()
        assert not ending._wsgi.sending
        late = client.post("openPage", browserId=client.browser, url="http://x.example/")
        for reply in [*(each.result(60) for each in working), late]:
            assert reply.status_code == 503 and "is stopping" in reply.json()["error"]
            assert int(reply.headers["Retry-After"]) > 0
        client.http.close()
