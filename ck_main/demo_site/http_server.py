"""A small threaded HTTP/1.1 server for pages and posted forms, on the standard library.

Connections stay open, with one thread each. A function turns each request into an `Answer`.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

LARGEST_BODY = 65536
"""Maximum bytes of a posted form."""
IDLE_SECONDS = 30.0
"""Seconds after which an idle connection is closed."""

Fields = Mapping[str, str]
"""Values of a query or of a posted form; the last value of a repeated name wins."""


@dataclass(frozen=True)
class Answer:
    """An HTTP response: status, body and headers (without the length)."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


AnswerFunction = Callable[[str, str, Fields], Answer]
"""Maps method ("GET" or "POST"), path and fields to the response."""


class SiteServer(HTTPServer):
    """A server that answers requests by a function, with one daemon thread per connection.

    Args:
        address: host and port to listen on; port 0 means any free port.
        answer: function that creates the responses.

    Raises:
        OSError: the address is not available.
    """

    request_queue_size = 128

    def __init__(self, address: tuple[str, int], answer: AnswerFunction):
        self.answer = answer
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, threading.Thread] = {}
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without a lookup of the host name, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the connection in a new thread."""
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        with self._lock:
            self._connections[request] = thread
        thread.start()

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:
            pass  # the client closed the connection
        finally:
            self.shutdown_request(request)
            with self._lock:
                self._connections.pop(request, None)

    def server_close(self) -> None:
        """Close the port and the connections, and wait for their threads."""
        super().server_close()
        with self._lock:
            open_now = list(self._connections.items())
        for connection, thread in open_now:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed meanwhile by its thread or the client
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "FernhillShop"
    sys_version = ""
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    server: SiteServer

    def do_GET(self) -> None:
        """Answer a GET request."""
        body = self._read_body()
        target = self._target()
        self._send(None if body is None else self._fields(target[1] if target else ""))

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer a posted form."""
        body = self._read_body()
        if body is None:
            self._send(None)
        elif body and "x-www-form-urlencoded" not in self.headers.get("Content-Type", ""):
            self._write(_plain(415, "post a form as application/x-www-form-urlencoded\n"))
        else:
            self._send(self._fields(body.decode("utf-8", "replace")))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the screen shows the run."""

    def _target(self) -> tuple[str, str] | None:
        """Return path and query of the request, or None if the URL is malformed."""
        try:
            parts = urlsplit(self.path)
        except ValueError:
            return None
        return parts.path, parts.query

    @staticmethod
    def _fields(text: str) -> dict[str, str] | None:
        try:
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100))
        except ValueError:
            return None

    def _read_body(self) -> bytes | None:
        """Return the body, or None (and close) if its length is missing, wrong or too large."""
        length = self.headers.get("Content-Length", "0")
        chunked = "Transfer-Encoding" in self.headers
        if chunked or not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > LARGEST_BODY:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _send(self, fields: dict[str, str] | None) -> None:
        target = self._target()
        if fields is None or target is None:
            self._write(_plain(400, "malformed request\n"))
            return
        method = "POST" if self.command == "POST" else "GET"
        self._write(self.server.answer(method, target[0], fields))

    def _write(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _plain(status: int, text: str) -> Answer:
    return Answer(status, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})
