"""Limits of a worker's processes, and of kernel objects that they share."""

from __future__ import annotations

import contextlib
import math
import os
import resource

from . import kernel

MAX_FILES = 512
MAX_TASKS = 256
MAX_FILE_BYTES = 1 << 30
_TCP_BYTES = 1 << 18
_RESERVED_PIDS = 300  # the kernel never reuses pids below this one
_CPU_SLACK_SECONDS = 2
_MAX_CPU_SECONDS = 1e9
HEADROOM = 64 << 20
"""Bytes above the memory limit, so that the worker can report that it reached the limit."""
_CORES = os.cpu_count() or 1
_hard_memory: int | None = None
"""The hard limit of address space in bytes, from `set_limits`."""
PAGE = resource.getpagesize()
MEGABYTE = 1 << 20


def set_limits(memory_mb: int, disk_mb: int, own_user: bool) -> None:
    """Limit this process permanently.

    Args:
        memory_mb: address space beyond the current size, in megabytes.
        disk_mb: size of a file in megabytes, if less than `MAX_FILE_BYTES`.
        own_user: whether a user namespace counts the worker's processes separately.
    """
    global _hard_memory
    limits = {
        "AS": memory_mb * MEGABYTE + _address_space() + HEADROOM,
        "FSIZE": min(MAX_FILE_BYTES, disk_mb * MEGABYTE),
        "NOFILE": MAX_FILES,
        "CORE": 0,
    }
    if own_user:
        limits["NPROC"] = MAX_TASKS
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))
        if name == "AS":
            _hard_memory = value


def grant_memory(share: float) -> None:
    """Grant a share of `HEADROOM`: 0 while code runs, 1 while the worker reports the result.

    A worker needs memory to report that it has run out, and to free some.
    """
    hard = _hard_memory
    if hard is not None:
        soft = hard - int((1 - share) * HEADROOM)
        with contextlib.suppress(ValueError):  # the code has lowered the hard limit
            resource.setrlimit(resource.RLIMIT_AS, (max(soft, HEADROOM), hard))


def _address_space() -> int:
    try:
        return int(kernel.read("/proc/self/statm").split()[0]) * PAGE
    except (OSError, ValueError):
        return 1 << 30


def grant_cpu(timeout: float | None) -> None:
    """Allow this process the processor time of one more step.

    The parent's clock enforces the timeout. This limit stops code that computes in other threads
    while a call stops that clock.
    """
    if timeout is None:
        soft = resource.RLIM_INFINITY
    else:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = min(timeout, _MAX_CPU_SECONDS) * _CORES
        soft = math.ceil(used.ru_utime + used.ru_stime + most) + _CPU_SLACK_SECONDS
    with contextlib.suppress(ValueError):  # the code has lowered the hard limit
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def limit_pids() -> None:
    """Limit the processes and threads of this pid namespace. `RLIMIT_NPROC` does not bind root.

    Raises:
        OSError: the kernel is older than 6.14, which has one limit for the whole machine.
    """
    path = "/proc/sys/kernel/pid_max"
    if int(kernel.read(path)) > _RESERVED_PIDS + MAX_TASKS:
        kernel.write(path, str(_RESERVED_PIDS + MAX_TASKS))


def limit_tcp() -> None:
    """Limit the TCP buffers in this network namespace, since no process is charged for them.

    Raises:
        OSError: the kernel refuses.
    """
    for name in ("tcp_rmem", "tcp_wmem"):
        kernel.write(f"/proc/sys/net/ipv4/{name}", f"4096 65536 {_TCP_BYTES}")
