"""The files of a task: placed in the working directory, and listed first in every prompt."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import NotRequired, TypedDict

from ck_pro.exceptions import InputError
from ck_pro.files.kinds import kind_by_start, size_text
from ck_pro.language import fenced, shown_name

LARGE_FILE = 64 << 20
"""Bytes from which a file is linked, read-only, and not copied for each run."""
FILES = "files"
"""Key of `session.info` with the files of the task."""


class TaskFile(TypedDict):
    """A file of a task, as `session.info` has it."""

    name: str
    kind: str
    size: int
    linked: NotRequired[str]


def describe_files(files: Iterable[Path | str]) -> list[TaskFile]:
    """Describe the files that a run gets.

    Raises:
        InputError: one is missing, no regular file, or has the name of another one.
    """
    found: dict[str, TaskFile] = {}
    for given in files:
        path = Path(given).resolve()
        if not path.is_file():
            raise InputError(f"files: {str(given)!r} does not exist, or is no file")
        if path.name in found:
            raise InputError(f"files: two files are named {path.name!r}; rename one")
        size = path.stat().st_size
        made = TaskFile(name=path.name, kind=kind_by_start(path).name, size=size)
        if size >= LARGE_FILE:
            made["linked"] = str(path)
        found[path.name] = made
    return list(found.values())


def place_files(workdir: Path, files: Iterable[Path | str]) -> None:
    """Copy files into a working directory; link large ones.

    Raises:
        OSError: a file cannot be copied.
    """
    for given in files:
        path = Path(given).resolve()
        target = workdir / path.name
        if path.stat().st_size >= LARGE_FILE:
            target.unlink(missing_ok=True)
            target.symlink_to(path)
        elif not (target.exists() and target.samefile(path)):
            shutil.copyfile(path, target)


def given_files(info: Mapping[str, Any]) -> list[TaskFile]:
    """Return the files of the task from `session.info`; they may come from an edited journal."""
    listed = info.get(FILES)
    found = listed if isinstance(listed, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("name"), str)]  # type: ignore[misc]


def linked_paths(files: Sequence[TaskFile]) -> list[str]:
    """Return the paths of linked files that still exist; the code may read them."""
    return [one["linked"] for one in files if one.get("linked") and Path(one["linked"]).is_file()]


def files_text(files: Sequence[TaskFile]) -> str:
    """Return the list of the task's files for prompts; "" without files."""
    if not files:
        return ""
    lines = [f"{shown_name(f['name'])} ({f['kind']}, {size_text(f['size'])})" for f in files]
    return "# Files of the task, in the working directory\n" + fenced("\n".join(lines))
