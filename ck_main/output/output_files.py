"""The files of an output: where they are, and what is to be done when they cannot be written."""

from __future__ import annotations

import errno
from pathlib import Path

from ck_pro.exceptions import OutputError


def folder_of(output: Path) -> Path:
    """Where the folders of an output's tasks are: beside it, its name without the ending."""
    stem = output.with_suffix("")
    return stem if stem != output else output.with_name(output.name + ".d")


def check_output(path: Path) -> None:
    """Find out whether a file can be an output, as far as is known without opening it.

    Raises:
        OutputError: it cannot; the message says why, and what to do.
    """
    if str(path) == "-":
        raise OutputError("--output -: rows go into a file, with folders beside it; name one")
    blocked = next((p for p in path.parents if p.exists() and not p.is_dir()), None)
    if blocked is not None:
        raise OutputError(f"--output {path}: {blocked} is a file, not a folder; name another")
    if path.exists() and not path.is_file():
        raise OutputError(f"--output {path} is not a regular file; name another")
    folder = folder_of(path)
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            f"--output {path}: the tasks' files go into the folder {folder}, but a file of that "
            "name is there; move it, or name another --output"
        )


def superseded_path(output: Path) -> Path:
    """Where rows go whose tasks are run again."""
    return output.with_name(f"{output.stem}.superseded{output.suffix}")


def what_to_do(error: OSError) -> str:
    """What a person can do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "make room, the same command continues"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n) or fewer --workers, the same command continues"
    return "correct that (the same command continues), or name another --output"


def tries_path(output: Path) -> Path:
    """Where the rows of tries that were not chosen go."""
    return output.with_name(f"{output.stem}.tries{output.suffix}")
