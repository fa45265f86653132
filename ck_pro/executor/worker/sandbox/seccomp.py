"""A seccomp filter: the system calls that a worker cannot make.

The filter denies calls that administer the machine, inspect other processes, create namespaces or
mounts, open sockets to the outside, take memory that no process is charged for, or set set-user-id
bits. A denied call fails with an error number, which programs can handle. Only a foreign calling
convention kills the process. Formats: `linux/filter.h`, `linux/seccomp.h`, `linux/audit.h`.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import struct
from collections.abc import Iterable

from . import kernel

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_NUMBER, _ARCH = 0, 4
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE_MASK = 1, 5, 0xF
_SET_ID_BITS = 0o6000
_O_CREAT_OR_TMPFILE = 0o100 | 0o20000000
_NEW_NAMESPACES = 0x7E02_0000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# name: (number on x86_64, number on aarch64); None if it does not exist there
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "unshare": (272, 97),
    "setns": (308, 268),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # these take kernel memory that no process is charged for
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semctl": (66, 191),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "mq_open": (240, 180),
}
# these fail as on a kernel that lacks them, so that programs use their fallback
_UNKNOWN: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),
}
# name: (x86_64, aarch64, index of the mode argument, index of the flags argument or None)
_MODES: dict[str, tuple[int | None, int | None, int, int | None]] = {
    "chmod": (90, None, 1, None),
    "fchmod": (91, 52, 1, None),
    "fchmodat": (268, 53, 2, None),
    "fchmodat2": (452, 452, 2, None),
    "mknod": (133, None, 1, None),
    "mknodat": (259, 33, 2, None),
    "creat": (85, None, 1, None),
    "open": (2, None, 2, 1),
    "openat": (257, 56, 3, 2),
}
_CLONE, _IOCTL, _SOCKET, _KILL_CALL = (56, 220), (16, 29), (41, 198), (62, 129)
_SOCKETPAIR, _MMAP, _FCNTL = (53, 199), (9, 222), (72, 25)
_MAP_HUGETLB, _F_SETPIPE_SZ = 0x4_0000, 1031
_SETSOCKOPT, _SOL_SOCKET = (54, 208), 1
_SO_BUFFERS = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF, and the two ...FORCE options


def install(inet: bool, all_processes: bool, local: bool = False) -> None:
    """Filter this process's system calls permanently. Call `kernel.no_new_privileges` first.

    Args:
        inet: whether to allow internet sockets (the network is open or private).
        all_processes: whether to allow `kill(-1)` (the pid namespace is private).
        local: whether to allow local sockets (the network and the file view are private).

    Raises:
        OSError: the kernel lacks seccomp, or this module does not know the processor.
    """
    code = assemble(kernel.MACHINE, inet, all_processes, local)
    header = struct.pack("@HP", len(code) // 8, _address(code))
    kernel.prctl(_PR_SET_SECCOMP, _MODE_FILTER, _address(header))


def _address(data: bytes) -> int:
    """Return the address of bytes. The caller must keep a reference to them."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


@functools.lru_cache(maxsize=8)
def assemble(machine: str, inet: bool, all_processes: bool, local: bool = False) -> bytes:
    """Return the filter in the kernel's format.

    Raises:
        OSError: this module does not know the processor.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(0, f"no filter for {machine}")
    lines = program(machine, inet, all_processes, local)
    return b"".join(struct.pack("=HBBI", *one) for one in lines)


_Instruction = tuple[int, int, int, int]


def program(
    machine: str, inet: bool, all_processes: bool, local: bool = False
) -> list[_Instruction]:
    """Return the filter as instructions: (code, jump if true, jump if false, operand)."""
    column = 0 if machine == "x86_64" else 1
    lines: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":  # the x32 convention has other numbers for the same calls
        lines += [(_AT_LEAST, 0, 1, 0x4000_0000), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    lines += _refuse((one[column] for one in _DENIED.values()), errno.EPERM)
    lines += _refuse((one[column] for one in _UNKNOWN.values()), errno.ENOSYS)
    lines += _when(_CLONE[column], _bits(0, _NEW_NAMESPACES))
    lines += _when(_IOCTL[column], _values(1, (_TIOCSTI, _TIOCLINUX)))
    families = ((_AF_INET, _AF_INET6) if inet else ()) + ((_AF_UNIX,) if local else ())
    lines += _when(_SOCKET[column], _others(0, families))
    lines += _when(_SOCKETPAIR[column], _connected_pairs())
    # /proc shows huge pages and pipe buffers in no process
    lines += _when(_MMAP[column], _bits(3, _MAP_HUGETLB, errno.ENOMEM))
    lines += _when(_FCNTL[column], _values(1, (_F_SETPIPE_SZ,)))
    # nor data in sockets; requests for larger buffers succeed without effect, which programs expect
    sizes = _values(2, _SO_BUFFERS, error=0)
    level = [(_LOAD, 0, 0, _argument(1)), (_EQUAL, 0, len(sizes), _SOL_SOCKET)]
    lines += _when(_SETSOCKOPT[column], [*level, *sizes])
    if not all_processes:
        lines += _when(_KILL_CALL[column], _values(0, (0xFFFF_FFFF,)))
    for *numbers, mode, flags in _MODES.values():
        test = _bits(mode, _SET_ID_BITS)
        if flags is not None:  # without O_CREAT the register of the mode has any value
            test = [
                (_LOAD, 0, 0, _argument(flags)),
                (_ANY_BIT, 0, len(test), _O_CREAT_OR_TMPFILE),
                *test,
            ]
        lines += _when(numbers[column], test)
    return [*lines, (_RETURN, 0, 0, _ALLOW)]


def _refuse(numbers: Iterable[int | None], error: int) -> list[_Instruction]:
    lines: list[_Instruction] = []
    for number in numbers:
        if number is not None:
            lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]
    return lines


def _when(number: int | None, test: list[_Instruction]) -> list[_Instruction]:
    """Return a test for one system call. It ends the filter, as it overwrites the accumulator."""
    if number is None:
        return []
    return [(_EQUAL, 0, len(test) + 1, number), *test, (_RETURN, 0, 0, _ALLOW)]


def _argument(index: int) -> int:
    return 16 + 8 * index  # the low half on a little-endian machine


def _bits(argument: int, mask: int, error: int = errno.EPERM) -> list[_Instruction]:
    return [
        (_LOAD, 0, 0, _argument(argument)),
        (_ANY_BIT, 0, 1, mask),
        (_RETURN, 0, 0, _ERRNO | error),
    ]


def _connected_pairs() -> list[_Instruction]:
    """Allow only pairs of Unix sockets that stay connected to each other.

    A datagram socket can send to any path. The kernel treats SOCK_RAW as a datagram socket.
    """
    return [
        (_LOAD, 0, 0, _argument(0)),
        (_EQUAL, 0, 4, _AF_UNIX),
        (_LOAD, 0, 0, _argument(1)),
        (_AND, 0, 0, _SOCK_TYPE_MASK),
        (_EQUAL, 2, 0, _SOCK_STREAM),
        (_EQUAL, 1, 0, _SOCK_SEQPACKET),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _values(argument: int, values: Iterable[int], error: int = errno.EPERM) -> list[_Instruction]:
    lines: list[_Instruction] = [(_LOAD, 0, 0, _argument(argument))]
    for value in values:
        lines += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | error)]
    return lines


def _others(argument: int, allowed: Iterable[int]) -> list[_Instruction]:
    lines: list[_Instruction] = [(_LOAD, 0, 0, _argument(argument))]
    for value in allowed:
        lines += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*lines, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
