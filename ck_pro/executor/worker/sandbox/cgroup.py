"""A control group (cgroup) per session, in which the kernel counts and limits memory.

Uses version 2 (`admin-guide/cgroup-v2`) if this process's group or its parent passes the memory
controller to subgroups, or systemd delegates the group. Otherwise version 1
(`admin-guide/cgroup-v1`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

_AGENT = "ck-agent"
_PREFIX = "ck-executor-"
_ORPHAN_SECONDS = 60.0  # a worker enters a new group within this time
_ROUNDS = 5


class NoGroup(OSError):
    """This process cannot create control groups."""


class Place(NamedTuple):
    """A directory for groups, and the version of its hierarchy."""

    folder: str
    version: int


def find_place(root: str = "/") -> Place:
    """Find a directory in which this process can create groups with a memory limit.

    A delegated group can pass its controllers on only if it has no processes. So this moves its
    processes into a subgroup.

    Args:
        root: the folder with `proc` and `sys`.

    Raises:
        NoGroup: there is no such directory.
    """
    for inner, top in _own_groups(root, "cgroup2"):
        if _passes_on(inner) or (_is_delegated(inner) and _pass_on(inner)):
            return Place(inner, 2)
        # a group with processes cannot pass controllers on, but its parent may
        parent = os.path.dirname(inner)  # noqa: PTH120
        if parent.startswith(top) and _passes_on(parent):
            return Place(parent, 2)
    for inner, _ in _own_groups(root, "cgroup"):
        if os.access(inner, os.W_OK) and os.path.exists(f"{inner}/memory.limit_in_bytes"):  # noqa: PTH110
            return Place(inner, 1)
    raise NoGroup("no writable cgroup with the memory controller")


def _own_groups(root: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the directory of this process's group and the mount point of its hierarchy."""
    own = None
    for line in _read_lines(os.path.join(root, "proc/self/cgroup")):  # noqa: PTH118
        number, names, path = line.split(":", 2)
        if (number == "0" and not names) if kind == "cgroup2" else "memory" in names.split(","):
            own = path
    for line in _read_lines(os.path.join(root, "proc/self/mounts")):  # noqa: PTH118
        _, place, found, options, *_ = line.split()
        if found != kind or (kind == "cgroup" and "memory" not in options.split(",")):
            continue
        if own is not None:
            top = os.path.normpath(os.path.join(root, place.lstrip("/")))  # noqa: PTH118
            yield os.path.normpath(os.path.join(top, own.lstrip("/"))), top  # noqa: PTH118
        return


def _read_lines(path: str) -> list[str]:
    try:
        with open(path) as file:  # noqa: PTH123
            return file.read().splitlines()
    except OSError:
        return []


def _passes_on(group: str) -> bool:
    given = " ".join(_read_lines(f"{group}/cgroup.subtree_control")).split()
    return "memory" in given and os.access(group, os.W_OK)


def _is_delegated(group: str) -> bool:
    """Return whether systemd delegates the group to its processes (`Delegate=yes`)."""
    if not hasattr(os, "getxattr"):
        return False
    for name in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(group, name) == b"1":
                return os.access(group, os.W_OK)
        except OSError:
            continue
    return False


def _pass_on(group: str) -> bool:
    """Move the group's processes into a subgroup, and pass the controllers on to subgroups."""
    given = " ".join(_read_lines(f"{group}/cgroup.controllers")).split()
    if "memory" not in given:
        return False
    leaf = f"{group}/{_AGENT}"
    try:
        os.makedirs(leaf, exist_ok=True)  # noqa: PTH103
        for _ in range(_ROUNDS):  # processes may fork meanwhile
            pids = _read_lines(f"{group}/cgroup.procs")
            if not pids:
                break
            for pid in pids:
                _move(pid, leaf)
        wanted = [f"+{name}" for name in ("memory", "pids") if name in given]
        _write(f"{group}/cgroup.subtree_control", " ".join(wanted))
    except OSError:
        return False
    return _passes_on(group)


def _move(pid: str, group: str) -> None:
    try:
        _write(f"{group}/cgroup.procs", pid)
    except ProcessLookupError:  # it has ended
        pass


@functools.lru_cache(maxsize=1)
def known_place() -> Place | NoGroup:
    """Return the result of the first call of `find_place`; remove orphaned groups there."""
    try:
        place = find_place()
    except NoGroup as error:
        return error
    remove_orphans(place)
    return place


def remove_orphans(place: Place) -> None:
    """Remove old groups without processes, which a zygote leaves if it is killed."""
    with contextlib.suppress(OSError), os.scandir(place.folder) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with contextlib.suppress(OSError):  # it has processes
                    if time.time() - entry.stat().st_mtime > _ORPHAN_SECONDS:
                        os.rmdir(entry.path)  # noqa: PTH106


def new_place() -> Place:
    """Choose the directory of a session's group.

    Raises:
        NoGroup: this process cannot create groups.
    """
    place = known_place()
    if isinstance(place, NoGroup):
        raise place
    return place._replace(folder=f"{place.folder}/{_PREFIX}{os.urandom(8).hex()}")


class Group:
    """A control group with limits.

    Args:
        place: the directory to create.
        memory: limit in bytes.
        tasks: maximum number of processes and threads (version 2).

    Raises:
        OSError: the group cannot be created.
    """

    def __init__(self, place: Place, memory: int, tasks: int):
        self._place = place
        os.mkdir(place.folder)  # noqa: PTH102
        if place.version == 2:
            events = "memory.events"
            settings = {
                "memory.max": str(memory),
                "memory.swap.max": "0",
                "memory.oom.group": "1",
                "pids.max": str(tasks),
            }
        else:
            events = "memory.oom_control"
            settings = {
                "memory.limit_in_bytes": str(memory),
                "memory.memsw.limit_in_bytes": str(memory),
            }
        needed = next(iter(settings))
        try:
            for setting, value in settings.items():
                if setting == needed or os.path.exists(f"{place.folder}/{setting}"):  # noqa: PTH110
                    _write(f"{place.folder}/{setting}", value)
            # opened now, since the sandbox hides the directory
            members = "tasks" if place.version == 1 else "cgroup.procs"
            self._members = os.open(f"{place.folder}/{members}", os.O_WRONLY | os.O_CLOEXEC)
            self._events = os.open(f"{place.folder}/{events}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.remove()
            raise

    def enter(self) -> None:
        """Move this process, which must have one thread, into the group.

        A thread that moves itself through `tasks` needs no global lock. Any other move waits about
        10 ms for that lock.

        Raises:
            OSError: the kernel refuses.
        """
        os.write(self._members, b"0")

    def ran_out(self) -> bool:
        """Return whether the kernel killed a process of the group because of its memory."""
        try:
            lines = os.pread(self._events, 4096, 0).decode().splitlines()
            counts = dict(line.split() for line in lines)
        except (OSError, ValueError):
            return False
        return int(counts.get("oom_kill", "0")) > 0

    def close(self) -> None:
        """Close the descriptors in this process."""
        os.close(self._members)
        os.close(self._events)

    def remove(self) -> None:
        """Remove the group, if its processes have ended."""
        try:
            os.rmdir(self._place.folder)  # noqa: PTH106
        except OSError:
            pass


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
