"""The whole server, put together: event loop, pool, application and WSGI server."""

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
from web_server.pool.pool import Pool, PoolOptions

log = logging.getLogger("web_server")

_SPARE_THREADS = 8
_DRAIN_SECONDS = 5.0
"""How long requests at work may take to finish. All of the end takes 10 seconds at most."""
_TOLD_SECONDS = 1.0
_SENDING_SECONDS = 1.0
_STOP_SECONDS = 10.0


class Server:
    """A browser server that listens once it is made.

    Args:
        options: limits and policy of the pool.
        host: address to bind to.
        port: port to bind to; 0 picks a free one.
        token: bearer token that requests must carry; none by default.
        known_hosts: further names by which clients without a token may reach the server.

    Raises:
        OSError: the address cannot be bound to.
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
        # A full queue of waiting callers must leave threads for those who work or give back.
        most = 2 * options.max_browsers + options.max_waiting
        self._loop = LoopThread()
        self._pool = Pool(options)
        self._stopping = threading.Lock()
        self._stopped = False
        self._signalled = False
        self._ending = threading.Event()
        try:
            admission = Admission(token, [host, *known_hosts])
            app = create_app(self._pool, self._loop, admission, most, self._ending.is_set)
            self._requests: Requests = app.extensions["requests"]
            self._wsgi = listen(app, host, port, most + _SPARE_THREADS, admission)
            self._loop.call(self._pool.start(), 120)
        except BaseException:
            self._end_pool()
            raise
        self.host, self.port = host, self._wsgi.port

    @property
    def url(self) -> str:
        """Where the server listens, `http://host:port`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def run(self) -> None:
        """Serve until `stop` is called or a signal that `stop_on_signals` took comes."""
        try:
            self._wsgi.run()
        finally:
            self.stop()

    def stop_on_signals(self) -> None:
        """End `run` in good order on SIGINT, SIGTERM and SIGHUP. For the main thread.

        The first signal lets requests at work finish, as `finish` does; the second one ends at
        once, but for SIGHUP: of a terminal that closes a shell and the kernel may both tell. One
        that is ignored (`nohup`) stays so.
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
        """Finish; then a second signal comes, from us."""
        log.info("stopping: requests at work may finish")
        self.finish()
        os.kill(os.getpid(), signal.SIGTERM)

    def finish(self) -> None:
        """Answer all who are there, from another thread than the one that runs `run`.

        Requests at work may finish, for some seconds; those that take longer, callers who wait for
        a browser, and whoever comes from now on are told that the server is stopping.
        """
        self._ending.set()
        self._loop.call(self._pool.turn_away())
        if not self._requests.wait_until_idle(_DRAIN_SECONDS):
            self._loop.call(self._pool.end_all(), _STOP_SECONDS)
            self._requests.wait_until_idle(_TOLD_SECONDS)
        # The thread that serves sends what was answered last, and tells nobody when it is done.
        end = time.monotonic() + _SENDING_SECONDS
        while self._wsgi.sending and time.monotonic() < end:
            time.sleep(0.01)

    def stop(self) -> None:
        """Close Chromium and stop listening. May be called twice, from any thread."""
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
