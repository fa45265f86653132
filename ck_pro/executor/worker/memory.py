"""The memory of a worker and of all that it starts: a watchdog that sums it up.

A look is cheap and never counts too little. Only where it is beyond the limit are the processes
stopped for an exact sum, in which memory that several share counts once.
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
"""What a pipe holds; what the pipes of one user hold before the kernel makes smaller ones."""
_SUM_UP_SHARE = 5
_BYTES_PER_TABLE = 512  # a page of addresses stands in 8 bytes
_INODE_BYTES, _LOCK_BYTES, _WATCH_BYTES = 2048, 256, 256


class Watchdog:
    """Sums up the memory of all processes but this one, by `/proc`.

    What waits in sockets and pipes is no process's memory. So each of them counts as full, but for
    the first few hundred.

    Args:
        memory_mb: megabytes for all of them together.
        private: `/proc` shows the worker's processes only; else nothing can be summed up.
        own_net: so it does for sockets.
        scratch: folders in memory that only the worker can write; their files count.
        charged: the kernel counts too (a control group), so nothing need be estimated.
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
        # beyond what a worker has from the zygote; a single process meets its own limit before
        self._limit = memory_mb * MEGABYTE + (resident - self._libraries) * PAGE + HEADROOM
        self._megabytes = memory_mb
        self._private = private
        self._own_net = own_net
        self._scratch = scratch
        self._devices = {os.stat(path).st_dev for path in scratch}  # noqa: PTH116
        self._charged = charged
        self._before = self._now = _Machine() if charged else of_machine()
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
        files = sum(map(_bytes_of_files, self._scratch))
        if not self._charged:
            self._now = of_machine()
            self._before = _Machine(*map(min, self._before, self._now))
        used = waiting + files + sum(map(self._at_most, pids))
        used += self._unseen(files) + self._now.kernel - self._before.kernel
        used += max(0, sum(map(_descriptors, pids)) - _FREE_DESCRIPTORS) * _SMALL_PIPE_BYTES
        if used > self._limit and self._goes_beyond(used, waiting + files, files):
            return {"why": "memory", "limit": self._megabytes}
        self.interval = 0.05 if len(pids) > 1 or used > self._limit // 2 else 0.2
        return None

    def _at_most(self, pid: str) -> int:
        resident, shared, size = _pages(pid)
        return (resident - min(shared, self._libraries)) * PAGE + size * PAGE // _BYTES_PER_TABLE

    def _unseen(self, files: int) -> int:
        """Bytes that a mapping may hold without showing them: the growth on the whole machine.

        Shared memory without a file lives on when most of its mapping is gone, or is not resident.
        """
        return max(0, self._now.shared - self._before.shared - files)

    def _goes_beyond(self, used: int, elsewhere: int, files: int) -> bool:
        """Sum up exactly, if that was not done just now, or `used` has grown by what was left."""
        now = time.monotonic()
        if now < self._sum_up_at and used <= self._sum_up_from:
            return False
        exact = elsewhere + self._exact(files)
        self._sum_up_at = now + _SUM_UP_SHARE * (time.monotonic() - now)
        self._sum_up_from = used + self._limit - exact
        return exact > self._limit

    def _exact(self, files: int) -> int:
        """Give the bytes of all processes but this one: what they share is counted once.

        They are stopped meanwhile. Else many that are filling memory at once would leave this one
        no share of the processor to count with, and be far beyond the limit when it is done.
        """
        if os.getpid() != 1:  # "all" means those of our own namespace only to its first process
            return self._sum(_pids(), files)
        stopped = [int(pid) for pid in _pids() if _state(pid) in "Tt"]
        _signal(-1, signal.SIGSTOP)
        try:
            return self._sum(_pids(), files)
        finally:
            _signal(-1, signal.SIGCONT)  # one that is only being forked was stopped, too
            for pid in stopped:
                _signal(pid, signal.SIGSTOP)

    def _sum(self, pids: list[str], files: int) -> int:
        private = shared = 0
        for pid in pids:
            anonymous, of_files = _shares(pid)
            if of_files and files:  # those of the scratch folders are counted already
                of_files = _shared_elsewhere(pid, self._devices)
            private += anonymous + _pages(pid)[2] * PAGE // _BYTES_PER_TABLE
            shared += of_files
        if any(map(_maps_nameless, pids)):
            shared = max(shared, self._unseen(files))
        grown = self._now.kernel - self._before.kernel
        kernel = min(grown, _in_kernel(pids)) if grown > HEADROOM else 0
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
    """Give a process's pages: resident, of these shared with files or others, and addressed."""
    try:
        size, resident, shared, *_ = kernel.read(f"/proc/{pid}/statm").split()
    except (OSError, ValueError):
        return 0, 0, 0
    return int(resident), int(shared), int(size)


def _lines(path: str) -> Iterable[str]:
    try:
        with open(path) as file:  # noqa: PTH123
            return file.read().split("\n")
    except OSError:  # it has ended
        return ()


def _shares(pid: str) -> tuple[int, int]:
    """Give a process's share of private memory, and of shared memory (a fork shares most)."""
    found = {"Pss_Anon:": 0, "Pss_Shmem:": 0}
    for line in _lines(f"/proc/{pid}/smaps_rollup"):
        name, *value = line.split()[:2] or [""]
        if name in found:
            found[name] = int(value[0]) * 1024
    return found["Pss_Anon:"], found["Pss_Shmem:"]


def _shared_elsewhere(pid: str, devices: set[int]) -> int:
    """Give a process's share of shared memory that is not a file on one of these devices."""
    total = 0
    counts = False
    for line in _lines(f"/proc/{pid}/smaps"):
        name, *rest = line.split(maxsplit=5) or [""]
        if not name.endswith(":"):
            counts = len(rest) == 5 and _is_nameless(rest[4])
            counts = counts and os.makedev(*_numbers(rest[2])) not in devices
        elif counts and name == "Pss:":
            total += int(rest[0]) * 1024
    return total


def _numbers(device: str) -> tuple[int, int]:
    major, _, minor = device.partition(":")
    return int(major, 16), int(minor, 16)


def _is_nameless(name: str) -> bool:
    return name.startswith("/dev/zero") or name.startswith("/SYSV") or name.startswith("/memfd:")


def _maps_nameless(pid: str) -> bool:
    return any("/dev/zero" in line for line in _lines(f"/proc/{pid}/maps"))


class _Machine(NamedTuple):
    """Bytes that all of the machine has in use."""

    shared: int = 0
    """Files in memory, and shared mappings."""
    kernel: int = 0
    """Structures of the kernel that it cannot give back."""


def of_machine() -> _Machine:
    """Give what the machine has in use."""
    found = dict(line.split()[:2] for line in _lines("/proc/meminfo") if line)
    values = (int(found.get(name, "0")) * 1024 for name in ("Shmem:", "SUnreclaim:"))
    return _Machine(*values)


def _in_kernel(pids: list[str]) -> int:
    """Give the bytes of structures that open files can have without end: locks and watches."""
    locks = sum(1 for line in _lines("/proc/locks") if line)
    watches = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                if os.readlink(f"/proc/{pid}/fd/{name}") == "anon_inode:[eventpoll]":  # noqa: PTH115
                    watches += sum(1 for _ in _lines(f"/proc/{pid}/fdinfo/{name}"))
    return locks * _LOCK_BYTES + watches * _WATCH_BYTES


def _bytes_of_files(folder: str) -> int:
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
        except OSError:  # it has ended
            continue
    small = _FULL_PIPES_BYTES + len(pipes) * _SMALL_PIPE_BYTES
    return min(len(pipes) * _PIPE_BYTES, small)


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
