"""Metrics of the server, in Prometheus' text exposition format, version 0.0.4."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "web_server_"
_HELP = {
    "browsers_leased": "Sessions that are leased now.",
    "browsers_free": "Sessions that can be leased now without waiting.",
    "callers_waiting": "Callers waiting for a free session.",
    "requests_at_work": "Requests in progress, including this one.",
    "memory_bytes": "Memory of the server and its child processes.",
    "leases_total": "Leases since the start.",
    "leases_expired_total": "Leases that expired.",
    "chromium_crashes_total": "Restarts of Chromium.",
    "requests_total": "Responses by route and status.",
    "request_seconds_total": "Duration of requests by route.",
}


class Requests:
    """Count requests. Thread-safe."""

    def __init__(self) -> None:
        self._active = 0
        self._lock = threading.Condition()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @property
    def in_progress(self) -> int:
        """Number of requests in progress."""
        with self._lock:
            return self._active

    def start(self) -> int:
        """Count a new request; returns the number of requests in progress."""
        with self._lock:
            self._active += 1
            return self._active

    def end(self) -> None:
        """Count a request as finished."""
        with self._lock:
            self._active -= 1
            self._lock.notify_all()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until no request is in progress, at most so long; returns whether that happened."""
        with self._lock:
            return self._lock.wait_for(lambda: self._active == 0, seconds)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a response with its status and duration."""
        with self._lock:
            self._counts[route, status] += 1
            self._seconds[route] += seconds

    def lines(self) -> Iterator[str]:
        """Yield the counts in the text format."""
        with self._lock:
            counts, seconds = sorted(self._counts.items()), sorted(self._seconds.items())
        yield from _head("requests_total")
        for (route, status), count in counts:
            yield f'{_PREFIX}requests_total{{route="{route}",status="{status}"}} {count}'
        yield from _head("request_seconds_total")
        for route, total in seconds:
            yield f'{_PREFIX}request_seconds_total{{route="{route}"}} {total:.6f}'


def render(values: Mapping[str, float], requests: Requests) -> str:
    """Return all metrics in the text format.

    Args:
        values: values by name.
        requests: the counts of requests.
    """
    lines: list[str] = []
    for name, value in values.items():
        lines += [*_head(name), f"{_PREFIX}{name} {value}"]
    return "\n".join([*lines, *requests.lines()]) + "\n"


def _head(name: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {_HELP[name]}"
    yield f"# TYPE {_PREFIX}{name} {'counter' if name.endswith('_total') else 'gauge'}"
