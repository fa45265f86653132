"""The end of a worker or of a process that its code forked, like the end of a script."""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import sys
from typing import Any, NoReturn

from .code.source import describe, text_of

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them


def end_session() -> NoReturn:
    """Flush files, run `atexit` functions and exit. The parent kills a worker that takes long."""
    flush_files()
    try:
        atexit._run_exitfuncs()
    finally:
        flush_files()
        os._exit(0)


def end_child(error: BaseException | None, name: str) -> NoReturn:
    """Exit a process that the code forked and that reached the end of the code.

    Args:
        error: the error that ended the code, or None.
        name: file name of the step.
    """
    status = 0
    if error is not None:
        asked = issubclass(type(error), SystemExit)
        code = _CODE.__get__(error) if asked else None
        status = exit_status(error) if asked else 1
        text = ""
        if not asked:
            text = describe(error, name)[3]
        elif code is not None and not issubclass(type(code), int):
            text = f"{text_of(code)}\n"
        try:
            sys.stderr.write(text)
        except (OSError, ValueError, AttributeError):  # the code closed or replaced it
            pass
    flush_files()
    os._exit(status)


def exit_status(error: BaseException) -> int:
    """Return the exit status of a `SystemExit`, as Python computes it at the end of a script."""
    code = _CODE.__get__(error)  # bypasses a property of the code's class
    if code is None:
        return 0
    return int.__and__(code, 0xFF) if issubclass(type(code), int) else 1


def flush_files() -> None:
    """Flush all open files, like the end of a process."""
    for thing in gc.get_objects():
        if type(thing) in _BUFFERED:
            try:
                thing.flush()
            except (OSError, ValueError):
                pass


_CODE: Any = SystemExit.__dict__["code"]
_BUFFERED = frozenset({io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom})
