"""The server under the demo's site: start, stop, odd requests, many visitors at once."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from ck_main.demo_site import DemoSite
from ck_main.demo_site import site as demo_site
from ck_main.demo_site.site import main
from ck_pro.exceptions import InputError

pytestmark = pytest.mark.integration


def raw(origin: str, request: bytes) -> bytes:
    """What comes back for bytes on the wire, until the server hangs up."""
    parts = urlsplit(origin)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    return received


def test_it_starts_stops_and_starts_again():
    before = set(threading.enumerate())
    site = DemoSite()
    with pytest.raises(RuntimeError, match="not running"):
        _ = site.origin
    for _ in range(2):
        assert site.start() is site.start()
        with requests.Session() as session:
            assert session.get(f"{site.origin}/about", timeout=30).status_code == 200
            site.stop()  # with the visitor's connection still open
        site.stop()
        with pytest.raises(RuntimeError):
            _ = site.origin
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()


def test_stopping_does_not_wait_for_the_late_list(monkeypatch):
    monkeypatch.setattr(demo_site, "WORKSHOP_DELAY", 100.0)
    asked = threading.Event()

    class Watched(DemoSite):
        def answer(self, method, path, fields):
            asked.set()
            return super().answer(method, path, fields)

    site = Watched().start()
    origin = site.origin
    visitor = threading.Thread(target=raw, args=(origin, b"GET /api/workshop HTTP/1.1\r\n\r\n"))
    visitor.start()
    assert asked.wait(30)
    site.stop()
    visitor.join(30)
    assert not visitor.is_alive()


def test_one_connection_serves_many_requests(site):
    line = b"GET /assets/logo.svg HTTP/1.1\r\nHost: x\r\n\r\n"
    answers = raw(site.origin, line * 3)
    assert answers.count(b"HTTP/1.1 200") == 3
    assert answers.count(b"</svg>") == 3


def test_head_has_the_length_but_no_body(visitor):
    reply = visitor.session.head(visitor.site.origin + "/about", timeout=30)
    assert reply.status_code == 200 and reply.content == b""
    assert int(reply.headers["Content-Length"]) == len(visitor.get("/about").content)
    assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("POST /order HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 400),
        ("POST /order HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST /order HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST /order HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 415),
        ("GET //[ HTTP/1.1\r\n\r\n", 404),
        ("GET http://[/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://any.host/about HTTP/1.1\r\n\r\n", 200),
        ("GET /about?" + "a&" * 200 + " HTTP/1.1\r\n\r\n", 400),
        ("DELETE /about HTTP/1.1\r\n\r\n", 501),
        ("GET /" + "a" * 70000 + " HTTP/1.1\r\n\r\n", 414),
        ("nonsense\r\n\r\n", 400),
    ],
)
def test_odd_requests_get_a_status(site, request_text, status):
    answer = raw(site.origin, request_text.encode())
    assert f" {status} ".encode() in answer.partition(b"\r\n")[0] or (
        status == 400 and b"Error code: 400" in answer
    )


@given(st.binary(max_size=60))
def test_the_server_survives_any_bytes(site, noise):
    raw(site.origin, b"GET /" + noise + b"\r\n\r\n")
    assert b"200 OK" in raw(site.origin, b"GET /contact HTTP/1.0\r\n\r\n")


def test_a_closed_connection_is_not_logged(site, capfd):
    parts = urlsplit(site.origin)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        linger = (1).to_bytes(4, sys.byteorder) + (0).to_bytes(4, sys.byteorder)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.sendall(b"GET /catalogue HTTP/1.1\r\nHost: x\r\n\r\nGET /ab")
    assert requests.get(f"{site.origin}/faq", timeout=30).status_code == 200
    assert capfd.readouterr() == ("", "")


def test_many_visitors_at_once(site):
    paths = ["/about", "/api/products?q=rain", "/api/workshop", "/stations/dun-edge"] * 10
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda path: requests.get(site.origin + path, timeout=60), paths))
    assert [reply.status_code for reply in replies] == [200] * len(paths)
    assert len({reply.content for reply in replies}) == 4


def test_a_folder_without_the_site_is_one_clear_line(tmp_path):
    with pytest.raises(InputError, match=r"web site in") as caught:
        DemoSite(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_taken_port_is_one_clear_line(site, capsys):
    port = urlsplit(site.origin).port
    with pytest.raises(InputError, match=rf"127\.0\.0\.1:{port} .*--port"):
        DemoSite(port=port).start()
    assert main(["--port", str(port)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_serves_until_it_is_interrupted():
    command = [sys.executable, "-m", "ck_main.demo_site", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            origin = process.stdout.readline().removeprefix("listening on ").strip()
            assert requests.get(origin, timeout=30).status_code == 200
            process.send_signal(2)
            assert process.wait(30) == 0
        finally:
            process.kill()
