"""What a worker sees of the file system: all of it read-only, the hidden places empty."""

from __future__ import annotations

import os
from typing import Any

from . import kernel

NODES = ("null", "zero", "full", "random", "urandom", "tty")
PTYS = "/dev/pts"
SCRATCH = tuple(os.path.realpath(path) for path in ("/tmp", "/var/tmp", "/dev/shm"))
"""The places beside the working directory that can be written: they are the worker's own."""

_HIDDEN_FILES = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1"}


def build(config: dict[str, Any]) -> None:
    """Arrange the mounts of a new mount namespace.

    Args:
        config: `workdir`, `hide`, `show` and `memory_mb` of the session.

    Raises:
        OSError: the kernel is older than 5.12, or does not let us.
    """
    workdir: str = config["workdir"]
    hide = [path for path in config["hide"] if path != workdir]
    show = [path for path in config["show"] if any(_inside(path, top) for top in (*hide, workdir))]
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    clones = {path: kernel.clone_tree(path) for path in (*show, workdir)}
    nodes = {
        name: kernel.clone_tree(f"/dev/{name}")
        for name in NODES
        if os.path.exists(f"/dev/{name}")  # noqa: PTH110
    }
    calm = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
    kernel.set_mount("/", kernel.ATTR_RDONLY | calm, recursive=True)
    for path, clone in clones.items():
        read_only = 0 if path == workdir else kernel.ATTR_RDONLY
        kernel.set_mount(clone, read_only | calm, recursive=True)
    _hide_files(nodes.get("null"))
    size = max(64, config["memory_mb"] // 4)
    for path in sorted({*hide, *clones}, key=lambda path: path.count("/")):
        if path in clones:
            _make_place(path)
            kernel.attach_tree(clones[path], path)
            os.close(clones[path])
        elif os.path.isdir(path):  # noqa: PTH112 - else a place above it is hidden already
            _hide(path, size, nodes)
    for path in hide:
        if path not in SCRATCH and os.path.ismount(path):
            kernel.set_mount(path, kernel.ATTR_RDONLY, recursive=False)
    for descriptor in nodes.values():
        os.close(descriptor)


def _inside(path: str, top: str) -> bool:
    return path == top or path.startswith(top.rstrip("/") + "/")


def _make_place(path: str) -> None:
    if not os.path.lexists(path):
        os.makedirs(path)  # noqa: PTH103


def _hide(path: str, size: int, nodes: dict[str, int]) -> None:
    scratch = path in SCRATCH
    data = f"size={size}m,mode=1777" if scratch else "size=1m,mode=755"
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", path, "tmpfs", flags, f"{data},nr_inodes=50k")
    if path == "/dev":
        _fill_dev(size, nodes)


def _fill_dev(size: int, nodes: dict[str, int]) -> None:
    for name, descriptor in nodes.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        kernel.attach_tree(descriptor, f"/dev/{name}")
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")  # noqa: PTH211
    os.mkdir("/dev/shm")  # noqa: PTH102
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", "/dev/shm", "tmpfs", flags, f"size={size}m,mode=1777,nr_inodes=50k")
    try:
        os.mkdir(PTYS)  # noqa: PTH102
        kernel.mount("devpts", PTYS, "devpts", kernel.MS_NOSUID, "newinstance,ptmxmode=0666")
        os.symlink("pts/ptmx", "/dev/ptmx")  # noqa: PTH211
    except OSError:  # no pseudo-terminals, then
        pass


def _hide_files(null: int | None) -> None:
    if null is None:
        return
    for path in _HIDDEN_FILES:
        if os.path.exists(path):  # noqa: PTH110
            clone = kernel.clone_tree("/dev/null")
            kernel.attach_tree(clone, path)
            os.close(clone)


def mount_proc() -> None:
    """Mount a `/proc` that shows this pid namespace only, read-only.

    Raises:
        OSError: in a container whose own `/proc` is partly covered.
    """
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", "/proc", "proc", flags)


def hide_proc() -> None:
    """Cover a `/proc` that shows the processes of the host."""
    kernel.mount("tmpfs", "/proc", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4k,mode=555")


def close_proc() -> None:
    """Make `/proc` read-only: its settings belong to root, which a worker of root's still is."""
    kernel.set_mount("/proc", kernel.ATTR_RDONLY, recursive=False)
