"""How a process of the code ends: as a script does."""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import sys
from typing import NoReturn

from .source import describe

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them


def end_session() -> NoReturn:
    """End the worker as a script ends. What takes its time is killed."""
    flush_files()
    try:
        atexit._run_exitfuncs()
    finally:
        flush_files()
        os._exit(0)


def end_child(error: BaseException | None, name: str) -> NoReturn:
    """End a process that the code forked and that came to the end of the code.

    Args:
        error: what ended it; None: nothing did.
        name: file name of the step.
    """
    status = 0 if error is None else 1
    if isinstance(error, SystemExit) and isinstance(error.code, int | None):
        status = (error.code or 0) & 0xFF
    elif error is not None:
        told = f"{error.code}\n" if isinstance(error, SystemExit) else describe(error, name)[3]
        try:
            sys.stderr.write(told)
        except (OSError, ValueError, AttributeError):  # the code closed or replaced it
            pass
    flush_files()
    os._exit(status)


def flush_files() -> None:
    """Write out what open files hold back, as the end of a process does."""
    for thing in gc.get_objects():
        if type(thing) in _BUFFERED:
            try:
                thing.flush()
            except (OSError, ValueError):
                pass


_BUFFERED = frozenset({io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom})
