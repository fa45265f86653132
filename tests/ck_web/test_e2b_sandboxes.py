"""The provider of e2b sandboxes, with the real SDK and a local fake of the service's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from fake_wire import FakeWire

from ck_pro.exceptions import BrowserServerError, LeaseExpired
from ck_web.sandbox import SandboxManager

pytest.importorskip("e2b", reason='needs the extra e2b: pip install "ck-pro[e2b]"')
from ck_web.e2b_sandboxes import E2BSandboxes

pytestmark = pytest.mark.integration


class FakeE2B:
    """The routes of e2b's API that the provider uses."""

    def __init__(self) -> None:
        self.sandboxes: dict[str, datetime] = {}
        self.requests: list[tuple[str, str, Any]] = []
        self.longest = timedelta(hours=1)
        handler = type("Handler", (_Handler,), {"api": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.requests.append((method, path, body))
        now = datetime.now(timezone.utc)
        parts = [part for part in path.partition("/sandboxes")[2].split("/") if part]
        if method == "POST" and not parts:
            name = f"vm{len(self.sandboxes) + 1}"
            self.sandboxes[name] = now + timedelta(seconds=body["timeout"])
            return 201, self.described(name)
        if parts[0] not in self.sandboxes:
            return 404, {"code": 404, "message": "sandbox not found"}
        if method == "DELETE":
            del self.sandboxes[parts[0]]
            return 204, None
        if parts[1:] == ["timeout"]:
            longer = min(timedelta(seconds=body["timeout"]), self.longest)
            self.sandboxes[parts[0]] = now + longer
            return 204, None
        return 200, self.described(parts[0])

    def described(self, name: str) -> dict[str, Any]:
        now = datetime.now(timezone.utc).isoformat()
        return {
            **{"templateID": "t", "sandboxID": name, "clientID": "c", "envdVersion": "0.4.0"},
            **{"cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "state": "running"},
            **{"startedAt": now, "endAt": self.sandboxes[name].isoformat(), "volumeMounts": []},
        }


class _Handler(BaseHTTPRequestHandler):
    api: FakeE2B
    protocol_version = "HTTP/1.1"

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, reply = self.api.answer(self.command, self.path.partition("?")[0], body)
        data = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _do

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[FakeE2B]:
    fake = FakeE2B()
    thread = threading.Thread(target=fake.http.serve_forever, args=(0.01,))
    thread.start()
    yield fake
    fake.http.shutdown()
    thread.join()
    fake.http.server_close()


@pytest.fixture
def provider(api: FakeE2B, wire: FakeWire, monkeypatch: pytest.MonkeyPatch) -> E2BSandboxes:
    """A provider whose machines answer as the fake browser server."""
    made = E2BSandboxes("browser-template", token="t", api_key="e2b_" + "0" * 40, api_url=api.url)
    host = wire.url.removeprefix("http://")
    monkeypatch.setattr("e2b.Sandbox.get_host", lambda self, port: host)
    wire.token = "t"
    return made


def test_a_machine_is_made_renewed_and_ended(
    api: FakeE2B, wire: FakeWire, provider: E2BSandboxes
) -> None:
    with SandboxManager(provider=provider, lease_seconds=300) as manager:
        sandbox = manager.ensure()
        assert list(api.sandboxes) == [sandbox.id] and 290 < sandbox.seconds_left <= 300
        assert sandbox.settings == {"server_url": wire.url, "token": "t"}
        assert manager.ensure().id == sandbox.id
        assert any(p.endswith(f"/{sandbox.id}/timeout") for _, p, _ in api.requests)
    assert not api.sandboxes


def test_a_given_machine_is_connected_and_never_ended(
    api: FakeE2B, wire: FakeWire, provider: E2BSandboxes
) -> None:
    made = provider.create(600)
    with SandboxManager(provider=provider, sandbox_id=made.id, sandbox_url=wire.url) as manager:
        assert manager.ensure().url == wire.url
    assert list(api.sandboxes) == [made.id]


def test_a_machine_that_cannot_last_is_expired(api: FakeE2B, provider: E2BSandboxes) -> None:
    api.longest = timedelta(seconds=30)
    with SandboxManager(provider=provider) as manager:
        manager.ensure()
        with pytest.raises(LeaseExpired, match="cannot be renewed"):
            manager.ensure()


def test_failures_are_one_line(provider: E2BSandboxes) -> None:
    with pytest.raises(BrowserServerError, match="e2b: cannot connect to the sandbox gone") as e:
        provider.connect("gone", "")
    assert "\n" not in str(e.value)
    made = replace(provider.create(None), url="http://127.0.0.1:9")
    with pytest.raises(BrowserServerError, match="connection refused"):
        provider.renew(made, None)
