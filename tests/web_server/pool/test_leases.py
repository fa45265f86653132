"""Leases: their end, renewal and queue; and the metrics of the server."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from server_client import Client
from server_process import Process, serving
from server_site import Site, until

from web_server import contract
from web_server.chromium.folder import folder_base

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def narrow(server_site: Site) -> Iterator[Any]:
    """A server with one browser and a short queue time."""
    limits = {"max_browsers": 1, "max_waiting": 1, "queue_seconds": 0.3, "idle_seconds": 1000}
    with serving(server_site, **limits) as server:
        yield server


def _sweep(server: Any, seconds: float) -> None:
    """End the leases that are over so many seconds from now."""
    server._loop.call(server._pool.end_expired(time.time() + seconds), 60)


def _status(server: Any) -> dict[str, Any]:
    answer: dict[str, Any] = requests.get(f"{server.url}/status", timeout=60).json()
    return answer


def test_an_unused_lease_ends_and_use_extends_it(narrow: Any, server_site: Site) -> None:
    with Client(narrow.url, server_site.url) as client:
        client.open("/")
        _sweep(narrow, 990)
        assert client.ok("getAccessibilityTree", browserId=client.browser)["title"] == "Home"
        _sweep(narrow, 1010)
        for route in ("getAccessibilityTree", "renewBrowser", "closeBrowser"):
            reply = client.post(route, browserId=client.browser)
            assert reply.status_code == 404 and "/getBrowser" in reply.json()["error"]
    assert _status(narrow)["free"] == 1


def test_a_lease_ends_at_its_hard_end_unless_renewed(narrow: Any, server_site: Site) -> None:
    with Client(narrow.url, server_site.url, leaseSeconds=50) as client:
        client.open("/")
        renewed = client.ok("renewBrowser", browserId=client.browser, leaseSeconds=200)
        assert 150 < renewed["expiresAt"] - time.time() <= 200
        _sweep(narrow, 100)
        assert client.post("renewBrowser", browserId=client.browser).status_code == 200
        folder = narrow._pool.leases[client.browser].session.folder
        client.ok("renewBrowser", browserId=client.browser, leaseSeconds=20)
        _sweep(narrow, 30)
        assert client.post("getAccessibilityTree", browserId=client.browser).status_code == 404
        assert not folder.exists()


def test_a_parked_browser_makes_room_for_a_new_one(narrow: Any, server_site: Site) -> None:
    with Client(narrow.url, server_site.url) as client:
        client.open("/")
        client.ok("renewBrowser", browserId=client.browser, parked=True)
        assert [each["parked"] for each in _status(narrow)["browsers"]] == [True]
        client.tree()  # used again: it is not parked any more
        assert client.post("getBrowser").status_code == 503
        client.ok("renewBrowser", browserId=client.browser, parked=True)
        with Client(narrow.url, server_site.url) as other:
            other.open("/two")
            reply = client.post("getAccessibilityTree", browserId=client.browser)
            assert (reply.status_code, reply.json()["code"]) == (404, "browser_gone")


def test_who_waits_too_long_is_kinds_when_to_come_again(narrow: Any, server_site: Site) -> None:
    with Client(narrow.url, server_site.url):
        late = requests.post(f"{narrow.url}/getBrowser", json={}, timeout=60)
        assert late.status_code == 503 and int(late.headers["Retry-After"]) > 0
        assert "no browser became free" in late.json()["error"]
    with Client(narrow.url, server_site.url) as client:
        assert client.browser


def test_closing_does_not_wait_for_a_request_at_work(narrow: Any, server_site: Site) -> None:
    answers: list[requests.Response] = []
    with Client(narrow.url, server_site.url) as client:
        client.open("/")

        def at_work() -> None:
            where = {"browserId": client.browser, "actionName": "wait_for"}
            body = {**where, "text": "never", "timeout": 50_000}
            answers.append(requests.post(f"{narrow.url}/performAction", json=body, timeout=60))

        thread = threading.Thread(target=at_work)
        thread.start()
        lease = narrow._pool.leases[client.browser]
        assert until(lease.session.lock.locked)
        client.ok("closeBrowser", browserId=client.browser)
        thread.join(30)
    assert not thread.is_alive() and answers[0].status_code == 404


def test_metrics_are_what_prometheus_reads(narrow: Any) -> None:
    requests.post(f"{narrow.url}/closeBrowser", json={"browserId": "none"}, timeout=60)
    reply = requests.get(f"{narrow.url}/metrics", timeout=60)
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    kinds: dict[str, str] = {}
    for line in reply.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        elif not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert name.split("{")[0] in kinds and float(value) >= 0
    assert kinds["web_server_requests_total"] == "counter"
    assert kinds["web_server_browsers_free"] == "gauge"
    assert 'web_server_requests_total{route="closeBrowser",status="404"}' in reply.text


_BODIES = {
    "getBrowser": contract.GetBrowser,
    "closeBrowser": contract.BrowserRequest,
    "renewBrowser": contract.RenewBrowser,
    "openPage": contract.OpenPage,
    "gotoUrl": contract.GotoUrl,
    "getAccessibilityTree": contract.GetAccessibilityTree,
    "performAction": contract.PerformAction,
    "takeScreenshot": contract.PageRequest,
    "loadScreenshot": contract.RoundRequest,
    "gethtmlcontent": contract.RoundRequest,
    "getFile": contract.GetFile,
}
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(st.sampled_from(sorted(_BODIES)), st.data())
def test_no_request_is_the_fault_of_the_server(
    narrow: Any, route: str, data: st.DataObject
) -> None:
    fields = dict.fromkeys(_BODIES[route].model_fields, _ANY)
    body = data.draw(st.fixed_dictionaries({}, optional=fields) | _ANY)
    text = json.dumps(body)
    reply = requests.post(f"{narrow.url}/{route}", data=text, timeout=60)
    assert reply.status_code in (200, 400, 404, 503), reply.text
    if reply.status_code == 200:
        assert route == "getBrowser"
        requests.post(f"{narrow.url}/closeBrowser", json=reply.json(), timeout=60)
    else:
        error = reply.json()["error"]
        assert error and "\n" not in error


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"4"),
        (b"POST /openPage HTTP/1.1\r\nHost: localhost\r\nContent-Length: many\r\n\r\n", b"400"),
        (
            b"POST /openPage HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n",
            b"413",
        ),
        (b"POST /openPage HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: odd\r\n\r\n", b"501"),
        (
            b"POST /%zz/../openPage?a=%00 HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
            b"404",
        ),
        (b"GET /" + b"x" * 300_000 + b" HTTP/1.1\r\n\r\n", b"431"),
    ],
)
def test_what_is_no_proper_http_is_answered(narrow: Any, raw: bytes, status: bytes) -> None:
    with socket.create_connection((narrow.host, narrow.port), 60) as peer:
        peer.settimeout(60)
        peer.sendall(raw)
        head, _, body = b"".join(iter(lambda: peer.recv(4096), b"")).partition(b"\r\n\r\n")
    assert head.split(b" ")[1].startswith(status)
    assert json.loads(body)["error"]


def test_ten_requests_are_answered_at_the_end(server_site: Site) -> None:
    options = ("--log-format", "json", "--verbose", "--max-browsers", "2")
    with Process(*options, site=server_site) as running:
        _answered_at_the_end(running, server_site)
        folders = f"ck-web-server-{running.child.pid}-*"
    assert not list(folder_base().glob(folders))


def _at_work(url: str) -> int:
    text = requests.get(f"{url}/metrics", timeout=60).text
    (line,) = (line for line in text.splitlines() if line.startswith("web_server_requests_at_work"))
    return int(line.split()[1])


def _answered_at_the_end(running: Process, server_site: Site) -> None:
    url = running.url
    clients = [Client(url, server_site.url) for _ in range(2)]
    for client in clients:
        client.__enter__()
        client.open("/")
    answers: list[requests.Response] = []

    def at_work(browser: str) -> None:
        body = {"browserId": browser, "actionName": "wait_for", "timeout": 600}
        answers.append(requests.post(f"{url}/performAction", json=body, timeout=60))

    def queueing() -> None:
        answers.append(requests.post(f"{url}/getBrowser", json={}, timeout=60))

    # Of each browser one request is at work and two wait for it; four callers wait for a browser.
    works = [lambda each=client: at_work(each.browser) for client in clients for _ in range(3)]  # type: ignore[misc]
    threads = [threading.Thread(target=work) for work in [*[queueing] * 4, *works]]
    for thread in threads[:4]:
        thread.start()
    assert until(lambda: requests.get(f"{url}/status", timeout=60).json()["waiting"] == 4)
    for thread in threads[4:]:
        thread.start()
    # all ten have come: those that are answered, and those at work with the one that asks
    assert until(lambda: len(answers) + _at_work(url) > len(threads))
    assert running.end(signal.SIGTERM) == 0
    for thread in threads:
        thread.join(60)
    for client in clients:
        client.http.close()
    assert sorted(answer.status_code for answer in answers) == [200] * 6 + [503] * 4
    for answer in answers:
        if answer.status_code == 503:
            assert "is stopping" in answer.json()["error"] and answer.headers["Retry-After"]
    log = running.log()
    lines = [json.loads(line) for line in log.splitlines()]
    done = [line for line in lines if line.get("action") == "wait_for"]
    assert [line["status"] for line in done] == [200] * 6
    assert {line["browser"] for line in done} == {each.browser[:8] for each in clients}
    assert not any(client.browser in log for client in clients)


def test_a_lease_that_is_over_is_of_no_use_from_then_on(narrow: Any, server_site: Site) -> None:
    with Client(narrow.url, server_site.url) as client:
        narrow._pool.leases[client.browser].expires_at = time.time() - 0.001
        for route in ("renewBrowser", "openPage"):
            assert client.post(route, browserId=client.browser, url="x").status_code == 404
    assert until(lambda: _status(narrow)["free"] == 1)
