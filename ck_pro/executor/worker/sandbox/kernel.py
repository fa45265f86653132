"""Linux system calls that the standard library does not offer, through ctypes.

Numbers and constants come from the kernel's headers (`linux/mount.h`, `linux/sched.h`,
`linux/prctl.h`, `linux/capability.h`). System calls from 424 on have the same number on every
processor.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import stat
import struct
import sys

set_signal = getattr(signal.signal, "__wrapped__", signal.signal)
"""`signal.signal` without its conversions to and from enumerations."""

LINUX = sys.platform == "linux"
MACHINE = platform.machine()

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x4_0000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR, _PIDFD_OPEN = 428, 429, 442, 434
_CLONE = {"x86_64": 56, "aarch64": 220}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC if hasattr(os, "O_CLOEXEC") else 0
_MOVE_MOUNT_F_EMPTY_PATH = 4

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 24, 28
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SECUREBITS = 0b101111  # NOROOT, NO_SETUID_FIXUP, both locked; no ambient capabilities
_CAP_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
if LINUX:
    _libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_libc_with_gil = ctypes.PyDLL(None, use_errno=True)


def call(number: int, *args: object) -> int:
    """Make a system call.

    Pass a structure that the kernel only reads as bytes: ctypes would create a class for each
    buffer.

    Raises:
        OSError: the call failed.
    """
    result: int = _libc.syscall(ctypes.c_long(number), *map(_argument, args))
    return _checked(result)


def _argument(value: object) -> object:
    if isinstance(value, int):
        return ctypes.c_long(value)
    if isinstance(value, str):
        return ctypes.c_char_p(os.fsencode(value))
    return value


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def fork(namespaces: int = 0) -> int:
    """Fork this process, which must have one thread, into new namespaces.

    This skips Python's own work around a fork, which writes to about a hundred shared pages. The
    child must not run foreign code.

    Args:
        namespaces: the `CLONE_NEW...` flags of the namespaces; 0 for none.

    Raises:
        OSError: the kernel refuses, or this module does not know the processor.
    """
    if not LINUX:
        return os.fork()
    if not namespaces:
        return _checked(_libc_with_gil.fork())
    number = _CLONE.get(MACHINE)
    if number is None:
        raise OSError(0, f"not supported on {MACHINE}")
    arguments = (ctypes.c_long(one) for one in (number, namespaces | signal.SIGCHLD, 0, 0, 0, 0))
    return _checked(_libc_with_gil.syscall(*arguments))


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _checked(_libc.unshare(flags))


def join(descriptor: int) -> None:
    """Enter the namespace of a descriptor."""
    _checked(_libc.setns(descriptor, 0))


def write(path: str, text: str) -> None:
    """Write a short text to a kernel file, in one system call."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read(path: str) -> str:
    """Read a short kernel file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode()
    finally:
        os.close(descriptor)


def prctl(option: int, *args: int) -> int:
    """Change an attribute of this process; omitted arguments are 0."""
    padded = [*args, 0, 0, 0, 0][:4]
    return _checked(_libc.prctl(option, *padded))


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the new parent of descendants whose parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory(hide: bool) -> None:
    """Deny, or allow again, other processes of the user access to this process's memory."""
    prctl(_PR_SET_DUMPABLE, 0 if hide else 1)


def no_new_privileges() -> None:
    """Prevent executed programs from gaining privileges (set-user-id bits, file capabilities)."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_set() -> None:
    """Drop the capabilities that executed programs could gain."""
    for capability in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last capability, or this process may not drop any
            break


def drop_capabilities() -> None:
    """Drop all capabilities and the ways to regain them. Call `drop_bounding_set` first."""
    number = _CAPSET.get(MACHINE)
    if number is None:
        raise OSError(0, f"not supported on {MACHINE}")
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    try:
        prctl(_PR_SET_SECUREBITS, _SECUREBITS)
    except OSError:  # requires CAP_SETPCAP; an ordinary user has no capabilities to regain
        pass
    call(number, struct.pack("=Ii", _CAP_VERSION_3, 0), bytes(24))


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system, or change the propagation of mounts."""
    _checked(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            None if kind is None else os.fsencode(kind),
            ctypes.c_ulong(flags),
            os.fsencode(data) if data else None,
        )
    )


def clone_tree(path: str) -> int:
    """Clone the mounts at and below a path; return a descriptor of the detached clone."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return call(_OPEN_TREE, _AT_FDCWD, path, flags)


def attach_tree(descriptor: int, path: str) -> None:
    """Mount a detached clone at a path."""
    call(_MOVE_MOUNT, descriptor, "", _AT_FDCWD, path, _MOVE_MOUNT_F_EMPTY_PATH)


def set_mount(where: int | str, attributes: int, recursive: bool) -> None:
    """Add attributes to a mount (a path or a detached clone), and if `recursive` to those below."""
    flags = _AT_RECURSIVE if recursive else 0
    attr = struct.pack("=QQQQ", attributes, 0, 0, 0)
    if isinstance(where, str):
        call(_MOUNT_SETATTR, _AT_FDCWD, where, flags, attr, 32)
    else:
        call(_MOUNT_SETATTR, where, "", flags | _AT_EMPTY_PATH, attr, 32)


def unmount(path: str) -> None:
    """Detach the mounts at and below a path; the kernel removes them when they are unused."""
    _checked(_libc.umount2(os.fsencode(path), _MNT_DETACH))


def change_root() -> None:
    """Make the mount at the current directory the root, and detach the old root.

    Raises:
        OSError: the root is the initial RAM disk, or this module does not know the processor.
    """
    number = _PIVOT_ROOT.get(MACHINE)
    if number is None:
        raise OSError(0, f"not supported on {MACHINE}")
    call(number, ".", ".")  # this leaves the old root mounted over the new one
    unmount(".")
    os.chdir("/")


def is_folder(descriptor: int) -> bool:
    """Return whether a descriptor refers to a directory."""
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def pidfd_of(pid: int) -> int:
    """Return a pidfd of a process."""
    return call(_PIDFD_OPEN, pid, 0)
