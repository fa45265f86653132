"""A watchdog that adds up the memory of a worker and all processes that it starts.

A check is cheap, and its estimate is never too low. If the estimate is above the limit, the
watchdog stops the processes for an exact sum, which counts shared memory once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import kernel
from .limits import HEADROOM, MAX_TASKS, MEGABYTE, PAGE

_FREE_SOCKETS = 300
_FREE_DESCRIPTORS = 2000
_PIPE_BYTES, _FULL_PIPES_BYTES, _SMALL_PIPE_BYTES = 1 << 16, 1 << 26, 1 << 13
"""Size of a pipe; total size of a user's pipes above which new pipes are small; their size."""
_SUM_PAUSE_FACTOR = 5
_PAGES_PER_TABLE_PAGE = 512  # a page table entry has 8 bytes
_INODE_BYTES, _LOCK_BYTES, _WATCH_BYTES = 2048, 256, 256


class MemoryWatchdog:
    """Limits the memory of all processes except this one, as `/proc` shows it.

    Data in sockets and pipes belongs to no process. So all of them count as full, except the first
    few hundred.

    Args:
        memory_mb: limit for all processes together, in megabytes.
        private: whether `/proc` shows only the worker's processes. If not, `check` does nothing.
        own_net: whether the worker has a network namespace, so that its sockets can be counted.
        scratch: private folders in memory; their files count.
        charged: whether a control group counts kernel memory and lost mappings exactly.

    Attributes:
        interval: seconds until the next check is due.
    """

    def __init__(
        self,
        memory_mb: int,
        private: bool,
        own_net: bool,
        scratch: Sequence[str] = (),
        charged: bool = False,
    ):
        resident, self._libraries, _ = _pages("self")
        # pages from the zygote do not count; HEADROOM lets RLIMIT_AS stop a single process first
        self._limit = memory_mb * MEGABYTE + (resident - self._libraries) * PAGE + HEADROOM
        self._megabytes = memory_mb
        self._private = private
        self._own_net = own_net
        self._scratch = scratch
        self._devices = {os.stat(path).st_dev for path in scratch}  # noqa: PTH116
        self._charged = charged
        self._before = self._now = _Machine() if charged else memory_of_machine()
        self._next_sum = self._sum_if_above = 0.0
        self.interval = 0.2

    def check(self) -> dict[str, object] | None:
        """Return a reason to kill the worker, or None."""
        if not self._private:
            return None
        pids = _pids()
        if len(pids) > MAX_TASKS:
            return {"why": "tasks", "limit": MAX_TASKS}
        sockets = _in_sockets() if self._own_net else 0
        files = sum(map(_size_of_files, self._scratch))
        if not self._charged:
            self._now = memory_of_machine()
            self._before = _Machine(*map(min, self._before, self._now))
        used = sockets + files + sum(map(self._estimate, pids))
        used += self._unmapped(files) + self._now.kernel - self._before.kernel
        used += max(0, sum(map(_descriptors, pids)) - _FREE_DESCRIPTORS) * _SMALL_PIPE_BYTES
        if used > self._limit and self._exceeds_limit(used, sockets + files, files):
            return {"why": "memory", "limit": self._megabytes}
        self.interval = 0.05 if len(pids) > 1 or used > self._limit // 2 else 0.2
        return None

    def _estimate(self, pid: str) -> int:
        resident, shared, size = _pages(pid)
        tables = size * PAGE // _PAGES_PER_TABLE_PAGE
        return (resident - min(shared, self._libraries)) * PAGE + tables

    def _unmapped(self, files: int) -> int:
        """Return the growth of shared memory on the whole machine.

        Anonymous shared memory stays allocated when a process unmaps most of it, and `/proc` then
        does not show it.
        """
        return max(0, self._now.shared - self._before.shared - files)

    def _exceeds_limit(self, used: int, elsewhere: int, files: int) -> bool:
        """Compute the exact sum, unless the last one is recent and still proves enough room."""
        now = time.monotonic()
        if now < self._next_sum and used <= self._sum_if_above:
            return False
        exact = elsewhere + self._exact(files)
        self._next_sum = now + _SUM_PAUSE_FACTOR * (time.monotonic() - now)
        self._sum_if_above = used + self._limit - exact
        return exact > self._limit

    def _exact(self, files: int) -> int:
        """Return the bytes of all processes except this one; shared memory counts once.

        The processes are stopped meanwhile. Otherwise many processes that allocate at once could
        delay this one, and be far above the limit at the end.
        """
        if os.getpid() != 1:  # only for the first process, -1 means its namespace alone
            return self._sum(_pids(), files)
        stopped = [int(pid) for pid in _pids() if _state(pid) in "Tt"]
        _signal(-1, signal.SIGSTOP)
        try:
            return self._sum(_pids(), files)
        finally:
            _signal(-1, signal.SIGCONT)  # also processes that were being forked
            for pid in stopped:
                _signal(pid, signal.SIGSTOP)

    def _sum(self, pids: list[str], files: int) -> int:
        private = shared = 0
        for pid in pids:
            anonymous, of_files = _shares(pid)
            if of_files and files:  # files in the scratch folders are already counted
                of_files = _shared_elsewhere(pid, self._devices)
            private += anonymous + _pages(pid)[2] * PAGE // _PAGES_PER_TABLE_PAGE
            shared += of_files
        if any(map(_maps_anonymous_shared, pids)):
            shared = max(shared, self._unmapped(files))
        grown = self._now.kernel - self._before.kernel
        kernel = _in_kernel(pids, grown) if grown > HEADROOM else 0
        return private + shared + kernel + _in_pipes(pids)


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


def _pages(pid: str) -> tuple[int, int, int]:
    """Return a process's numbers of pages: resident, resident and shared, in its address space."""
    try:
        size, resident, shared, *_ = kernel.read(f"/proc/{pid}/statm").split()
    except (OSError, ValueError):
        return 0, 0, 0
    return int(resident), int(shared), int(size)


def _lines(path: str) -> Iterable[str]:
    try:
        with open(path) as file:  # noqa: PTH123
            return file.read().split("\n")
    except OSError:  # the process has ended
        return ()


def _shares(pid: str) -> tuple[int, int]:
    """Return a process's share of anonymous memory (forks share most) and of shared memory."""
    found = {"Pss_Anon:": 0, "Pss_Shmem:": 0}
    for line in _lines(f"/proc/{pid}/smaps_rollup"):
        name, *value = line.split()[:2] or [""]
        if name in found:
            found[name] = int(value[0]) * 1024
    return found["Pss_Anon:"], found["Pss_Shmem:"]


def _shared_elsewhere(pid: str, devices: set[int]) -> int:
    """Return a process's share of shared memory, without files on these devices."""
    total = 0
    counts = False
    for line in _lines(f"/proc/{pid}/smaps"):
        name, *rest = line.split(maxsplit=5) or [""]
        if not name.endswith(":"):
            counts = len(rest) == 5 and _is_anonymous_shared(rest[4])
            counts = counts and os.makedev(*_numbers(rest[2])) not in devices
        elif counts and name == "Pss:":
            total += int(rest[0]) * 1024
    return total


def _numbers(device: str) -> tuple[int, int]:
    major, _, minor = device.partition(":")
    return int(major, 16), int(minor, 16)


def _is_anonymous_shared(name: str) -> bool:
    return name.startswith(("/dev/zero", "/SYSV", "/memfd:"))


def _maps_anonymous_shared(pid: str) -> bool:
    return any("/dev/zero" in line for line in _lines(f"/proc/{pid}/maps"))


class _Machine(NamedTuple):
    """Bytes in use on the whole machine."""

    shared: int = 0
    """Files in memory, and shared mappings."""
    kernel: int = 0
    """Kernel structures that cannot be reclaimed."""


def memory_of_machine() -> _Machine:
    """Read the memory in use on the whole machine."""
    found = dict(line.split()[:2] for line in _lines("/proc/meminfo") if line)
    values = (int(found.get(name, "0")) * 1024 for name in ("Shmem:", "SUnreclaim:"))
    return _Machine(*values)


def _in_kernel(pids: list[str], most: int) -> int:
    """Return the bytes of file locks and `epoll` entries, whose number has no limit.

    Stops at `most`, since reading millions of entries takes seconds.
    """
    size = sum(1 for line in _lines("/proc/locks") if line) * _LOCK_BYTES
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has ended
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                if os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:[eventpoll]":  # noqa: PTH115
                    size += sum(1 for _ in _lines(f"/proc/{pid}/fdinfo/{name}")) * _WATCH_BYTES
                if size >= most:
                    return most
    return size


def _size_of_files(folder: str) -> int:
    facts = os.statvfs(folder)
    blocks, inodes = facts.f_blocks - facts.f_bfree, facts.f_files - facts.f_ffree
    return blocks * facts.f_frsize + inodes * _INODE_BYTES


def _descriptors(pid: str) -> int:
    try:
        return os.stat(f"/proc/{pid}/fd").st_size  # noqa: PTH116 - 0 before Linux 6.2
    except OSError:
        return 0


def _in_pipes(pids: list[str]) -> int:
    if sum(map(_descriptors, pids)) <= _FREE_DESCRIPTORS:
        return 0
    pipes = set()
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                target = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
                if target.startswith("pipe:"):
                    pipes.add(target)
        except OSError:  # the process has ended
            continue
    small = _FULL_PIPES_BYTES + len(pipes) * _SMALL_PIPE_BYTES
    return min(len(pipes) * _PIPE_BYTES, small)


@functools.lru_cache(maxsize=1)
def socket_buffer_bytes() -> int:
    """Return the size of a socket's buffer. Only the host's network namespace has the file."""
    try:
        return int(kernel.read("/proc/sys/net/core/wmem_default"))
    except (OSError, ValueError):
        return 212_992


def _in_sockets() -> int:
    try:
        number = int(kernel.read("/proc/self/net/sockstat").split()[2])  # "sockets: used 15"
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, number - _FREE_SOCKETS) * socket_buffer_bytes()
