"""Settings of the whole process, which the entry point applies first."""

from __future__ import annotations

import ctypes
import logging
from contextlib import suppress

log = logging.getLogger("web_server")

_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_LARGE = 256 * 1024
_FEW_FILES = 1024


def keep_memory_together() -> None:
    """Make glibc return freed memory to the system.

    By default glibc creates an arena for each of several threads, and arenas rarely shrink. In a
    WSGI server with many threads and large responses, most memory of the process would be free.
    Here all threads share two arenas, and large blocks are mapped separately, so that freeing
    unmaps them. Other C libraries are not changed. The numbers are from glibc's malloc.h.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_ARENA_MAX, 2)
    mallopt(_M_MMAP_THRESHOLD, _LARGE)


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system allows, and log a low limit.

    Each connection is an open file. Chromium does not report a lack of them when it fails.
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            soft = limit
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        log.warning("the limit of open files is %d (ulimit -n): Chromium may fail", soft)
