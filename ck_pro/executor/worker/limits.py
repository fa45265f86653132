"""Limits of one process of a worker, and of the kernel objects that it shares with others."""

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
_RESERVED_PIDS = 300  # of the kernel's: numbers below are not used a second time
_CPU_SLACK = 2
_LONGEST = 1e9
HEADROOM = 64 << 20
"""Bytes beyond the limit of memory in which the worker can still say that it was reached."""
_CORES = os.cpu_count() or 1
_hard_memory: int | None = None
"""Bytes of address space, once `set_limits` has limited it."""
PAGE = resource.getpagesize()
MEGABYTE = 1 << 20


def set_limits(memory_mb: int, disk_mb: int, own_user: bool) -> None:
    """Set this process's limits, for good.

    Args:
        disk_mb: of a single file, if that is less than `MAX_FILE_BYTES`.
        memory_mb: of address space, beyond what the process has now.
        own_user: processes are counted apart from the rest of the user's.
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
    """Grant a share of the headroom above the limit of memory: 0 for code, 1 for the runtime.

    Without it a worker whose memory is full could not even say so, or free any.
    """
    hard = _hard_memory
    if hard is not None:
        soft = hard - int((1 - share) * HEADROOM)
        with contextlib.suppress(ValueError):  # the code gave itself a narrower limit, for good
            resource.setrlimit(resource.RLIMIT_AS, (max(soft, HEADROOM), hard))


def _address_space() -> int:
    try:
        return int(kernel.read("/proc/self/statm").split()[0]) * PAGE
    except (OSError, ValueError):
        return 1 << 30


def grant_cpu(timeout: float | None) -> None:
    """Let this process use the processor for one more step.

    The parent's clock is the limit; this one ends a worker whose code runs on during a long call.
    """
    if timeout is None:
        soft = resource.RLIM_INFINITY
    else:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = min(timeout, _LONGEST) * _CORES
        soft = math.ceil(used.ru_utime + used.ru_stime + most) + _CPU_SLACK
    with contextlib.suppress(ValueError):  # as above
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def limit_pids() -> None:
    """Limit the processes and threads of this pid namespace (root has no other limit).

    Raises:
        OSError: the kernel is older than 6.14, where this is one number for the machine.
    """
    path = "/proc/sys/kernel/pid_max"
    if int(kernel.read(path)) > _RESERVED_PIDS + MAX_TASKS:
        kernel.write(path, str(_RESERVED_PIDS + MAX_TASKS))


def limit_tcp() -> None:
    """Limit what connections in this network namespace hold: no process is charged for it.

    Raises:
        OSError: the kernel does not allow it.
    """
    for name in ("tcp_rmem", "tcp_wmem"):
        kernel.write(f"/proc/sys/net/ipv4/{name}", f"4096 65536 {_TCP_BYTES}")
