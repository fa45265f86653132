"""Settings of the whole process, made by the entry point before anything else."""

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
    """Have the C library give back what was freed.

    By default glibc makes an arena for each of several threads, and none of them shrinks: with the
    many threads of a WSGI server, each of which holds a page or a picture now and then, most of
    what the process has is free memory after a while. Here all threads share two arenas, and what
    is large is mapped by itself, and unmapped when it is freed. Other C libraries are left alone.
    The numbers are those of glibc's malloc.h.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_ARENA_MAX, 2)
    mallopt(_M_MMAP_THRESHOLD, _LARGE)


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system lets us: each connection is one.

    Where that is not far, the log says so: of a Chromium that has too few, nobody learns why it
    does not start, or dies later.
    """
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        told = "only %d files may be open at once (ulimit -n): Chromium may fail for want of them"
        log.warning(told, soft)
