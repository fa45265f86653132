"""A web server on a free port of loopback, as a context manager."""

from __future__ import annotations

import http.server
import threading
from types import TracebackType
from typing import TypeVar

S = TypeVar("S", bound="LoopbackSite")


class LoopbackSite:
    """A web server on a separate thread, as a context manager.

    Args:
        handler: handles the requests.
    """

    def __init__(self, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def host(self) -> str:
        """`127.0.0.1:port`, a rule for the policy of the browser server."""
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self: S) -> S:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
