"""Hanging up: an abandoned call closes its connection at once, so that the service stops working.

The HTTP libraries cannot be interrupted while they wait for an answer. So the socket of each call
is known here, and the thread that abandons the call shuts it down: the waiting thread then reads
the end of the connection, and the service sees that its client is gone.
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
def watched(request: ChatRequest) -> Iterator[None]:
    """The connections that this thread uses meanwhile belong to the request."""
    _current.request = request
    try:
        yield
    finally:
        _current.request = None
        request.release()


def _use(sock: Any) -> None:
    """Note that the current request uses a socket."""
    request = getattr(_current, "request", None)
    if request is not None and isinstance(sock, socket.socket):
        request.on_abandon(functools.partial(_shut_down, sock))


def _shut_down(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed meanwhile
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # also of TLS: without its last words


# --- requests -----------------------------------------------------------------------------------


class _Plain(urllib3.connection.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _use(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _use(self.sock)  # None of a new connection: it is made meanwhile
        super().request(*args, **kwargs)


class _Secure(urllib3.connection.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _use(self.sock)

    def request(self, *args: Any, **kwargs: Any) -> None:
        _use(self.sock)
        super().request(*args, **kwargs)


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Secure


class WatchedAdapter(requests.adapters.HTTPAdapter):
    """Connections of `requests` whose sockets are known to the request that uses them."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Make the pools."""
        super().init_poolmanager(*args, **kwargs)
        _watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Make the pools of a proxy."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        _watch(manager)
        return manager


def _watch(manager: Any) -> None:
    manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}


# --- the openai SDK -----------------------------------------------------------------------------


class _Stream:
    """A connection of the SDK's HTTP library."""

    def __init__(self, inner: Any):
        self._inner = inner

    def write(self, *args: Any, **kwargs: Any) -> Any:
        """Write, as every call does first."""
        _use(self._inner.get_extra_info("socket"))
        return self._inner.write(*args, **kwargs)

    def start_tls(self, *args: Any, **kwargs: Any) -> Any:
        """Go on encrypted."""
        return _Stream(self._inner.start_tls(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Network:
    """What makes the connections of the SDK's HTTP library."""

    def __init__(self, inner: Any):
        self._inner = inner

    def connect_tcp(self, *args: Any, **kwargs: Any) -> Any:
        """Connect."""
        return _Stream(self._inner.connect_tcp(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def watch_client(client: Any) -> None:
    """Make the sockets of an HTTP client of the SDK known.

    A version of the library that keeps them elsewhere is left as it is: its abandoned calls then
    end by their read timeout.
    """
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None and hasattr(pool, "_network_backend"):
            pool._network_backend = _Network(pool._network_backend)
