"""How a process of the code ends: as a script does."""

from __future__ import annotations

import atexit
import builtins
import gc
import io
import os
import sys
from typing import Any, NoReturn

from .source import describe, text_of

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
    status = 0
    if error is not None:
        asked = issubclass(type(error), SystemExit)
        code = _CODE.__get__(error) if asked else None
        status = exit_status(error) if asked else 1
        told = ""
        if not asked:
            told = describe(error, name)[3]
        elif code is not None and not issubclass(type(code), int):
            told = f"{text_of(code)}\n"
        try:
            sys.stderr.write(told)
        except (OSError, ValueError, AttributeError):  # the code closed or replaced it
            pass
    flush_files()
    os._exit(status)


def exit_status(error: BaseException) -> int:
    """Give the status that a `SystemExit` asks for, as the end of a script would read it."""
    code = _CODE.__get__(error)  # past properties and comparisons of the code's own
    if code is None:
        return 0
    return int.__and__(code, 0xFF) if issubclass(type(code), int) else 1


def flush_files() -> None:
    """Write out what open files hold back, as the end of a process does."""
    for thing in gc.get_objects():
        if type(thing) in _BUFFERED:
            try:
                thing.flush()
            except (OSError, ValueError):
                pass


_CODE: Any = SystemExit.__dict__["code"]
_BUFFERED = frozenset({io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom})
