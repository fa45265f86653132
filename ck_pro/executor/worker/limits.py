"""Resource limits of a worker."""

from __future__ import annotations

import math
import os
import resource

MAX_FILES = 512
MAX_TASKS = 256
MAX_FILE_BYTES = 1 << 30
_CPU_SLACK = 2


def grant_cpu(timeout: float | None) -> None:
    """Let this process use the processor for one more step.

    The parent's clock is the limit; this one ends a worker whose code runs on during a long call.
    """
    if timeout is None:
        soft = resource.RLIM_INFINITY
    else:
        used = resource.getrusage(resource.RUSAGE_SELF)
        cores = os.cpu_count() or 1
        soft = math.ceil(used.ru_utime + used.ru_stime + timeout * cores) + _CPU_SLACK
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
