"""The file system of a worker: a private root with the files that its code may read.

The allowed files and folders are mounted read-only in an empty root, at their usual paths. The
working directory is mounted writable. `/tmp`, `/var/tmp` and `/dev` are private.
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
"""Private writable folders, besides the working directory."""

_DEVICES = tuple(f"/dev/{name}" for name in NODES)
_LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
)
_ATTRIBUTES = kernel.ATTR_NOSUID | kernel.ATTR_NODEV
_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV
_ROOT_OPTIONS = "size=4m,mode=755,nr_inodes=4k"
_MAX_COPY_BYTES = 1 << 20
_MAX_PTYS = 32  # each takes a megabyte that the kernel charges to no process


def build(config: dict[str, Any]) -> None:
    """Give a new mount namespace a root that has only the allowed files.

    Args:
        config: `workdir`, `show`, `folders`, `links`, `copies` and `memory_mb` of the session.

    Raises:
        OSError: the kernel is older than 5.12, or refuses. The old root is still in place.
    """
    workdir: str = config["workdir"]
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    clones = {path: kernel.clone_tree(path) for path in ("/proc", *config["show"], workdir)}
    devices = {path: kernel.clone_tree(path) for path in _DEVICES if os.path.exists(path)}  # noqa: PTH110
    stage = workdir  # any folder would do; this one is already cloned
    kernel.mount("tmpfs", stage, "tmpfs", _FLAGS, _ROOT_OPTIONS)
    try:
        os.chdir(stage)
        _add_scratch(config)
        for path in config["folders"]:
            _make_folder(path)
        for path in config["copies"]:
            _copy(path)
        for path, clone in sorted(clones.items(), key=lambda one: one[0].count("/")):
            read_only = 0 if path == workdir else kernel.ATTR_RDONLY
            kernel.set_mount(clone, read_only | _ATTRIBUTES, recursive=True)
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
        kernel.mount("tmpfs", f".{path}", "tmpfs", _FLAGS, f"size={size}m,mode=1777,nr_inodes=50k")
    _make_folders(PTYS)
    with contextlib.suppress(OSError):  # pseudo-terminals are optional
        options = f"newinstance,ptmxmode=0666,max={_MAX_PTYS}"
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
    """Return the content of a small system file. The zygote reads each file once."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(_MAX_COPY_BYTES)
    except OSError:
        return None


def _attach(clone: int, path: str) -> None:
    if kernel.is_folder(clone):
        _make_folder(path)
    else:
        os.close(os.open(f".{path}", os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o644))
    kernel.attach_tree(clone, f".{path}")


def mount_proc() -> None:
    """Mount a `/proc` that shows only this pid namespace.

    Raises:
        OSError: this is a container that hides parts of its `/proc`.
    """
    kernel.mount("proc", "/proc", "proc", _FLAGS | kernel.MS_NOEXEC)


def hide_proc() -> None:
    """Cover a `/proc` that shows the host's processes."""
    kernel.mount("tmpfs", "/proc", "tmpfs", _FLAGS, "size=4k,mode=555")
