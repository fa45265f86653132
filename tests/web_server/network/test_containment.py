"""Pages cannot reach forbidden addresses by any kind of request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from server_client import Client
from server_site import PAGES, until

from web_server.network import proxy

pytestmark = pytest.mark.browser


class Canary:
    """A server on a loopback port without a rule; it counts connections."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.came: list[bytes] = []
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(10)
                self.came.append(peer.recv(200))
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(20)


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def rebinding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name whose first address is public and all later ones are not."""
    asked: list[str] = []
    resolve = proxy._resolve

    async def answer(host: str, port: int) -> list[str]:
        if host != "rebind.example":
            return await resolve(host, port)
        asked.append(host)
        return ["203.0.113.5"] if len(asked) == 1 else ["127.0.0.1"]

    monkeypatch.setattr(proxy, "_resolve", answer)


WAYS = {
    "fetch": "fetch(P).then(done, done)",
    "no-cors": "fetch(P, {mode: 'no-cors', method: 'POST', body: 'x'}).then(done, done)",
    "localhost": "fetch(P.replace('127.0.0.1', 'localhost'), {mode: 'no-cors'}).then(done, done)",
    "decimal": "fetch(P.replace('127.0.0.1', '2130706433'), {mode: 'no-cors'}).then(done, done)",
    "mapped": """fetch(P.replace('127.0.0.1', '[::ffff:127.0.0.1]'), {mode: 'no-cors'})
        .then(done, done)""",
    "rebinding": """const name = P.replace('127.0.0.1', 'rebind.example');
        fetch(name, {mode: 'no-cors'}).catch(() => fetch(name, {mode: 'no-cors'}))
        .then(done, done)""",
    "image": "const i = new Image(); i.onload = i.onerror = done; i.src = P",
    "script": "const s = document.createElement('script'); s.onload = s.onerror = done; s.src = P;"
    "document.head.append(s)",
    "beacon": "navigator.sendBeacon(P, 'x'); setTimeout(done, 200)",
    "events": "const e = new EventSource(P); e.onerror = done",
    "websocket": "const w = new WebSocket(P.replace('http', 'ws')); w.onclose = w.onopen = done",
    "worker": """const code = `fetch('${P}', {mode: 'no-cors'}).then(() => postMessage(1),
        () => postMessage(1))`; const w = new Worker(URL.createObjectURL(new Blob([code])));
        w.onmessage = done""",
    "service worker": """navigator.serviceWorker.register('/sw.js').then(() =>
        navigator.serviceWorker.ready).then((r) => { const c = new MessageChannel();
        c.port1.onmessage = done; r.active.postMessage(P, [c.port2]) }).catch(done)""",
    "redirect": """fetch('/redirect?to=' + encodeURIComponent(P), {mode: 'no-cors'})
        .then(done, done)""",
    "frame": "const f = document.createElement('iframe'); f.onload = done; f.src = P;"
    "document.body.append(f)",
    "prefetch": "document.head.insertAdjacentHTML('beforeend', `<link rel=preconnect href='${P}'>"
    "<link rel=prefetch href='${P}'><link rel=dns-prefetch href='${P}'>`); setTimeout(done, 300)",
    "rtc": """const r = new RTCPeerConnection({iceServers: [{urls: P.replace('http://', 'turn:')
        .split('/')[0] + '?transport=tcp', username: 'u', credential: 'c'}]});
        r.createDataChannel('x'); r.createOffer().then((o) => r.setLocalDescription(o));
        r.onicecandidate = (e) => e.candidate || done(); setTimeout(done, 500)""",
    "form": "const f = document.createElement('form'); f.action = P; f.target = 'inner'; f.method ="
    "'post'; const i = document.createElement('iframe'); i.name = 'inner';"
    "document.body.append(f, i); i.onload = done; f.submit()",
    "file": "const f = document.createElement('iframe'); f.src = 'file:///etc/passwd';"
    "document.body.append(f); fetch('file:///etc/passwd').then(done, done)",
}


LINKS = [
    "http://127.0.0.1:{}/", "/redirect?to=http://127.0.0.1:{}/", "file:///etc/passwd",
    "view-source:http://127.0.0.1:{}/", "javascript:location='http://127.0.0.1:{}/'",
    "chrome://version", "data:text/html,<script>location='http://127.0.0.1:{}/'</script>",
]  # fmt: skip


def test_pages_cannot_reach_private_addresses_or_files(client: Client, canary: Canary) -> None:
    runs = ",".join(
        f"new Promise((done) => {{ const P = base + '{way.replace(' ', '-')}'; {code} }})"
        for way, code in WAYS.items()
    )
    PAGES["/hostile"] = (
        f"<title>Hostile</title><body><p id=out>trying</p><script>const base ="
        f" 'http://127.0.0.1:{canary.port}/'; let n = 0; for (const way of [{runs}])"
        f" way.then(() => {{ n += 1; out.textContent = `tried ${{n}} ways` }})</script>"
    )
    client.open("/hostile")
    client.act("wait_for", text=f"tried {len(WAYS)} ways", timeout=50_000)
    assert canary.came == []
    result = client.act("wait", timeout=1, scope="page")
    assert "secret" not in result and "root:" not in result


@pytest.mark.parametrize("window", ["", "_blank"])
def test_no_link_reaches_the_canary(client: Client, canary: Canary, window: str) -> None:
    client.open("/two")
    for link in LINKS:
        PAGES["/link"] = (
            f'<title>Link</title><a href="{link.format(canary.port)}" target="{window}">Go</a>'
        )
        client.go("/link")
        result = client.act("click", "link 'Go'", scope="page")
        assert "secret" not in result and "root:" not in result, link
        assert canary.came == [], link


def test_the_canary_server_responds(client: Client, canary: Canary) -> None:
    """The test above means something: who may go there, arrives."""
    with socket.create_connection(("127.0.0.1", canary.port), 10) as peer:
        peer.sendall(b"x")
        assert b"secret" in peer.recv(200)
    assert until(lambda: canary.came == [b"x"])
