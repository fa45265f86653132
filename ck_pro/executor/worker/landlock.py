"""Landlock: which files a worker may open, whatever is mounted (`linux/landlock.h`)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable

from . import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _RULE_PATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_FS_RIGHTS_FROM_5 = (1 << 16) - 1
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_NET_TCP, _SCOPES = 0b11, 0b11  # bind and connect; abstract sockets and signals
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


def restrict(
    readable: Iterable[str], writable: Iterable[str], listable: Iterable[str], deny_tcp: bool
) -> None:
    """Restrict this process, for good, to some places. Needs `no_new_privileges` before.

    Args:
        readable: what can be read and executed, with all that is below.
        writable: what can be written too.
        listable: directories of which (and below which) only the names can be read.
        deny_tcp: no TCP either, where the kernel can.

    Raises:
        OSError: the kernel has no Landlock, or it is off.
    """
    version = kernel.call(_CREATE, 0, 0, _VERSION_FLAG)
    all_rights = _FS_RIGHTS.get(version, _FS_RIGHTS_FROM_5)
    fields = [all_rights]
    if version >= 4:
        fields.append(_NET_TCP if deny_tcp else 0)
    if version >= 6:
        fields.append(_SCOPES)
    attr = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = kernel.call(_CREATE, attr, len(attr), 0)
    try:
        for path in readable:
            _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
        for path in writable:
            _allow(ruleset, path, all_rights)
        for path in listable:
            _allow(ruleset, path, _READ_DIR)
        kernel.call(_RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # what is not there needs no rule
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        kernel.call(_ADD, ruleset, _RULE_PATH, rule, 0)
    finally:
        os.close(descriptor)
