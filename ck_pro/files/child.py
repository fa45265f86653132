"""Runs one reading in a child process: a crash, a loop or too much memory costs one error line."""

from __future__ import annotations

import os
import pickle
import resource
import select
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from .limits import CALL_MEMORY, CALL_SECONDS, MAX_RESULT
from .problem import ToolError

_T = TypeVar("_T")
_CHUNK = 1 << 20
_MAX_REMEMBERED = 4
_remembered: dict[object, Any] = {}
"""Values of earlier calls, which the next child inherits."""


def remembered(key: object, make: Callable[[], _T]) -> _T:
    """Return a value that an earlier call of this process made, or make it.

    Args:
        key: of the value; it must change with the file.
        make: makes the value.
    """
    if key not in _remembered:
        _remembered[key] = make()
    made: _T = _remembered[key]
    return made


def in_child(read: Callable[[], _T], seconds: float = CALL_SECONDS) -> _T:
    """Run a function in a fork of this process, and return its value.

    Args:
        read: the function.
        seconds: time limit.

    Its temporary files are removed. The child has no more rights than this process, so its pickled
    result is as trusted as the code.

    Raises:
        ToolError: of the function; or the child took too long, crashed or ran out of memory; or the
            function raised another error, which means that the file is damaged.
    """
    source, sink = os.pipe()
    folder = tempfile.mkdtemp(prefix="reading-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads
        child = os.fork()
    if child == 0:
        os.close(source)
        os.setpgid(0, 0)
        tempfile.tempdir = folder
        _serve(read, sink)
    os.close(sink)
    try:
        data, in_time = _receive(source, seconds)
    finally:
        os.close(source)
        for kill in (os.kill, os.killpg):  # the programs that it started, too
            try:
                kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        _, status = os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)
    if not in_time:
        raise ToolError(f"stopped after {seconds:g} s; read a smaller part")
    if not data:
        reason = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "no result"
        raise ToolError(f"the file is damaged: its reader crashed ({reason})")
    value, error, found = pickle.loads(data)
    _remembered.update(found)
    while len(_remembered) > _MAX_REMEMBERED:
        del _remembered[next(iter(_remembered))]
    if error is not None:
        raise ToolError(error)
    made: _T = value
    return made


def _serve(read: Callable[[], Any], sink: int) -> None:
    """Run the function, write its pickled result and end the process."""
    answer: tuple[Any, str | None]
    limits, before = resource.getrlimit(resource.RLIMIT_AS), set(_remembered)
    try:
        _silence()
        _limit_memory()
        answer = read(), None
    except ToolError as error:
        answer = None, " ".join(str(error).split())
    except MemoryError:
        answer = None, f"it needs more than {CALL_MEMORY >> 20} MB of memory"
    except RecursionError:
        answer = None, "the file is damaged: it is nested too deeply"
    except OSError as error:
        answer = None, error.strerror or _damaged(error)
    except BaseException as error:  # noqa: BLE001 - libraries raise anything on damaged files
        answer = None, _damaged(error)
    try:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        new = {key: value for key, value in _remembered.items() if key not in before}
        data = pickle.dumps((*answer, new))
        if len(data) > MAX_RESULT:
            data = pickle.dumps((None, f"the result has more than {MAX_RESULT >> 20} MB", {}))
        with open(sink, "wb") as file:
            file.write(data)
    finally:
        os._exit(0)


def _damaged(error: BaseException) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return f"the file is damaged, or of an unknown variant ({text[:300]})"


def _silence() -> None:
    """Drop what libraries print; the output of the code is for the code."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _limit_memory() -> None:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (2 * int(CALL_SECONDS), most))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = used + CALL_MEMORY
    if soft == resource.RLIM_INFINITY or wanted < soft:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _receive(source: int, seconds: float) -> tuple[bytes, bool]:
    """Return all that the child writes, and whether it ended in time."""
    end = time.monotonic() + seconds
    pieces: list[bytes] = []
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return b"", False
        piece = os.read(source, _CHUNK)
        if not piece:
            return b"".join(pieces), True
        pieces.append(piece)
