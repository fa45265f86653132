"""Landlock: restrict which files a worker may open, whatever is mounted (`linux/landlock.h`)."""

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
_NET_TCP, _SCOPES = 0b11, 0b11  # bind, connect; abstract sockets, signals
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


class Rules:
    """The files that this process will be restricted to.

    A rule applies to a file or folder itself, by every path and mount that leads to it.

    Args:
        deny_tcp: whether to deny TCP too; kernels before 6.7 cannot.

    Raises:
        OSError: the kernel lacks Landlock, or has it switched off.
    """

    def __init__(self, deny_tcp: bool):
        version = kernel.call(_CREATE, 0, 0, _VERSION_FLAG)
        self._all = _FS_RIGHTS.get(version, _FS_RIGHTS_FROM_5)
        fields = [self._all]
        if version >= 4:
            fields.append(_NET_TCP if deny_tcp else 0)
        if version >= 6:
            fields.append(_SCOPES)
        attributes = struct.pack(f"={len(fields)}Q", *fields)
        self._descriptor = kernel.call(_CREATE, attributes, len(attributes), 0)

    def allow_reading(self, *paths: str) -> None:
        """Allow reading and executing these files and everything in these folders."""
        self._allow(paths, _EXECUTE | _READ_FILE | _READ_DIR)

    def allow_all(self, *paths: str) -> None:
        """Allow every access to these files and to everything in these folders."""
        self._allow(paths, self._all)

    def allow_listing(self, *paths: str) -> None:
        """Allow listing these folders and all folders below."""
        self._allow(paths, _READ_DIR)

    def _allow(self, paths: Iterable[str], rights: int) -> None:
        for path in paths:
            try:
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:  # a missing file needs no rule
                continue
            try:
                granted = rights if kernel.is_folder(descriptor) else rights & _FILE_RIGHTS
                rule = struct.pack("=Qi", granted, descriptor)
                kernel.call(_ADD, self._descriptor, _RULE_PATH, rule, 0)
            finally:
                os.close(descriptor)

    def restrict(self) -> None:
        """Restrict this process permanently. Call `kernel.no_new_privileges` first.

        Raises:
            OSError: the kernel refuses.
        """
        try:
            kernel.call(_RESTRICT, self._descriptor, 0)
        finally:
            os.close(self._descriptor)
