"""Counts of the server, and their text form for Prometheus.

The form is Prometheus' text exposition format, version 0.0.4.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "web_server_"
_HELP = {
    "browsers_leased": "Sessions that are leased now.",
    "browsers_free": "Sessions that could be leased at once now.",
    "callers_waiting": "Callers that wait for a free session.",
    "requests_at_work": "Requests that came and are not answered yet, this one too.",
    "memory_bytes": "Memory of the server with all its processes.",
    "leases_total": "Sessions that were leased.",
    "leases_expired_total": "Leases that ended by their time.",
    "chromium_crashes_total": "How often Chromium was started anew.",
    "requests_total": "Requests that were answered, by route and status.",
    "request_seconds_total": "Time that answering took, by route.",
}


class Requests:
    """Counts requests; from any thread."""

    def __init__(self) -> None:
        self._active = 0
        self._lock = threading.Condition()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    @property
    def at_work(self) -> int:
        """How many requests came and are not answered yet."""
        with self._lock:
            return self._active

    def begin(self) -> int:
        """A request came in; how many are at work now, with this one."""
        with self._lock:
            self._active += 1
            return self._active

    def end(self) -> None:
        """A request was answered, or given up."""
        with self._lock:
            self._active -= 1
            self._lock.notify_all()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait until no request is being answered, at most so long; whether that came."""
        with self._lock:
            return self._lock.wait_for(lambda: self._active == 0, seconds)

    def count(self, route: str, status: int, seconds: float) -> None:
        """A request of that route was answered with that status, after so many seconds."""
        with self._lock:
            self._counts[route, status] += 1
            self._seconds[route] += seconds

    def lines(self) -> Iterator[str]:
        """The counts, in the text form."""
        with self._lock:
            counts, seconds = sorted(self._counts.items()), sorted(self._seconds.items())
        yield from _head("requests_total")
        for (route, status), count in counts:
            yield f'{_PREFIX}requests_total{{route="{route}",status="{status}"}} {count}'
        yield from _head("request_seconds_total")
        for route, total in seconds:
            yield f'{_PREFIX}request_seconds_total{{route="{route}"}} {total:.6f}'


def render(values: Mapping[str, float], requests: Requests) -> str:
    """All numbers in the text form.

    Args:
        values: single numbers by name.
        requests: the counts of requests.
    """
    lines: list[str] = []
    for name, value in values.items():
        lines += [*_head(name), f"{_PREFIX}{name} {value}"]
    return "\n".join([*lines, *requests.lines()]) + "\n"


def _head(name: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {_HELP[name]}"
    yield f"# TYPE {_PREFIX}{name} {'counter' if name.endswith('_total') else 'gauge'}"
