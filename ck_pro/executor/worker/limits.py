"""Limits of a worker and of all that it starts: rlimits, and a watchdog that sums them up."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import resource
import signal
import time

from . import kernel

MAX_FILES = 512
MAX_TASKS = 256
MAX_FILE_BYTES = 1 << 30
_RESERVED_PIDS = 300  # of the kernel's: numbers below are not used a second time
_CPU_SLACK = 2
_LONGEST = 1e9
_FREE_SOCKETS = 300
_HEADROOM = 64 << 20
_CORES = os.cpu_count() or 1
_SUM_UP_SHARE = 5
_PAGE = resource.getpagesize()
_MEGABYTE = 1 << 20


def set_limits(memory_mb: int, disk_mb: int, own_user: bool) -> None:
    """Set this process's limits, for good.

    Args:
        disk_mb: of a single file, if that is less than `MAX_FILE_BYTES`.
        memory_mb: of address space, beyond what the process has now.
        own_user: processes are counted apart from the rest of the user's.
    """
    limits = {
        "AS": memory_mb * _MEGABYTE + _address_space() + _HEADROOM,
        "FSIZE": min(MAX_FILE_BYTES, disk_mb * _MEGABYTE),
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


@functools.lru_cache(maxsize=1)
def _hard_memory() -> int:
    return resource.getrlimit(resource.RLIMIT_AS)[1]  # set once, before the first step


def grant_memory(share: float) -> None:
    """Grant a share of the headroom above the limit of memory: 0 for code, 1 for the runtime.

    Without it a worker whose memory is full could not even say so, or free any.
    """
    hard = _hard_memory()
    if hard != resource.RLIM_INFINITY:
        soft = hard - int((1 - share) * _HEADROOM)
        with contextlib.suppress(ValueError):  # the code gave itself a narrower limit, for good
            resource.setrlimit(resource.RLIMIT_AS, (max(soft, _HEADROOM), hard))


def _address_space() -> int:
    try:
        return int(kernel.read("/proc/self/statm").split()[0]) * _PAGE
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


class Watchdog:
    """Sums up the memory of all processes but this one, by `/proc`.

    What waits in sockets is no process's memory. So each of them counts as full, but for the first
    few hundred.

    Args:
        memory_mb: megabytes for all of them together.
        private: `/proc` shows the worker's processes only; else nothing can be summed up.
        own_net: so it does for sockets.
    """

    def __init__(self, memory_mb: int, private: bool, own_net: bool):
        # beyond what a worker has from the zygote; a single process meets its own limit before
        self._limit = memory_mb * _MEGABYTE + _own_pages("self") * _PAGE + _HEADROOM
        self._megabytes = memory_mb
        self._private = private
        self._own_net = own_net
        self._sum_up_at = self._sum_up_from = 0.0
        self.interval = 0.2

    def look(self) -> dict[str, object] | None:
        """Give why all must end, or None; and set when to look again, in seconds."""
        if not self._private:
            return None
        pids = _pids()
        if len(pids) > MAX_TASKS:
            return {"why": "tasks", "limit": MAX_TASKS}
        waiting = _in_sockets() if self._own_net else 0
        used = waiting + sum(_own_pages(pid) for pid in pids) * _PAGE
        if used > self._limit and self._goes_beyond(used, waiting):
            return {"why": "memory", "limit": self._megabytes}
        self.interval = 0.05 if len(pids) > 1 or used > self._limit // 2 else 0.2
        return None

    def _goes_beyond(self, used: int, waiting: int) -> bool:
        """Sum up exactly, if that was not done just now, or `used` has grown by what was left."""
        now = time.monotonic()
        if now < self._sum_up_at and used <= self._sum_up_from:
            return False
        exact = waiting + _summed_up()
        self._sum_up_at = now + _SUM_UP_SHARE * (time.monotonic() - now)
        self._sum_up_from = used + self._limit - exact
        return exact > self._limit


def _summed_up() -> int:
    """Give the bytes of all processes but this one, exactly: what they share is counted once.

    They are stopped meanwhile. Else many that are filling memory at once would leave this one no
    share of the processor to count with, and be far beyond the limit when it is done.
    """
    if os.getpid() != 1:  # "all" means those of our own namespace, and nobody else's, to its first
        return sum(_share(pid) for pid in _pids())
    stopped = [int(pid) for pid in _pids() if _state(pid) in "Tt"]
    _signal(-1, signal.SIGSTOP)
    try:
        return sum(_share(pid) for pid in _pids())
    finally:
        _signal(-1, signal.SIGCONT)  # one that is only being forked was stopped, and goes on, too
        for pid in stopped:
            _signal(pid, signal.SIGSTOP)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit() and name != "1"]  # noqa: PTH208


def _state(pid: str) -> str:
    try:
        return kernel.read(f"/proc/{pid}/stat").rpartition(") ")[2][:1]
    except OSError:
        return "X"


def _own_pages(pid: str) -> int:
    try:
        _, resident, shared, *_ = kernel.read(f"/proc/{pid}/statm").split()
    except (OSError, ValueError):
        return 0
    return int(resident) - int(shared)


def _share(pid: str) -> int:
    """Give a process's bytes, its share of what it shares (a fork shares most of it)."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:  # noqa: PTH123
            lines = file.read().split("\n")
    except OSError:
        return _own_pages(pid) * _PAGE
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))


@functools.lru_cache(maxsize=1)
def bytes_of_a_socket() -> int:
    """Give what one can hold. The file is there in the host's network only."""
    try:
        return int(kernel.read("/proc/sys/net/core/wmem_default"))
    except (OSError, ValueError):
        return 212_992


def _in_sockets() -> int:
    try:
        number = int(kernel.read("/proc/self/net/sockstat").split()[2])  # "sockets: used 15"
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, number - _FREE_SOCKETS) * bytes_of_a_socket()
