"""The WSGI server (waitress) in front of the application."""

from __future__ import annotations

import json
import logging
from typing import Any

from flask import Flask
from waitress import create_server  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.server import BaseWSGIServer  # type: ignore[import-untyped]
from waitress.task import ErrorTask  # type: ignore[import-untyped]

MAX_BODY = 100_000_000
"""Bytes that a request may have; what is more is told by 413 before it is read."""
_READ_BYTES = 256 * 1024
_UNSENT_BYTES = 1_000_000_000
"""So much of an answer that its caller does not read is kept, on disk, instead of the thread that
made it: more than any answer has."""
_SPARE_CONNECTIONS = 200
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
        message = _HINTS.get(error.code, f"this is no proper HTTP request: {error.body}")
        body = json.dumps({"error": message}).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Channel(HTTPChannel):  # type: ignore[misc]
    """A connection."""

    error_task_class = _JsonErrorTask


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


def listen(app: Flask, host: str, port: int, threads: int) -> Listener:
    """A server that listens already; its `run` serves.

    Args:
        app: the application.
        host: address or name to bind to.
        port: port to bind to; 0 picks a free one.
        threads: how many requests may be at work at once.

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
        connection_limit=threads + _SPARE_CONNECTIONS,
        channel_request_lookahead=1,  # without it nobody is told of callers who hang up
        max_request_body_size=MAX_BODY,
        recv_bytes=_READ_BYTES,
        outbuf_high_watermark=_UNSENT_BYTES,
        asyncore_use_poll=True,  # select() knows 1,024 files, and sessions have many
        clear_untrusted_proxy_headers=True,
        ident=None,
    )
    for each in sockets.values():
        if isinstance(each, BaseWSGIServer):
            each.channel_class = _Channel
    return Listener(server, sockets)
