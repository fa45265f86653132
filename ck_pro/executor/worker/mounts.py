"""The file system of a worker: a root of its own that holds the places it may read, and no other.

The places are mounted read-only into an empty root, at the paths that they have outside. The
working directory is mounted writable. `/tmp`, `/var/tmp` and `/dev` are the worker's own.
"""

from __future__ import annotations

import contextlib
import functools
import os
from typing import Any

from . import kernel

NODES = ("null", "zero", "full", "random", "urandom", "tty")
PTYS = "/dev/pts"
SCRATCH = tuple(dict.fromkeys(map(os.path.realpath, ("/tmp", "/var/tmp", "/dev/shm"))))
"""The places beside the working directory that can be written: they are the worker's own."""

_DEVICES = tuple(f"/dev/{name}" for name in NODES)
_LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
)
_CALM = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_ROOT_SIZE = "size=4m,mode=755,nr_inodes=4k"
_MOST_COPIED = 1 << 20
_MOST_PTYS = 32  # each holds a megabyte that no process is charged for


def build(config: dict[str, Any]) -> None:
    """Give a new mount namespace a new root, with the allowed places and nothing else.

    Args:
        config: `workdir`, `show`, `links`, `copies` and `memory_mb` of the session.

    Raises:
        OSError: the kernel is older than 5.12, or does not allow it. The old root is still there.
    """
    workdir: str = config["workdir"]
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    clones = {path: kernel.clone_tree(path) for path in ("/proc", *config["show"], workdir)}
    devices = {path: kernel.clone_tree(path) for path in _DEVICES if os.path.exists(path)}  # noqa: PTH110
    stage = workdir  # any folder; it is cloned already, and is covered for a moment
    kernel.mount("tmpfs", stage, "tmpfs", _QUIET, _ROOT_SIZE)
    try:
        os.chdir(stage)
        _add_scratch(config)
        for path in config["folders"]:
            _make_folder(path)
        for path in config["copies"]:
            _copy(path)
        for path, clone in sorted(clones.items(), key=lambda one: one[0].count("/")):
            read_only = 0 if path == workdir else kernel.ATTR_RDONLY
            kernel.set_mount(clone, read_only | _CALM, recursive=True)
            _attach(clone, path)
        for path, clone in devices.items():
            _attach(clone, path)
        for path, target in (*config["links"].items(), *_LINKS):
            os.symlink(target, f".{path}")  # noqa: PTH211
        kernel.set_mount(".", kernel.ATTR_RDONLY, recursive=False)
        kernel.change_root()
    except OSError:
        os.chdir("/")
        kernel.unmount(stage)
        raise
    finally:
        for descriptor in (*clones.values(), *devices.values()):
            os.close(descriptor)


def _add_scratch(config: dict[str, Any]) -> None:
    size = max(64, config["memory_mb"] // 4)
    for path in SCRATCH:
        _make_folders(path)
        kernel.mount("tmpfs", f".{path}", "tmpfs", _QUIET, f"size={size}m,mode=1777,nr_inodes=50k")
    _make_folders(PTYS)
    with contextlib.suppress(OSError):  # no pseudo-terminals, then
        options = f"newinstance,ptmxmode=0666,max={_MOST_PTYS}"
        kernel.mount("devpts", f".{PTYS}", "devpts", kernel.MS_NOSUID, options)


def _make_folders(path: str) -> None:
    at = ""
    for name in path.split("/")[1:]:
        at = f"{at}/{name}"
        _make_folder(at)


def _make_folder(path: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(f".{path}", 0o755)  # noqa: PTH102


def _copy(path: str) -> None:
    data = read_copy(path)
    if data is None:
        return
    descriptor = os.open(f".{path}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


@functools.lru_cache(maxsize=64)
def read_copy(path: str) -> bytes | None:
    """Give a small file of the system; the zygote reads it once for all workers."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_MOST_COPIED)
    except OSError:
        return None


def _attach(clone: int, path: str) -> None:
    if kernel.is_folder(clone):
        _make_folder(path)
    else:
        os.close(os.open(f".{path}", os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o644))
    kernel.attach_tree(clone, f".{path}")


def mount_proc() -> None:
    """Mount a `/proc` that shows this pid namespace only.

    Raises:
        OSError: in a container whose own `/proc` is partly covered.
    """
    kernel.mount("proc", "/proc", "proc", _QUIET | kernel.MS_NOEXEC)


def hide_proc() -> None:
    """Cover a `/proc` that shows the processes of the host."""
    kernel.mount("tmpfs", "/proc", "tmpfs", _QUIET, "size=4k,mode=555")
