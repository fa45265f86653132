"""A Flask application on loopback for the user's browser. Its requests pass `security`."""

from __future__ import annotations

import json
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from flask import Flask, Response, request, send_from_directory
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from ck_pro.exceptions import CKError, ConfigError, InputError
from ck_pro.local_page import STATIC
from ck_pro.local_page.security import HEADERS, Admission, Refused

MAX_BODY = 16 * 2**20
"""Limit for the body of a request in bytes."""
_IDLE_SECONDS = 75.0
_ENTER = (
    '<!doctype html><meta charset="utf-8"><title>CK-Pro</title>'
    '<script src="/static/enter.js"></script>'
    '<noscript><meta http-equiv="refresh" content="0;url=/"></noscript>'
)
log = logging.getLogger("ck_pro.local_page")


class LocalApp:
    """A local web application. It listens as soon as it is created; `start` or `run` serve it.

    Add routes and blueprints to `flask` before `start` or `run`. A route
    may raise a `CKError`: its text goes to the page as `{"error": TEXT}` with status 400.

    Args:
        page: folder with `index.html`, which is the page at `/`; the other files are at `/page/`.
        host: address to bind to.
        port: port to bind to; 0 picks a free one.
        known_hosts: further names of this server in Host headers.
        on_error: called with an unexpected error of a route; returns where its log is.

    Raises:
        ConfigError: the address cannot be bound.

    Attributes:
        flask: the application.
        host: the address it is bound to.
        port: the port it is bound to.
        admission: the checks of requests, with the token.
        ended: set when the server stops; a route that waits must watch it.
        on_stop: called when the server has stopped.
    """

    def __init__(
        self,
        page: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        known_hosts: Iterable[str] = (),
        on_error: Callable[[BaseException], str] | None = None,
    ) -> None:
        self._page = page
        self._on_error = on_error or _log_error
        self._listening = _listen(host, port)
        self.host, self.port = host, int(self._listening.getsockname()[1])
        self.admission = Admission(f"ck-page-{self.port}", [host, *known_hosts])
        self.flask = Flask("ck_pro.local_page", static_folder=None)
        self.flask.config["MAX_CONTENT_LENGTH"] = MAX_BODY
        self._add_routes()
        self._server: BaseWSGIServer | None = None
        self.ended = threading.Event()
        self.on_stop: list[Callable[[], None]] = []

    @property
    def url(self) -> str:
        """The address for the user, with the key: `http://HOST:PORT/?token=KEY`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/?token={self.admission.token}"

    def start(self) -> None:
        """Serve in a daemon thread."""
        family = self._listening.family
        self._server = make_server(
            self.host if family == socket.AF_INET else self._listening.getsockname()[0],
            self.port,
            self.flask,
            threaded=True,
            request_handler=_Handler,
            fd=self._listening.fileno(),
        )
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self._server.block_on_close = False  # type: ignore[attr-defined]
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.1,), name="ck-local-page", daemon=True).start()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until Ctrl-C, SIGTERM or `stop`.

        Args:
            ready: called once the page can be opened; prints its address.
        """

        def end(_: int, __: FrameType | None) -> None:
            self.ended.set()

        before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
        self.start()
        try:
            ready()
            self.ended.wait()
        finally:
            self.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Stop serving and close the port. Any number of calls."""
        self.ended.set()
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        self._listening.close()
        while self.on_stop:
            self.on_stop.pop()()

    def _add_routes(self) -> None:
        app = self.flask
        app.before_request(self._admit)
        app.after_request(_with_headers)
        app.add_url_rule("/", "index", self._index)
        app.add_url_rule("/static/<path:name>", "static", lambda name: _file(STATIC, name))
        app.add_url_rule("/page/<path:name>", "page", lambda name: _file(self._page, name))
        app.add_url_rule("/favicon.ico", "icon", lambda: Response(status=204))
        app.register_error_handler(Refused, lambda error: _refusal(str(error)))
        app.register_error_handler(CKError, lambda error: json_error(str(error), 400))
        app.register_error_handler(HTTPException, _http_error)
        app.register_error_handler(Exception, self._internal_error)

    def _admit(self) -> Response | None:
        """Check a request; exchange the token in an address for the cookie."""
        self.admission.check_host(request.host)
        token = request.args.get("token")
        if request.path == "/" and token is not None and self.admission.is_token(token):
            # A redirect would be part of a navigation that another page may have started, and
            # the browser would not send the cookie with it.
            entry = Response(_ENTER, mimetype="text/html")
            entry.set_cookie(
                self.admission.cookie, self.admission.pass_, httponly=True, samesite="Strict"
            )
            return entry
        self.admission.check(request.method, request.headers.get, request.cookies)
        return None

    def _index(self) -> Response:
        return _file(self._page, "index.html")

    def _internal_error(self, error: Exception) -> Response:
        where = self._on_error(error)
        text = f"internal error: {type(error).__name__}: {error}"
        return json_error(f"{text}; {where}" if where else text, 500)


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response with JSON. NaN and infinity become null; half surrogates stay escaped."""
    return Response(json_bytes(value), status, mimetype="application/json")


def json_bytes(value: Any) -> bytes:
    """Encode JSON that every browser can parse."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # JSON has no NaN and no infinity
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(json.loads(text), separators=(",", ":")).encode()


def json_error(text: str, status: int) -> Response:
    """Return a response with `{"error": TEXT}`."""
    return json_response({"error": text}, status)


def json_body() -> dict[str, Any]:
    """Return the JSON object in the body of the current request.

    Raises:
        InputError: it has none.
    """
    try:
        body = json.loads(request.get_data() or b"null")
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InputError("the body of the request is not a JSON object")
    return body


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


def _file(folder: Path, name: str) -> Response:
    """Return a file of a folder. Browsers ask each time whether it has changed."""
    response = send_from_directory(folder, name, max_age=0)
    response.headers["Cache-Control"] = "no-cache"
    return response


def _with_headers(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _refusal(text: str) -> Response:
    if request.path.startswith("/api/"):
        return json_error(text, 403)
    return Response(text + "\n", 403, mimetype="text/plain")


def _http_error(error: HTTPException) -> Response:
    text = f"not found: {request.path}" if isinstance(error, NotFound) else str(error.description)
    return json_error(text, error.code or 500)


def _log_error(error: BaseException) -> str:
    log.error("a request to the local page failed", exc_info=error)
    return ""


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        ConfigError: the address cannot be bound.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
    except (OSError, UnicodeError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        raise ConfigError(f"cannot listen on {host}:{port}: {reason}; try --port 0") from None
    return listening


class _Handler(WSGIRequestHandler):
    """Keep connections open, and log nothing."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS

    def log(self, type: str, message: str, *args: Any) -> None:
        """See `WSGIRequestHandler.log`."""
        log.debug(message, *args)
