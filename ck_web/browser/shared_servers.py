"""Browser servers that the runs of this process share.

A run that names no server acquires one here. Runs with equal options share one. It stops some time
after the last run has released it, and at exit.
"""

from __future__ import annotations

import atexit
import threading
from dataclasses import dataclass

from ck_web.browser.server_process import BrowserServer, ServerOptions


@dataclass
class _SharedServer:
    """A shared server, its number of users, and the timer that stops it when unused."""

    server: BrowserServer
    users: int = 0
    timer: threading.Timer | None = None

    def acquire(self) -> BrowserServer:
        """Add a user; return the server."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.users += 1
        return self.server


_lock = threading.Lock()
_shared: dict[ServerOptions, _SharedServer] = {}


def acquire_server(options: ServerOptions) -> BrowserServer:
    """Return the shared server with these options, started if necessary. Release it after use.

    Raises:
        BrowserServerError: it did not start.
    """
    with _lock:
        entry = _shared.get(options)
        if entry is not None and not entry.server.alive:
            entry.server.stop()
            entry = None
        if entry is None:
            if not _shared:
                atexit.register(stop_servers)
            entry = _shared[options] = _SharedServer(BrowserServer(options))
        return entry.acquire()


def running_server(url: str) -> BrowserServer | None:
    """Acquire the shared server at an address; return None if this process runs none there."""
    with _lock:
        entry = next((e for e in _shared.values() if e.server.url == url), None)
        return entry.acquire() if entry is not None and entry.server.alive else None


def release_server(server: BrowserServer, keep_seconds: float = 0.0) -> None:
    """Release an acquired server. The last release stops it.

    Args:
        server: from `acquire_server`; once per call of it.
        keep_seconds: how long an unused server keeps running for the next run.
    """
    with _lock:
        entry = _shared.get(server.options)
        if entry is None or entry.server is not server:
            return  # it crashed and was replaced, or all servers were stopped
        entry.users -= 1
        if entry.users > 0:
            return
        if keep_seconds > 0:
            entry.timer = threading.Timer(keep_seconds, _stop_if_unused, [server])
            entry.timer.daemon = True
            entry.timer.start()
            return
        del _shared[server.options]
    server.stop()


def stop_servers() -> None:
    """Stop every server that this process started. Runs automatically at exit."""
    with _lock:
        entries = list(_shared.values())
        _shared.clear()
        atexit.unregister(stop_servers)
    for entry in entries:
        if entry.timer is not None:
            entry.timer.cancel()
        entry.server.stop()


def _stop_if_unused(server: BrowserServer) -> None:
    with _lock:
        entry = _shared.get(server.options)
        if entry is None or entry.server is not server or entry.users > 0:
            return
        del _shared[server.options]
    server.stop()
