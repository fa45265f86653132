"""The filtering proxy, over loopback sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from web_server.network import proxy as proxy_module
from web_server.network.policy import Policy
from web_server.network.proxy import FilterProxy

Talk = Callable[[str, int], Awaitable[None]]


async def _origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request with what it got; keeps the connection open if it may."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            body = b""
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    body = await reader.readexactly(int(line.split(b":")[1]))
            got = head + body
            writer.write(
                b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n"
                % len(got)
            )
            writer.write(got)
            await writer.drain()
            if b"connection: close" in head.lower():
                return
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


def _with_proxy(
    allow: Callable[[int], list[str]],
    talk: Callable[[int, int], Awaitable[None]],
    refused: list[tuple[str, str]] | None = None,
) -> None:
    """Run `talk(proxy port, origin port)` against a proxy with those rules."""

    async def run() -> None:
        origin = await asyncio.start_server(_origin, "127.0.0.1", 0)
        port = origin.sockets[0].getsockname()[1]
        refusals = refused if refused is not None else []
        filtering = FilterProxy(Policy.of(allow(port)), lambda *line: refusals.append(line))
        url = await filtering.start()
        try:
            await asyncio.wait_for(talk(int(url.rsplit(":", 1)[1]), port), 30)
        finally:
            await filtering.stop()
            origin.close()

    asyncio.run(run())


async def _ask(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


def test_a_request_is_forwarded_in_origin_form() -> None:
    async def talk(port: int, origin: int) -> None:
        answer = await _ask(
            port,
            b"POST http://127.0.0.1:%d/a?b HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n"
            b"Content-Length: 3\r\n\r\nabc" % origin,
        )
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200") and b"Connection: close" in head
        assert b"keep-alive" not in answer
        assert body.startswith(b"POST /a?b HTTP/1.1\r\nHost: x\r\n") and body.endswith(b"abc")

    _with_proxy(lambda origin: [f"127.0.0.1:{origin}"], talk)


def test_a_second_request_on_the_connection_is_never_forwarded() -> None:
    async def talk(port: int, origin: int) -> None:
        one = b"GET http://127.0.0.1:%d/one HTTP/1.1\r\nHost: x\r\n\r\n" % origin
        answer = await _ask(port, one + b"GET http://127.0.0.1:1/two HTTP/1.1\r\nHost: y\r\n\r\n")
        assert b"/one" in answer and b"two" not in answer

    _with_proxy(lambda origin: [f"127.0.0.1:{origin}"], talk)


def test_a_tunnel_copies_in_both_directions() -> None:
    async def talk(port: int, origin: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % origin)
        assert b"200" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET /in HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert b"GET /in" in await reader.read()
        writer.close()

    _with_proxy(lambda origin: [f"127.0.0.1:{origin}"], talk)


@pytest.mark.parametrize(
    "request_line",
    ["GET http://127.0.0.1:{}/ HTTP/1.1", "CONNECT 127.0.0.1:{} HTTP/1.1",
     "GET http://localhost:{}/ HTTP/1.1", "CONNECT x.localhost:{} HTTP/1.1",
     "GET http://2130706433:{}/ HTTP/1.1"],
)  # fmt: skip
def test_private_addresses_are_refused_in_any_notation(request_line: str) -> None:
    refused: list[tuple[str, str]] = []

    async def talk(port: int, origin: int) -> None:
        answer = await _ask(port, f"{request_line.format(origin)}\r\nHost: x\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403")
        assert b"not a public address" in answer

    _with_proxy(lambda _: [], talk, refused)
    assert refused and "not a public address" in refused[0][1]


def test_a_name_that_resolves_to_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setattr(proxy_module, "_resolve", resolve)

    async def talk(port: int, origin: int) -> None:
        line = f"CONNECT rebind.example:{origin} HTTP/1.1\r\n\r\n"
        assert (await _ask(port, line.encode())).startswith(b"HTTP/1.1 403")

    _with_proxy(lambda _: [], talk)


def test_the_checked_address_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(proxy_module, "_resolve", resolve)

    async def talk(port: int, origin: int) -> None:
        line = f"GET http://named.example:{origin}/ HTTP/1.1\r\nHost: named.example\r\n\r\n"
        assert (await _ask(port, line.encode())).startswith(b"HTTP/1.1 200")

    _with_proxy(lambda _: ["named.example"], talk)
    assert asked == ["named.example"]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET file:///etc/passwd HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT :x HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT 127.0.0.1:9 HTTP/1.1\r\n\r\n", 502),
    ],
)
def test_malformed_and_failed_requests_get_a_response(data: bytes, status: int) -> None:
    async def talk(port: int, origin: int) -> None:
        assert (await _ask(port, data)).startswith(b"HTTP/1.1 %d" % status)

    _with_proxy(lambda _: ["127.0.0.1:9"], talk)
