"""Linux system calls that Python has no function for, by ctypes.

Numbers and constants are those of the kernel's headers (`linux/mount.h`, `linux/sched.h`,
`linux/prctl.h`, `linux/capability.h`); system calls from 424 on have one number everywhere.
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
"""As `signal.signal`, without its detour by enumerations."""

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

    A structure that the kernel only reads is given as bytes: a buffer of ctypes would be a class of
    its own, made anew each time.

    Raises:
        OSError: it failed.
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

    Skips the work that Python does around a fork, which touches and so copies a hundred pages.
    The child must not run foreign code.

    Args:
        namespaces: the `CLONE_NEW...` flags of the namespaces; 0 for none.

    Raises:
        OSError: the kernel does not allow it, or this module does not know the processor.
    """
    if not LINUX:
        return os.fork()
    if not namespaces:
        return _checked(_libc_with_gil.fork())
    number = _CLONE.get(MACHINE)
    if number is None:
        raise OSError(0, f"not known for {MACHINE}")
    arguments = (ctypes.c_long(one) for one in (number, namespaces | signal.SIGCHLD, 0, 0, 0, 0))
    return _checked(_libc_with_gil.syscall(*arguments))


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _checked(_libc.unshare(flags))


def join(descriptor: int) -> None:
    """Enter the namespace that a descriptor stands for."""
    _checked(_libc.setns(descriptor, 0))


def write(path: str, text: str) -> None:
    """Write a short text to a file of the kernel's, by one system call."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read(path: str) -> str:
    """Read a short file of the kernel's."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode()
    finally:
        os.close(descriptor)


def prctl(option: int, *args: int) -> int:
    """Set something of this process; the arguments that are not given are 0."""
    padded = [*args, 0, 0, 0, 0][:4]
    return _checked(_libc.prctl(option, *padded))


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def hide_memory(hide: bool) -> None:
    """Let no process of the same user look into this one; or let it, after all."""
    prctl(_PR_SET_DUMPABLE, 0 if hide else 1)


def no_new_privileges() -> None:
    """Let no program that is executed from here on gain anything."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_bounding_set() -> None:
    """Give up the capabilities that a program could get by being executed."""
    for capability in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last one, or it was not ours to drop
            break


def drop_capabilities() -> None:
    """Give up all capabilities, and the ways to get them back (after `drop_bounding_set`)."""
    number = _CAPSET.get(MACHINE)
    if number is None:
        raise OSError(0, f"not known for {MACHINE}")
    for option, value in ((_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL),):
        prctl(option, value)
    try:
        prctl(_PR_SET_SECUREBITS, _SECUREBITS)
    except OSError:  # without CAP_SETPCAP; an ordinary user has nothing to regain either
        pass
    call(number, struct.pack("=Ii", _CAP_VERSION_3, 0), bytes(24))


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system, or change how mounts propagate."""
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
    """Clone what is mounted at a path and below; gives a descriptor of the detached clone."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return call(_OPEN_TREE, _AT_FDCWD, path, flags)


def attach_tree(descriptor: int, path: str) -> None:
    """Mount a detached clone at a path."""
    call(_MOVE_MOUNT, descriptor, "", _AT_FDCWD, path, _MOVE_MOUNT_F_EMPTY_PATH)


def set_mount(where: int | str, attributes: int, recursive: bool) -> None:
    """Add attributes to a mount (a path, or a detached clone), and to those below."""
    flags = _AT_RECURSIVE if recursive else 0
    attr = struct.pack("=QQQQ", attributes, 0, 0, 0)
    if isinstance(where, str):
        call(_MOUNT_SETATTR, _AT_FDCWD, where, flags, attr, 32)
    else:
        call(_MOUNT_SETATTR, where, "", flags | _AT_EMPTY_PATH, attr, 32)


def unmount(path: str) -> None:
    """Unmount what is mounted at a path and below, as soon as it is not in use."""
    _checked(_libc.umount2(os.fsencode(path), _MNT_DETACH))


def change_root() -> None:
    """Make the mount that is the current directory the root, and drop the old root.

    Raises:
        OSError: the machine runs from its initial ram disk, or the processor is not known here.
    """
    number = _PIVOT_ROOT.get(MACHINE)
    if number is None:
        raise OSError(0, f"not known for {MACHINE}")
    call(number, ".", ".")  # now the old root covers the new one
    unmount(".")
    os.chdir("/")


def is_folder(descriptor: int) -> bool:
    """Whether a descriptor stands for a folder."""
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def pidfd_of(pid: int) -> int:
    """Open a descriptor that stands for a process."""
    return call(_PIDFD_OPEN, pid, 0)
