"""The whole server: event loop, pool, application and WSGI server."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType

from web_server.api.admission import Admission
from web_server.api.app import create_app
from web_server.api.metrics import Requests
from web_server.api.wsgi import listen
from web_server.chromium.loop import LoopThread
from web_server.pool.options import PoolOptions
from web_server.pool.pool import Pool

log = logging.getLogger("web_server")

_SPARE_THREADS = 8
_DRAIN_SECONDS = 5.0
"""Limit for requests in progress when the server stops. Stopping takes 10 seconds at most."""
_CANCELLED_SECONDS = 1.0
"""Limit for sending errors to the requests that were cancelled then."""
_SENDING_SECONDS = 1.0
"""Limit for sending the last responses."""
_STOP_SECONDS = 10.0


class Server:
    """A browser server. It listens as soon as it is created.

    Args:
        options: limits and policy of the pool.
        host: address to bind to.
        port: port to bind to; 0 picks a free one.
        token: bearer token that requests need; none by default.
        known_hosts: further names of the server for clients without a token.

    Raises:
        OSError: binding to the address failed.
        web_server.errors.Unavailable: Chromium does not start.
    """

    def __init__(
        self,
        options: PoolOptions,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        known_hosts: Iterable[str] = (),
    ) -> None:
        # Requests in a full queue must leave threads for requests on leased browsers.
        max_requests = 2 * options.max_browsers + options.max_waiting
        self._loop = LoopThread()
        self._pool = Pool(options)
        self._stopping = threading.Lock()
        self._stopped = False
        self._signalled = False
        self._ending = threading.Event()
        try:
            admission = Admission(token, [host, *known_hosts])
            app = create_app(self._pool, self._loop, admission, max_requests, self._ending.is_set)
            self._requests: Requests = app.extensions["requests"]
            self._wsgi = listen(app, host, port, max_requests + _SPARE_THREADS, admission)
            self._loop.call(self._pool.start(), 120)
        except BaseException:
            self._end_pool()
            raise
        self.host, self.port = host, self._wsgi.port

    @property
    def url(self) -> str:
        """URL of the server, `http://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def run(self) -> None:
        """Serve until `stop` is called or a signal arrives after `stop_on_signals`."""
        try:
            self._wsgi.run()
        finally:
            self.stop()

    def stop_on_signals(self) -> None:
        """Stop `run` cleanly on SIGINT, SIGTERM and SIGHUP. Call it on the main thread.

        After the first signal, requests in progress may finish, as in `finish`. A second signal
        ends the server at once, except for SIGHUP, because a closing terminal may send it twice.
        SIGHUP remains ignored under `nohup`.
        """

        def end(number: int, _frame: FrameType | None) -> None:
            if not self._signalled:
                self._signalled = True
                threading.Thread(target=self._drain, daemon=True).start()
            elif number != signal.SIGHUP:
                raise SystemExit(0)

        signal.signal(signal.SIGINT, end)
        signal.signal(signal.SIGTERM, end)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, end)

    def _drain(self) -> None:
        """Finish, then send the second signal."""
        log.info("stopping: requests in progress may finish")
        self.finish()
        os.kill(os.getpid(), signal.SIGTERM)

    def finish(self) -> None:
        """Let requests in progress finish. Call it on a different thread than `run`.

        Slower requests, queued requests and new requests get 503.
        """
        self._ending.set()
        self._loop.call(self._pool.turn_away())
        if not self._requests.wait_until_idle(_DRAIN_SECONDS):
            self._loop.call(self._pool.end_all(), _STOP_SECONDS)
            self._requests.wait_until_idle(_CANCELLED_SECONDS)
        # The thread of `run` sends the last responses, and has no event for their end.
        end = time.monotonic() + _SENDING_SECONDS
        while self._wsgi.sending and time.monotonic() < end:
            time.sleep(0.01)

    def stop(self) -> None:
        """Close Chromium and stop listening. Thread-safe; a second call has no effect."""
        with self._stopping:
            if self._stopped:
                return
            self._stopped = True
            self._end_pool()
            self._wsgi.close()

    def _end_pool(self) -> None:
        try:
            self._loop.call(self._pool.stop(), _STOP_SECONDS)
        finally:
            self._loop.stop()
