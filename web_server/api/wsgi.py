"""The WSGI server (waitress) in front of the application."""

from __future__ import annotations

import json
import logging
import time
from http import HTTPStatus
from typing import Any

from flask import Flask
from waitress import create_server  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.parser import HTTPRequestParser  # type: ignore[import-untyped]
from waitress.server import BaseWSGIServer  # type: ignore[import-untyped]
from waitress.task import ErrorTask, WSGITask  # type: ignore[import-untyped]

from web_server.api.admission import Admission
from web_server.errors import ServerError

MAX_BODY = 100_000_000
"""Limit for the body of a request in bytes. Larger requests get 413 before they are read."""
_READ_BYTES = 256 * 1024
_UNSENT_BYTES = 1_000_000_000
"""Limit for buffering an unread response, in bytes, on disk: larger than any response. So a slow
client does not block a thread."""
_SPARE_CONNECTIONS = 200
HEAD_SECONDS = 10.0
"""Limit for receiving the head of a request."""
BODY_SECONDS = 30.0
BODY_RATE = 50_000
"""Limit for receiving a body: `BODY_SECONDS`, and one second more per `BODY_RATE` bytes."""
IDLE_SECONDS = 120.0
"""Limit for a connection without a request."""
_SMALL_BODY = 65_536
_HINTS = {
    413: f"the request is too large: {MAX_BODY:,} bytes at most",
    431: "the head of the request is too large",
    501: "this transfer encoding is not supported: use Content-Length or chunked",
}


class _JsonErrorTask(ErrorTask):  # type: ignore[misc]
    """Send errors about malformed HTTP as JSON."""

    def execute(self) -> None:
        """Write the response."""
        error = self.request.error
        message = getattr(error, "message", "") or _HINTS.get(
            error.code, f"malformed HTTP request: {error.body}"
        )
        body = json.dumps({"error": message}).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Task(WSGITask):  # type: ignore[misc]
    """Mark the connection of a successful request as trusted, so that it is closed last."""

    def execute(self) -> None:
        """Run the application."""
        super().execute()
        if str(self.status).startswith("2"):
            self.channel.trusted = True


class _Refusal:
    """An error response in the form of waitress's errors."""

    def __init__(self, error: ServerError) -> None:
        self.code = error.status
        self.reason = HTTPStatus(error.status).phrase
        self.body = error.message
        self.message = error.message


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Parse a request. A large body is read only if the headers are admitted.

    Attributes:
        admission: set by `listen`, in a subclass for each server.
    """

    admission: Admission

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the head of a request."""
        super().parse_header(header_plus)
        if not self.chunked and self.content_length <= _SMALL_BODY:
            return  # the client may have sent it already: the application checks it
        refused = self.admission.refusal(
            lambda name: self.headers.get(name.upper().replace("-", "_"))
        )
        if refused is not None:
            self.error = _Refusal(refused)
            self.completed = True


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection with time limits for receiving requests.

    Attributes:
        trusted: whether a request on it has succeeded.
        max_connections: set by `listen`, in a subclass for each server.
    """

    task_class = _Task
    error_task_class = _JsonErrorTask
    trusted = False
    max_connections = 0
    request: Any

    def __init__(self, server: Any, *arguments: Any, **named: Any) -> None:
        self.started = time.time()
        super().__init__(server, *arguments, **named)
        self._make_room(server)

    def _make_room(self, server: Any) -> None:
        """Close the connection that waits longest if there are too many.

        Connections without a successful request are closed first. So a client that opens many
        connections without a request, or without the token, closes only those.
        """
        others = [each for each in server.active_channels.values() if not each.will_close]
        if len(others) <= self.max_connections:
            return
        idle = [each for each in others if each is not self and not each.busy]
        victim = min(idle, key=lambda each: (each.trusted, each.since), default=self)
        victim.will_close = True

    @property
    def busy(self) -> bool:
        """Whether a request is in progress or its response is being sent."""
        return bool(self.requests or self.total_outbufs_len)

    @property
    def since(self) -> float:
        """Start of the request that is being received, or the time of the last activity."""
        return float(self.last_activity if self.request is None else self.started)

    def received(self, data: bytes) -> bool:
        """Process received data."""
        before = self.request
        more: bool = super().received(data)
        if self.request is not before:
            self.started = time.time()
        return more

    def readable(self) -> bool:
        """Whether to read from the connection. waitress calls this at least once a second."""
        if not self.busy and not self.will_close and self._overdue(time.time()):
            self._give_up()
        readable: bool = super().readable()
        return readable

    def _overdue(self, now: float) -> bool:
        waited = now - self.since
        if self.request is None:
            return waited > IDLE_SECONDS
        if not self.request.headers_finished:
            return waited > HEAD_SECONDS
        return bool(waited > BODY_SECONDS + self.request.body_bytes_received / BODY_RATE)

    def _give_up(self) -> None:
        """Close the connection, with 408 if it has sent a part of a request."""
        if self.request is None:
            self.will_close = True
            return
        self.request.close()
        self.request = None
        body = json.dumps({"error": "the request was not complete in time: send it again"}).encode()
        head = (
            "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json"
            f"\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with self.outbuf_lock:
            self.outbufs[-1].append(head.encode() + body)
            self.total_outbufs_len += len(head) + len(body)
        self.close_when_flushed = True


class Listener:
    """A waitress server with its connections.

    Args:
        server: the result of `create_server`.
        sockets: the listening sockets and connections by file descriptor.
    """

    def __init__(self, server: Any, sockets: dict[int, Any]) -> None:
        self._server = server
        self._sockets = sockets

    @property
    def port(self) -> int:
        """The port of the first listening socket."""
        listening = getattr(self._server, "effective_listen", None)
        return int(listening[0][1] if listening else self._server.effective_port)

    @property
    def connections(self) -> list[HTTPChannel]:
        """The open connections."""
        return [each for each in list(self._sockets.values()) if isinstance(each, HTTPChannel)]

    @property
    def sending(self) -> bool:
        """Whether a response is being sent."""
        return any(each.total_outbufs_len or each.requests for each in self.connections)

    def run(self) -> None:
        """Serve until SystemExit is raised on this thread or `close` is called."""
        self._server.run()

    def close(self) -> None:
        """Stop listening, and end all connections and worker threads."""
        for each in self.connections:
            # `run` continues while connections are open, even idle ones.
            each.close_when_flushed = True
        self._server.close()
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=5)


def listen(app: Flask, host: str, port: int, threads: int, admission: Admission) -> Listener:
    """Listen on an address. Call `run` of the result to serve.

    Args:
        app: the application.
        host: address or name to bind to.
        port: port to bind to; 0 picks a free one.
        threads: limit of concurrent requests.
        admission: which requests are admitted.

    Raises:
        OSError: binding to the address failed.
        ValueError: the name does not resolve.
    """
    # waitress would log for each request that all threads are busy.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    sockets: dict[int, Any] = {}
    server = create_server(
        app,
        map=sockets,
        host=host,
        port=port,
        threads=threads,
        # `_Channel` closes idle connections long before waitress refuses new ones.
        connection_limit=2 * (threads + _SPARE_CONNECTIONS) + _SPARE_CONNECTIONS,
        channel_timeout=int(IDLE_SECONDS),
        channel_request_lookahead=1,  # required to detect that a client has disconnected
        max_request_body_size=MAX_BODY,
        recv_bytes=_READ_BYTES,
        outbuf_high_watermark=_UNSENT_BYTES,
        asyncore_use_poll=True,  # select() is limited to 1,024 files
        clear_untrusted_proxy_headers=True,
        ident=None,
    )
    parser = type("_Parser", (_Parser,), {"admission": admission})
    attributes = {"parser_class": parser, "max_connections": threads + _SPARE_CONNECTIONS}
    channel = type("_Channel", (_Channel,), attributes)
    for each in sockets.values():
        if isinstance(each, BaseWSGIServer):
            each.channel_class = channel
    return Listener(server, sockets)
