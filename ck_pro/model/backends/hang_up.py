"""Close the connection of an abandoned call at once, so that the service stops working on it.

The HTTP libraries cannot be interrupted while they wait for a response. Therefore the sockets of
each request are tracked, and the thread that abandons the request shuts them down. The waiting
thread then reads the end of the connection, and the service sees that its client disconnected.
"""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Iterator
from typing import Any

import requests.adapters
import urllib3
import urllib3.connection

from ck_pro.model.backends.backend import ChatRequest

_current = threading.local()


@contextlib.contextmanager
def tracked(request: ChatRequest) -> Iterator[None]:
    """Assign the connections that this thread uses within the block to the request."""
    _current.request = request
    try:
        yield
    finally:
        _current.request = None
        request.release()


def _track(sock: Any) -> None:
    """Shut this socket down when the current request is abandoned."""
    request = getattr(_current, "request", None)
    if request is not None and isinstance(sock, socket.socket):
        request.on_abandon(functools.partial(_shut_down, sock))


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # already closed
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # below TLS: no closing handshake


# --- requests -----------------------------------------------------------------------------------


class _HTTPConnection(urllib3.connection.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _track(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _track(self.sock)  # a reused connection; a new one is tracked by `connect`
        super().request(*args, **kwargs)


class _HTTPSConnection(urllib3.connection.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _track(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _track(self.sock)
        super().request(*args, **kwargs)


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HTTPConnection


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection


class TrackedAdapter(requests.adapters.HTTPAdapter):
    """Connections of `requests` whose sockets are tracked."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Create the connection pools."""
        super().init_poolmanager(*args, **kwargs)
        _use_tracked_pools(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Create the connection pools of a proxy."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        _use_tracked_pools(manager)
        return manager


def _use_tracked_pools(manager: Any) -> None:
    manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}


# --- the openai SDK -----------------------------------------------------------------------------


class _Stream:
    """A connection of the SDK's HTTP library."""

    def __init__(self, inner: Any):
        self._inner = inner

    def write(self, *args: Any, **kwargs: Any) -> Any:
        """Write; every request starts with this."""
        _track(self._inner.get_extra_info("socket"))
        return self._inner.write(*args, **kwargs)

    def start_tls(self, *args: Any, **kwargs: Any) -> Any:
        """Switch to TLS."""
        return _Stream(self._inner.start_tls(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Network:
    """The connection factory of the SDK's HTTP library."""

    def __init__(self, inner: Any):
        self._inner = inner

    def connect_tcp(self, *args: Any, **kwargs: Any) -> Any:
        """Connect."""
        return _Stream(self._inner.connect_tcp(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def track_client(client: Any) -> None:
    """Track the sockets of the SDK's HTTP client.

    Does nothing for a version of the library with other internals; its abandoned calls then end at
    their read timeout.
    """
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None and hasattr(pool, "_network_backend"):
            pool._network_backend = _Network(pool._network_backend)
