"""The paths of an output, and the errors of files that cannot be written."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from ck_pro.exceptions import JournalError, OutputError

_TEST_BYTES = 4096
_ADVICE = {
    errno.ENOSPC: "free disk space",
    errno.EDQUOT: "free disk space, or raise the disk quota",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EMFILE: "allow more open files (ulimit -n), or use fewer --workers",
    errno.ENFILE: "close other programs, which use all open files of this machine",
    errno.EROFS: "make the file system writable",
}


def folder_of(output: Path) -> Path:
    """Return the folder for the tasks of an output: its path without the suffix."""
    stem = output.with_suffix("")
    return stem if stem != output else output.with_name(output.name + ".d")


def superseded_path(output: Path) -> Path:
    """Return the file for rows whose tasks `--rerun` runs again."""
    return output.with_name(f"{output.stem}.superseded{output.suffix}")


def tries_path(output: Path) -> Path:
    """Return the file for the rows of tries that were not chosen."""
    return output.with_name(f"{output.stem}.tries{output.suffix}")


def check_output(path: Path) -> None:
    """Check whether a file can be an output, without opening it.

    Raises:
        OutputError: it cannot; the message gives the reason and the remedy.
    """
    if str(path) == "-":
        raise OutputError("--output -: rows need a file, with a folder beside it; name one")
    blocked = next((p for p in path.parents if p.exists() and not p.is_dir()), None)
    if blocked is not None:
        raise OutputError(f"--output {path}: {blocked} is a file, not a folder; name another")
    if path.exists() and not path.is_file():
        raise OutputError(f"--output {path} is not a regular file; name another")
    folder = folder_of(path)
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            f"--output {path}: the tasks need the folder {folder}, but a file has that name; "
            "move it, or name another --output"
        )


def check_writable(folder: Path) -> None:
    """Write a temporary file to a folder and to the system's folder for temporary files.

    Raises:
        OSError: a folder cannot be written, for example because the disk is full.
    """
    for place in (str(folder), tempfile.gettempdir()):
        try:
            with tempfile.TemporaryFile(dir=place, buffering=0) as file:
                file.write(bytes(_TEST_BYTES))
                os.fsync(file.fileno())
        except OSError as e:
            raise OSError(e.errno, e.strerror, place) from None


def write_failure(error: OSError | JournalError) -> OutputError:
    """Return the error that ends a run because a file of a task cannot be written.

    Args:
        error: the error of the system or of a journal.

    Returns:
        An error whose message names the file, the reason and the remedy.
    """
    if isinstance(error, JournalError):
        text = str(error)
    else:
        text = f"cannot write {error.filename or 'the files of a task'}: {error.strerror or error}"
    return OutputError(f"{text}; {write_advice(error)}")


def write_advice(error: BaseException) -> str:
    """Return what the user can do about a file that cannot be written."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    number = cause.errno if isinstance(cause, OSError) else None
    remedy = _ADVICE.get(number or 0, "fix this")
    return f"{remedy}, then repeat the command"
