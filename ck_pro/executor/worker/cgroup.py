"""A control group (version 2) for a session, where one can be made: memory and processes in sum.

The kernel's `admin-guide/cgroup-v2` describes the files.
"""

from __future__ import annotations

import functools
import os

_CONTROLLERS = ("memory", "pids")


class NoGroup(OSError):
    """No control group can be made here; the message says why."""


def find_place(root: str = "/") -> str:
    """Find a directory in which groups with a limit of memory can be made.

    Args:
        root: where `proc` and `sys` are.

    Raises:
        NoGroup: there is none.
    """
    mount = _mount_point(root)
    own = _own_path(root)
    base = os.path.join(root, mount.lstrip("/"))  # noqa: PTH118
    inner = os.path.normpath(os.path.join(base, own.lstrip("/")))  # noqa: PTH118
    # a group with processes of its own cannot hand controllers on; a sibling of it can have them
    for place in (inner, os.path.dirname(inner)):  # noqa: PTH120
        if not place.startswith(os.path.normpath(base)):
            continue
        try:
            with open(f"{place}/cgroup.subtree_control") as file:  # noqa: PTH123
                given = file.read().split()
        except OSError:
            continue
        if "memory" in given and os.access(place, os.W_OK):
            return place
    raise NoGroup("no cgroup v2 here that has the memory controller and may be written")


def _mount_point(root: str) -> str:
    try:
        with open(os.path.join(root, "proc/self/mounts")) as file:  # noqa: PTH118, PTH123
            for line in file:
                _, place, kind, *_ = line.split()
                if kind == "cgroup2":
                    return place
    except OSError as error:
        raise NoGroup(f"the mounts cannot be read: {error}") from error
    raise NoGroup("no cgroup v2 is mounted")


def _own_path(root: str) -> str:
    try:
        with open(os.path.join(root, "proc/self/cgroup")) as file:  # noqa: PTH118, PTH123
            for line in file:
                if line.startswith("0::"):
                    return line[3:].strip()
    except OSError as error:
        raise NoGroup(f"the own cgroup cannot be read: {error}") from error
    raise NoGroup("this process is in no cgroup v2")


@functools.lru_cache(maxsize=1)
def remembered_place() -> str | NoGroup:
    """Give the place of `find_place`, or why there is none; looked for once."""
    try:
        return find_place()
    except NoGroup as error:
        return error


def name_of(pid: int) -> str:
    """Give the directory of the group whose first process is this one.

    Raises:
        NoGroup: there is no place for it.
    """
    place = remembered_place()
    if isinstance(place, NoGroup):
        raise place
    return f"{place}/ck-executor-{pid}"


def enter(group: str, memory_mb: int, tasks: int) -> str:
    """Make a group with limits, and move this process (and its later children) into it.

    Returns:
        The group's directory.

    Raises:
        OSError: it cannot be made or entered; nothing is left behind.
    """
    os.mkdir(group)  # noqa: PTH102
    try:
        settings = {
            "memory.max": str(memory_mb << 20),
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "pids.max": str(tasks),
        }
        for setting, value in settings.items():
            if setting == "memory.max" or os.path.exists(f"{group}/{setting}"):  # noqa: PTH110
                _write(f"{group}/{setting}", value)
        _write(f"{group}/cgroup.procs", str(os.getpid()))
    except OSError:
        remove(group)
        raise
    return group


def ran_out(group: str) -> bool:
    """Say whether the kernel killed something in the group for its memory."""
    try:
        with open(f"{group}/memory.events") as file:  # noqa: PTH123
            counts = dict(line.split() for line in file)
    except (OSError, ValueError):
        return False
    return int(counts.get("oom_kill", "0")) > 0


def remove(group: str) -> None:
    """Remove a group whose processes have ended."""
    try:
        os.rmdir(group)  # noqa: PTH106
    except OSError:
        pass


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
