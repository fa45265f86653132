"""Clients that misuse the server: in parallel, too often, with disconnects and huge bodies."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from server_client import Client
from server_process import serving
from server_site import Site, until

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(server_site: Site) -> Iterator[Any]:
    with serving(server_site, max_browsers=1, max_waiting=60) as running:
        yield running


def _post(server: Any, route: str, **body: Any) -> requests.Response:
    return requests.post(f"{server.url}/{route}", json=body, timeout=120)


def _at_once(work: Callable[[], requests.Response], times: int) -> tuple[list[Any], list[Any]]:
    """Threads that do the work, and the list into which they put their replies."""
    replies: list[Any] = []
    threads = [threading.Thread(target=lambda: replies.append(work())) for _ in range(times)]
    for thread in threads:
        thread.start()
    return threads, replies


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def _statuses(replies: list[requests.Response]) -> list[int]:
    return sorted(reply.status_code for reply in replies)


def test_concurrent_actions_run_one_after_another(server: Any, server_site: Site) -> None:
    with Client(server.url, server_site.url) as client:
        client.open("/")
        press = {"browserId": client.browser, "actionName": "click"}
        press["targetId"] = client.id_of("button 'Press'")
        threads, replies = _at_once(lambda: _post(server, "performAction", **press), 3)
        _join(threads)
        assert _statuses(replies) == [200, 200, 200]
        assert "pressed 3" in client.tree(screenshot="none")["yaml"]


def test_a_browser_is_closed_once(server: Any, server_site: Site) -> None:
    with Client(server.url, server_site.url) as client:
        client.open("/")
        body = {"browserId": client.browser}
        looking, seen = _at_once(lambda: _post(server, "getAccessibilityTree", **body), 2)
        closing, closed = _at_once(lambda: _post(server, "closeBrowser", **body), 3)
        _join(looking + closing)
        assert _statuses(closed) == [200, 404, 404]
        assert set(_statuses(seen)) <= {200, 404}
    assert until(lambda: server._pool.free == 1)


@pytest.mark.parametrize("end", ["closed", "expired"])
def test_an_action_in_progress_ends_with_its_lease(
    server: Any, server_site: Site, end: str
) -> None:
    with Client(server.url, server_site.url, leaseSeconds=500) as client:
        client.open("/")
        body = {"browserId": client.browser, "actionName": "wait_for", "text": "never"}
        slow = {**body, "timeout": 55_000, "observe": True}
        threads, replies = _at_once(lambda: _post(server, "performAction", **slow), 2)
        assert until(server._pool.leases[client.browser].session.lock.locked)
        if end == "closed":
            client.ok("closeBrowser", browserId=client.browser)
        else:
            server._loop.call(server._pool.end_expired(time.time() + 501), 60)
        _join(threads)
        assert _statuses(replies) == [404, 404]
    with Client(server.url, server_site.url) as client:
        assert "Home" in client.open("/")


def test_a_client_that_disconnects_leaves_the_browser_usable(
    server: Any, server_site: Site
) -> None:
    with Client(server.url, server_site.url) as client:
        client.open("/")
        action = {"browserId": client.browser, "actionName": "wait_for", "timeout": 700}
        body = json.dumps(action).encode()
        length = f"Content-Length: {len(body)}"
        head = f"POST /performAction HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n"
        for part in (head.encode() + body, head.encode() + body[:5], head[:20].encode()):
            with socket.create_connection((server.host, server.port), 60) as peer:
                peer.sendall(part)
                if part.endswith(body):
                    assert until(server._pool.leases[client.browser].session.lock.locked)
        assert "pressed 1" in client.act("click", "button 'Press'")


_DEEP = "[" * 900 + "]" * 900
_DEEPER = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("getBrowser", '{"storageState": {"cookies": ' + _DEEP + "}}"),
        ("getBrowser", '{"storageState": "' + _DEEPER + '"}'),
        ("getBrowser", '{"storageState": {"origins": [{"origin": 3}]}}'),
        ("getBrowser", '{"geoLocation": "' + _DEEPER + '"}'),
        ("getBrowser", '{"viewport": {"width": NaN}}'),
        ("openPage", _DEEPER),
        ("openPage", '{"url": ' + _DEEP + "}"),
        ("performAction", '{"x": 1e999, "browserId": "b"}'),
        ("performAction", '{"timeout": -1, "browserId": "b"}'),
        ("performAction", '{"browserId": "' + "b" * 2_000_000 + '"}'),
        ("performAction", '{"browserId": "b", "actionName": "\\ud800"}'),
        ("getFile", "\xff"),
        ("getFile", '{"filename": "\\u0000"'),
    ],
)
def test_malformed_bodies_are_client_errors(server: Any, route: str, body: str) -> None:
    data = body.encode("latin-1")
    reply = requests.post(f"{server.url}/{route}", data=data, timeout=120)
    assert reply.status_code == 400, reply.text[:200]
    error = reply.json()["error"]
    assert error and "\n" not in error and len(error) < 1000
    assert server._pool.free == 1


def test_closing_a_browser_does_not_wait_in_the_queue(server_site: Site) -> None:
    with serving(server_site, max_browsers=1, max_waiting=50) as server:
        with Client(server.url, server_site.url):
            threads, replies = _at_once(lambda: _post(server, "getBrowser"), 50)
            assert until(lambda: server._pool.waiting == 50, 60)
        assert until(lambda: len(replies) == 1) and replies[0].status_code == 200
        assert server._pool.waiting == 49
    _join(threads)
    assert _statuses(replies) == [200] + [503] * 49
