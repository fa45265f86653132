"""Idle, slow and oversized connections do not block other clients."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
import requests
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from server_site import until

from web_server.api import wsgi
from web_server.api.admission import Admission

pytestmark = pytest.mark.integration

HALF = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


@pytest.fixture
def listener() -> Iterator[Any]:
    """A small server that asks for a token."""
    import threading

    app = Flask("small")

    @app.route("/echo", methods=["GET", "POST"])
    def echo() -> dict[str, int]:
        from flask import request

        return {"bytes": len(request.get_data())}

    running = wsgi.listen(app, "127.0.0.1", 0, 4, Admission("s3cret"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    yield running
    running.close()
    thread.join(20)


def _connect(listener: Any, data: bytes = b"") -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", listener.port), 30)
    peer.settimeout(30)
    peer.sendall(data)
    return peer


def _ask(listener: Any, session: Any = requests, **more: Any) -> requests.Response:
    headers = {"Authorization": "Bearer s3cret"}
    url = f"http://127.0.0.1:{listener.port}/echo"
    reply: requests.Response = session.post(url, headers=headers, timeout=60, **more)
    return reply


@pytest.mark.parametrize("data", [b"", b"POST /ec", HALF], ids=["nothing", "head", "body"])
def test_hundreds_of_incomplete_requests_do_not_block_other_clients(
    listener: Any, data: bytes
) -> None:
    with ExitStack() as stack, requests.Session() as session:
        session.trust_env = False
        assert _ask(listener, session, data=b"x" * 9).json() == {"bytes": 9}
        for _ in range(500):
            stack.enter_context(closing(_connect(listener, data)))
        assert _ask(listener, data=b"x" * 7).json() == {"bytes": 7}
        assert until(lambda: len(listener.connections) <= 205)
        # A connection that has been of use is closed after all those that were not.
        (kept,) = [each for each in listener.connections if each.trusted and each.request is None][
            :1
        ]
        assert _ask(listener, session, data=b"x" * 8).json() == {"bytes": 8}
        assert kept.connected


@pytest.mark.parametrize(
    ("name", "data", "answer"),
    [
        ("HEAD_SECONDS", b"POST /echo HTTP/1.1\r\n", b"HTTP/1.1 408 "),
        ("BODY_SECONDS", HALF, b"HTTP/1.1 408 "),
        ("IDLE_SECONDS", b"", b""),
    ],
)
def test_an_incomplete_request_gets_408(
    listener: Any, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, answer: bytes
) -> None:
    monkeypatch.setattr(wsgi, name, 0.1)
    with closing(_connect(listener, data)) as peer:
        got = b""
        while part := peer.recv(4096):
            got += part
        assert got.startswith(answer)
        assert not answer or json.loads(got.partition(b"\r\n\r\n")[2])["error"]
    assert until(lambda: not listener.connections)


def test_a_very_slow_request_gets_408(listener: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wsgi, "HEAD_SECONDS", 1.0)
    peer = _connect(listener, b"GET /echo HTTP/1.1\r\nX: ")

    def ended() -> bool:
        try:
            peer.sendall(b"a")
        except OSError:
            return True
        return not listener.connections

    with closing(peer):
        assert until(ended)


@pytest.mark.parametrize(
    "head", [b"Content-Length: 90000000\r\n", b"Transfer-Encoding: chunked\r\n"]
)
def test_a_large_body_without_the_token_is_refused_before_it_arrives(
    listener: Any, head: bytes
) -> None:
    with closing(_connect(listener, b"POST /echo HTTP/1.1\r\n" + head + b"\r\n")) as peer:
        assert peer.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_pipelined_requests_are_answered_in_order(listener: Any) -> None:
    one = b"POST /echo HTTP/1.1\r\nAuthorization: Bearer s3cret\r\nContent-Length: %d\r\n\r\n%s"
    many = b"".join(one % (n, b"x" * n) for n in range(1, 20))
    with closing(_connect(listener, many)) as peer:
        got = b""
        while got.count(b"bytes") < 19:
            got += peer.recv(65536)
    assert [int(part.split(b"}")[0]) for part in got.split(b'bytes":')[1:]] == list(range(1, 20))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1:3000"}, None),
        ({"Host": "LOCALHOST"}, None),
        ({"Host": "localhost."}, None),
        ({"Host": "[::1]:80"}, None),
        ({"Host": "known.example:3"}, None),
        ({"Host": "10.0.0.7:3"}, None),
        ({}, None),
        ({"Host": "127.0.0.1", "Sec-Fetch-Site": "none"}, None),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:3000"}, 403),
        ({"Host": "evil.example, 127.0.0.1"}, 403),
        ({"Host": "localhost@evil.example"}, 403),
        ({"Host": "127.0.0.1", "Origin": "null"}, 403),
        ({"Host": "127.0.0.1", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "127.0.0.1", "Sec-Fetch-Site": "same-origin"}, 403),
    ],
)
def test_a_server_without_a_token_checks_the_host_header(
    headers: dict[str, str], status: int | None
) -> None:
    refused = Admission("", ["10.0.0.7", "Known.Example"]).refusal(headers.get)
    assert (refused and refused.status) == status


@given(st.dictionaries(st.sampled_from(["Host", "Authorization", "Origin"]), st.text()))
def test_any_headers_are_admitted_or_refused(headers: dict[str, str]) -> None:
    refused = Admission("s3cret").refusal(headers.get)
    assert refused is not None and refused.status in (401, 403)
