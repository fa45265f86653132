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
"""Bytes that a request may have; what is more is told by 413 before it is read."""
_READ_BYTES = 256 * 1024
_UNSENT_BYTES = 1_000_000_000
"""So much of an answer that its caller does not read is kept, on disk, instead of the thread that
made it: more than any answer has."""
_SPARE_CONNECTIONS = 200
HEAD_SECONDS = 10.0
"""How long the head of a request may take to come."""
BODY_SECONDS = 30.0
BODY_RATE = 50_000
"""How long the body of a request may take: so many seconds, and one more per so many bytes."""
IDLE_SECONDS = 120.0
"""How long a connection may stay open without a request."""
_SMALL_BODY = 65_536
_HINTS = {
    413: f"the request is too large: {MAX_BODY:,} bytes at most",
    431: "the head of the request is too large",
    501: "this transfer encoding is not served: send Content-Length, or chunks",
}


class _JsonErrorTask(ErrorTask):  # type: ignore[misc]
    """Answers what is no proper HTTP the way in which all other faults are answered."""

    def execute(self) -> None:
        """Write the answer."""
        error = self.request.error
        message = getattr(error, "message", "") or _HINTS.get(
            error.code, f"this is no proper HTTP request: {error.body}"
        )
        body = json.dumps({"error": message}).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Task(WSGITask):  # type: ignore[misc]
    """Notes that a connection has been of use: it is then closed later than others."""

    def execute(self) -> None:
        """Answer the request."""
        super().execute()
        if str(self.status).startswith("2"):
            self.channel.trusted = True


class _Refusal:
    """A refusal in the form of waitress's errors."""

    def __init__(self, error: ServerError) -> None:
        self.code = error.status
        self.reason = HTTPStatus(error.status).phrase
        self.body = error.message
        self.message = error.message


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Reads a request. A large body is read only if the headers admit the request.

    Attributes:
        admission: set by `listen`, in a class of each server's own.
    """

    admission: Admission

    def parse_header(self, header_plus: bytes) -> None:
        """Read the head of a request."""
        super().parse_header(header_plus)
        if not self.chunked and self.content_length <= _SMALL_BODY:
            return  # it may have been sent already: the application refuses it when it is there
        refused = self.admission.refusal(
            lambda name: self.headers.get(name.upper().replace("-", "_"))
        )
        if refused is not None:
            self.error = _Refusal(refused)
            self.completed = True


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection, which has to send its requests in time.

    Attributes:
        trusted: whether a request on it has been answered with success.
    """

    task_class = _Task
    error_task_class = _JsonErrorTask
    trusted = False
    most = 0
    request: Any

    def __init__(self, server: Any, *arguments: Any, **named: Any) -> None:
        self.began = time.time()
        super().__init__(server, *arguments, **named)
        self._make_room(server)

    def _make_room(self, server: Any) -> None:
        """Close the connection that waits longest where there are too many.

        Those on which no request ever succeeded go first, so who opens many without a request, or
        without the token, closes only their own.
        """
        others = [each for each in server.active_channels.values() if not each.will_close]
        if len(others) <= self.most:
            return
        idle = [each for each in others if each is not self and not each.busy]
        victim = min(idle, key=lambda each: (each.trusted, each.since), default=self)
        victim.will_close = True

    @property
    def busy(self) -> bool:
        """Whether a request is being answered, or its answer sent."""
        return bool(self.requests or self.total_outbufs_len)

    @property
    def since(self) -> float:
        """When the request that is being sent began, or the last activity if there is none."""
        return float(self.last_activity if self.request is None else self.began)

    def received(self, data: bytes) -> bool:
        """Read what the caller sent."""
        before = self.request
        more: bool = super().received(data)
        if self.request is not before:
            self.began = time.time()
        return more

    def readable(self) -> bool:
        """Whether to read from the connection; asked about once a second at least."""
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
        """Close the connection; one that has sent part of a request gets 408."""
        if self.request is None:
            self.will_close = True
            return
        self.request.close()
        self.request = None
        body = json.dumps({"error": "the request did not come in time: send it whole"}).encode()
        head = (
            "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json"
            f"\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with self.outbuf_lock:
            self.outbufs[-1].append(head.encode() + body)
            self.total_outbufs_len += len(head) + len(body)
        self.close_when_flushed = True


class Listener:
    """A waitress server, with the connections that it has.

    Args:
        server: what `create_server` made.
        sockets: by file number; the server's own, and all connections.
    """

    def __init__(self, server: Any, sockets: dict[int, Any]) -> None:
        self._server = server
        self._sockets = sockets

    @property
    def port(self) -> int:
        """The port that it is bound to, the first one if there are several."""
        listening = getattr(self._server, "effective_listen", None)
        return int(listening[0][1] if listening else self._server.effective_port)

    @property
    def connections(self) -> list[HTTPChannel]:
        """The connections that are open."""
        return [each for each in list(self._sockets.values()) if isinstance(each, HTTPChannel)]

    @property
    def sending(self) -> bool:
        """Whether an answer is still on its way to a caller."""
        return any(each.total_outbufs_len or each.requests for each in self.connections)

    def run(self) -> None:
        """Serve until SystemExit is raised in this thread, or `close` is called."""
        self._server.run()

    def close(self) -> None:
        """Stop listening, and end the connections and the threads that answer."""
        for each in self.connections:
            # `run` goes on for as long as there are any, even idle ones that callers keep open.
            each.close_when_flushed = True
        self._server.close()
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=5)


def listen(app: Flask, host: str, port: int, threads: int, admission: Admission) -> Listener:
    """A server that listens already; its `run` serves.

    Args:
        app: the application.
        host: address or name to bind to.
        port: port to bind to; 0 picks a free one.
        threads: how many requests may be at work at once.
        admission: which requests may be made at all.

    Raises:
        OSError: the address cannot be bound to.
        ValueError: the name does not resolve.
    """
    # That all threads are at work is said with every request then, and no news.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    sockets: dict[int, Any] = {}
    server = create_server(
        app,
        map=sockets,
        host=host,
        port=port,
        threads=threads,
        # `_Channel` closes connections that wait, long before waitress takes no more.
        connection_limit=2 * (threads + _SPARE_CONNECTIONS) + _SPARE_CONNECTIONS,
        channel_timeout=int(IDLE_SECONDS),
        channel_request_lookahead=1,  # without it nobody is told of callers who hang up
        max_request_body_size=MAX_BODY,
        recv_bytes=_READ_BYTES,
        outbuf_high_watermark=_UNSENT_BYTES,
        asyncore_use_poll=True,  # select() knows 1,024 files, and sessions have many
        clear_untrusted_proxy_headers=True,
        ident=None,
    )
    parser = type("_Parser", (_Parser,), {"admission": admission})
    most = threads + _SPARE_CONNECTIONS
    channel = type("_Channel", (_Channel,), {"parser_class": parser, "most": most})
    for each in sockets.values():
        if isinstance(each, BaseWSGIServer):
            each.channel_class = channel
    return Listener(server, sockets)
