"""Settings of a pool."""

from __future__ import annotations

from dataclasses import dataclass, field

from web_server.network.policy import Policy

QUEUE_SECONDS = 300.0


@dataclass(frozen=True)
class PoolOptions:
    """Settings of a pool.

    Attributes:
        chromium: path of the executable.
        policy: what pages may reach.
        max_browsers: how many sessions may be leased at once.
        chromiums: how many Chromiums share them.
        max_waiting: how many callers may queue for a free one.
        queue_seconds: how long a caller waits in the queue.
        idle_seconds: a lease ends after so long without a request.
        lease_seconds: length of a lease whose client did not ask for another.
        max_download: size limit of a download in bytes.
    """

    chromium: str
    policy: Policy = field(default_factory=Policy)
    max_browsers: int = 16
    chromiums: int = 1
    max_waiting: int = 64
    queue_seconds: float = QUEUE_SECONDS
    idle_seconds: float = 1800.0
    lease_seconds: float = 6 * 3600.0
    max_download: int = 200_000_000
