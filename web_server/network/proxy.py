"""A filtering forward proxy between Chromium and the network.

Each session has its own proxy on loopback. Chromium sends it every connection of the session, of
navigations, redirects, frames, pop-ups, workers and web sockets. The proxy resolves the name,
checks the address against the policy, and connects to exactly this address. So a name that resolves
to a different address later gains nothing (DNS rebinding).

HTTP requests arrive in absolute form (RFC 9112, 3.2.2), other connections as CONNECT tunnels. A
connection serves one request. The proxy does not forward what a client sends after it, because that
might be for another host.
"""

from __future__ import annotations

import asyncio
import html
import os
import re
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from web_server.network.policy import Policy, parse_address

_HEAD_LIMIT = 256 * 1024
_CHUNK = 64 * 1024
_RESOLVE_SECONDS = 10.0
_CONNECT_SECONDS = 10.0
_FAILURES = 200
_HOP_BY_HOP = (b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te")
_STATUS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}


class _Refused(Exception):
    """The proxy refuses the connection, with this HTTP status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class FilterProxy:
    """A proxy that forwards what the policy allows.

    Args:
        policy: the rules in force.
        on_refused: called with `host:port` and the reason for each refused connection.

    Attributes:
        failures: why the last connection to a `host:port` failed. Chromium reports no reason.
    """

    def __init__(self, policy: Policy, on_refused: Callable[[str, str], None]) -> None:
        self._policy = policy
        self._on_refused = on_refused
        self.failures: dict[str, str] = {}
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on a free loopback port and return the proxy's URL."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, limit=_HEAD_LIMIT, backlog=256
        )
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._request(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, EOFError):
            pass  # an end closed the connection
        finally:
            _close(writer)

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *headers = head[:-4].split(b"\r\n")
        parts = line.decode("latin-1").split(" ")
        try:
            if len(parts) != 3:
                raise _Refused(400, "malformed request line")
            method, target, _ = parts
            if method == "CONNECT":
                host, port = _split_authority(target, 443)
                upstream = await self._connect(host, port)
            else:
                origin_form, host, port = _split_target(target)
                upstream = await self._connect(host, port)
        except _Refused as refusal:
            await _answer(writer, refusal.status, str(refusal))
            return
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _tunnel(reader, writer, *upstream)
            else:
                request = f"{method} {origin_form} HTTP/1.1".encode("latin-1")
                await _exchange(request, headers, reader, writer, *upstream)
        finally:
            _close(upstream[1])

    async def _connect(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Resolve a host, check its addresses and connect to one.

        Raises:
            _Refused: the policy refuses the host (403), or no address answers (502).
        """
        place = f"{host}:{port}"
        self.failures.pop(place, None)
        if reason := self._policy.refuse_host(host, port):
            raise self._refused(place, reason)
        failure = "the name does not resolve"
        refusal = ""
        for text in await _resolve(host, port):
            address = parse_address(text)
            if address is None:
                continue
            if reason := self._policy.refuse_address(host, port, address):
                refusal = reason
                continue
            try:
                connecting = asyncio.open_connection(text, port, limit=_HEAD_LIMIT)
                return await asyncio.wait_for(connecting, _CONNECT_SECONDS)
            except (OSError, asyncio.TimeoutError) as error:
                failure = _describe(error)
        if refusal:
            raise self._refused(place, refusal)
        self._note_failure(place, failure)
        raise _Refused(502, f"cannot reach {place}: {failure}")

    def _refused(self, place: str, reason: str) -> _Refused:
        self._on_refused(place, reason)
        self._note_failure(place, reason)
        return _Refused(403, f"{place}: {reason}")

    def _note_failure(self, place: str, reason: str) -> None:
        if len(self.failures) >= _FAILURES:
            self.failures.clear()
        self.failures[place] = reason


async def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host name; empty if it does not resolve."""
    if parse_address(host) is not None:
        return [host.strip("[]")]
    if host == "localhost" or host.endswith(".localhost"):
        return ["127.0.0.1", "::1"]
    lookup = asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.wait_for(lookup, _RESOLVE_SECONDS)
    except (OSError, asyncio.TimeoutError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _describe(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return (str(error) or type(error).__name__).lower()


def _split_authority(text: str, default_port: int) -> tuple[str, int]:
    """Split `host:port` or `[v6]:port`."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]/@\s]+)(?::(\d{1,5}))?", text)
    port = int(match[2]) if match and match[2] else default_port
    if not match or not 0 < port < 65536:
        raise _Refused(400, "malformed authority")
    return match[1].strip("[]"), port


def _split_target(target: str) -> tuple[str, str, int]:
    """Split an absolute-form target into origin form, host and port."""
    parts = urlsplit(target)
    if parts.scheme != "http":
        raise _Refused(400, "only http:// and CONNECT are served")
    host, port = _split_authority(parts.netloc.rsplit("@", 1)[-1], 80)
    path = target[len("http://") + len(parts.netloc) :].split("#", 1)[0]
    return path if path.startswith("/") else "/" + path, host, port


async def _exchange(
    request: bytes,
    headers: list[bytes],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    """Forward one request and its response."""
    kept = [line for line in headers if _name(line) not in _HOP_BY_HOP]
    up_writer.write(b"\r\n".join([request, *kept, b"Connection: close", b"", b""]))
    sending = asyncio.ensure_future(_send_body(headers, reader, up_writer))
    try:
        await _forward_heads(up_reader, writer)
        await _copy(up_reader, writer)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _forward_heads(up_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward the heads of the response. The final one gets `Connection: close`."""
    while True:
        head = await up_reader.readuntil(b"\r\n\r\n")
        line, *headers = head[:-4].split(b"\r\n")
        status = line.split(b" ")[1:2]
        if status and status[0].startswith(b"1"):
            writer.write(head)
            continue
        kept = [header for header in headers if _name(header) not in _HOP_BY_HOP]
        writer.write(b"\r\n".join([line, *kept, b"Connection: close", b"", b""]))
        return


async def _send_body(
    headers: list[bytes], reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter
) -> None:
    """Forward the body of the request and nothing after it."""
    fields = {_name(line): line.partition(b":")[2].strip().lower() for line in headers}
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while True:
            size_line = await reader.readuntil(b"\r\n")
            size = int(size_line.split(b";")[0], 16)
            up_writer.write(size_line + await reader.readexactly(size + 2))
            await up_writer.drain()
            if size == 0:
                return
    left = int(fields.get(b"content-length", b"0"))
    while left > 0:
        data = await reader.read(min(left, _CHUNK))
        if not data:
            return
        left -= len(data)
        up_writer.write(data)
        await up_writer.drain()


async def _tunnel(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    """Copy in both directions until one end closes."""
    copies = [
        asyncio.ensure_future(_copy(reader, up_writer)),
        asyncio.ensure_future(_copy(up_reader, writer)),
    ]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    """Send a page that shows why the request failed."""
    title = "Blocked" if status == 403 else "Page not reachable"
    body = (
        f"<!doctype html><meta charset=utf-8><title>{title}</title>"
        f"<h1>{title}</h1><p>{html.escape(reason)}</p>"
    ).encode()
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()


def _name(header: bytes) -> bytes:
    return header.partition(b":")[0].strip().lower()


def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection without waiting for the peer."""
    if not writer.is_closing():
        writer.close()
