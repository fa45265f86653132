"""`FakeChatServer`: a chat server on loopback with scripted faults."""

from __future__ import annotations

import email.message
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ck_pro.model import Message, Reply


@dataclass
class Fault:
    """A fault that a `FakeChatServer` produces instead of, or before, a response.

    Args:
        status: HTTP status of an error response.
        headers: headers of that response, such as Retry-After.
        body: body of that response; None means an error object with `message`.
        message: text of the error.
        code: code of the error, such as "content_filter".
        drop: close the connection "before" the headers or within the "body".
        drip: respond normally, with this many seconds between bytes.
        delay: seconds before anything else; ends early when the server closes.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    message: str = "scripted fault"
    code: str = ""
    drop: str = ""
    delay: float = 0.0
    drip: float = 0.0


@dataclass
class ChatCall:
    """A request that a `FakeChatServer` received; header names are case-insensitive."""

    body: dict[str, Any]
    headers: email.message.Message[str, str]
    path: str

    @property
    def messages(self) -> list[Message]:
        """The prompt: chat messages, or input items of the Responses API."""
        return list(self.body["messages" if "messages" in self.body else "input"])


ServerReply = str | dict[str, Any] | Fault
"""A reply (a `Reply` may have tool calls or items), a complete response object, or a fault."""


class FakeChatServer:
    """A small OpenAI-compatible chat server on loopback, with both APIs; a context manager.

    Args:
        script: a list of replies and faults, in order (the last one repeats), or a function from
            the call to one. After a fault that only delays, the server replies with `text`.
        text: the reply if the script is empty.
        model: the model that it lists.

    Attributes:
        url: its address.
        calls: chat requests so far.
    """

    def __init__(
        self,
        script: Sequence[ServerReply] | Callable[[ChatCall], ServerReply] = (),
        text: str = "ok",
        model: str = "fake-model",
    ):
        self.text, self.model = text, model
        self._script, self._lock = script, threading.Lock()
        self.closing = threading.Event()
        self.calls: list[ChatCall] = []

    def __enter__(self) -> FakeChatServer:
        server = self

        class Handler(_ChatHandler):
            chat = server

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, call: ChatCall) -> ServerReply:
        """Return the next entry of the script."""
        with self._lock:
            self.calls.append(call)
            at = len(self.calls) - 1
        if callable(self._script):
            return self._script(call)
        return self._script[min(at, len(self._script) - 1)] if self._script else self.text

    def completion(self, text: str) -> dict[str, Any]:
        """Return a chat completion in OpenAI's form, with the tool calls of a `Reply`."""
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        message: dict[str, Any] = {"role": "assistant", "content": str(text)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        if isinstance(text, Reply) and text.tool_calls:
            message["tool_calls"] = text.tool_calls
            choice["finish_reason"] = "tool_calls"
        head = {"id": "fake", "object": "chat.completion", "created": int(time.time())}
        return {**head, "model": self.model, "choices": [choice], "usage": usage}

    def response(self, output: str | Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return a response in the form of OpenAI's Responses API.

        Args:
            output: its items; a `Reply` gives its own items, a text becomes one message.
        """
        if isinstance(output, Reply) and output.items:
            output = output.items
        if isinstance(output, str):
            parts = [{"type": "output_text", "text": output, "annotations": []}]
            message = {"type": "message", "id": "msg_1", "role": "assistant", "content": parts}
            output = [{**message, "status": "completed"}]
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        head = {"id": "fake", "object": "response", "created_at": int(time.time())}
        facts = {"status": "completed", "model": self.model, "error": None}
        return {**head, **facts, "output": list(output), "usage": usage}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of 5, a burst of clients waits a second

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that were killed; report other errors as usual."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _ChatHandler(BaseHTTPRequestHandler):
    """Serve `/v1/models`, `/v1/chat/completions` and `/v1/responses`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # avoids the 40 ms of a delayed ACK per response
    chat: FakeChatServer
    timeout = 30

    def do_GET(self) -> None:
        listed = {"object": "list", "data": [{"id": self.chat.model, "object": "model"}]}
        if self.path.endswith("/models"):
            self._send(200, json.dumps(listed))
        else:
            self._send(404, '{"error": {"message": "no such route"}}')

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(size)
        if len(sent) < size:  # the client was killed
            self.close_connection = True
            return
        body = json.loads(sent)
        route = self.path.split("?")[0]
        if not route.endswith(("/chat/completions", "/responses")):
            self._send(404, '{"error": {"message": "no such route"}}')
            return
        reply = self.chat.answer(ChatCall(body, self.headers, self.path))
        if isinstance(reply, Fault):
            self._fail(reply)
        else:
            whole = self.chat.response if route.endswith("/responses") else self.chat.completion
            self._send(200, json.dumps(reply if isinstance(reply, dict) else whole(reply)))

    def _fail(self, fault: Fault) -> None:
        if fault.delay and self.chat.closing.wait(fault.delay):
            self.close_connection = True
            return
        if fault.drop == "before":
            self._hang_up()
            return
        text = json.dumps(self.chat.completion(self.chat.text))
        if fault.drop == "body":
            self._start(200, len(text), {})
            self.wfile.write(text[: len(text) // 2].encode())
            self._hang_up()
        elif fault.drip:
            self._drip(text.encode(), fault.drip)
        elif fault.status:
            error = {"error": {"message": fault.message, "code": fault.code or None}}
            body = json.dumps(error) if fault.body is None else fault.body
            self._send(fault.status, body, fault.headers)
        else:
            self._send(200, text)

    def _drip(self, data: bytes, pause: float) -> None:
        self._start(200, len(data), {})
        for i in range(len(data)):
            try:
                self.wfile.write(data[i : i + 1])
            except OSError:  # the client hung up
                break
            if self.chat.closing.wait(pause):
                break
        self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, status: int, body: str, headers: Mapping[str, str] | None = None) -> None:
        data = body.encode()
        try:
            self._start(status, len(data), headers or {})
            self.wfile.write(data)
        except OSError:  # the client hung up
            self.close_connection = True

    def _start(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, to keep tests quiet."""
