"""`--metrics PORT`: serve the progress of a run over HTTP on loopback.

`/metrics` uses the Prometheus text format, version 0.0.4. `/status` returns the JSON of the status
file. The server listens on 127.0.0.1 only and refuses requests whose Host header names another
host, which prevents DNS rebinding.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Protocol

from ck_main.ui.status import Snapshot
from ck_pro.exceptions import ConfigError

_HOSTS = ("127.0.0.1", "localhost")
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Status(Protocol):
    """The data source; `ck_main.ui.status.RunStatus` implements it."""

    def snapshot(self) -> Snapshot:
        """Return the status as JSON-serializable data."""


class MetricsServer:
    """Context in which an HTTP server serves a status.

    Args:
        status: the status to serve.
        port: port on 127.0.0.1; 0 means any free port.

    Raises:
        ConfigError: on entering, if the port is not available.
    """

    def __init__(self, status: Status, port: int):
        self._status, self._port = status, port
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """URL of the metrics."""
        port = self._server.server_address[1] if self._server is not None else self._port
        return f"http://127.0.0.1:{port}/metrics"

    def __enter__(self) -> MetricsServer:
        status = self._status

        class Handler(_Handler):
            snapshot = staticmethod(status.snapshot)

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        except (OSError, OverflowError) as e:
            reason = getattr(e, "strerror", None) or str(e)
            raise ConfigError(f"--metrics {self._port}: {reason}; name another port") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), daemon=True, name="metrics"
        )
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET; `snapshot` is set by the server."""

    timeout = 5  # seconds to receive a request
    snapshot: Any

    def do_GET(self) -> None:
        host = self.headers.get("Host", "127.0.0.1").rpartition(":")[0] or self.headers["Host"]
        path = self.path.partition("?")[0]
        if host not in _HOSTS:
            self._answer(403, _TEXT, "only available on this machine\n")
        elif path == "/metrics":
            self._answer(200, _TEXT, metrics_text(self.snapshot()))
        elif path == "/status":
            self._answer(200, "application/json", json.dumps(self.snapshot()) + "\n")
        else:
            self._answer(404, _TEXT, "not found; use /metrics or /status\n")

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the screen shows the run."""


def metrics_text(status: Snapshot) -> str:
    """Format a status in the Prometheus text format."""
    lines: list[str] = []
    for name, kind, text, values in _metrics(status):
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{labels} {value}" for labels, value in values]
    return "\n".join(lines) + "\n"


def _metrics(status: Snapshot) -> Iterator[tuple[str, str, str, list[tuple[str, Any]]]]:
    running = status["running"]
    scores = [(f'{{score="{s}"}}', status[s]) for s in ("right", "wrong", "unscored")]
    yield "ck_tasks_ended_total", "counter", "Tasks that this run ended, by score.", scores
    unreadable = [(f'{{phase="{p}"}}', n) for p, n in status["unreadable"].items()]
    text = "Model replies that could not be parsed, or only in part, by phase."
    yield "ck_unreadable_replies_total", "counter", text, unreadable
    for name, kind, text, value in (
        ("ck_tasks_failed_total", "counter", "Ended tasks that failed.", status["failed"]),
        ("ck_tasks_earlier", "gauge", "Tasks with a row before this run.", status["earlier"]),
        ("ck_tasks_elsewhere", "gauge", "Rows that other runs added.", status["elsewhere"]),
        ("ck_tasks_running", "gauge", "Tasks in progress.", len(running)),
        ("ck_tasks_left", "gauge", "Tasks without a row.", status["left"]),
        ("ck_steps_total", "counter", "Steps of all agents.", status["steps"]),
        ("ck_model_calls_total", "counter", "Model calls.", status["llm_call"]),
        ("ck_tokens_total", "counter", "Prompt and completion tokens.", status["tokens"]),
        ("ck_money_usd_total", "counter", "USD, where prices are known.", status["money"]),
        ("ck_run_started_seconds", "gauge", "Unix time of the start.", status["started"]),
        ("ck_run_eta_seconds", "gauge", "Seconds left at this rate.", status["eta_seconds"]),
        ("ck_run_running", "gauge", "1 until the run ends.", int(status["state"] == "running")),
    ):
        if value is not None:
            yield name, kind, text, [("", value)]
