"""The files of a task: where they are, and their names in the working folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ck_main.tasks.task_lines import UnusableItem

FILE_NAMES = ("file_name", "files")
MAX_FILES = 1000
_MAX_NAME = 200


def files_of(
    item: Mapping[str, Any], root: Path, task_file: Path | None = None
) -> tuple[list[str], dict[str, Path]]:
    """Return the files that a task names: as in its line, and the paths by their names for the run.

    Args:
        item: the object of the line; each field is a path, or a list of paths, of files or folders.
        root: resolved folder that must contain them.
        task_file: resolved path of the task file, which has the right answers.

    Raises:
        UnusableItem: a file is missing, unreadable, or outside of `root`; `others` has the
            problems of further files.
    """
    given = [(field, name) for field in FILE_NAMES for name in _named(item, field)]
    found: dict[Path, str] = {}
    problems: list[UnusableItem] = []
    for field, name in given:
        try:
            for relative, path in _found(field, name, root):
                if path == task_file:
                    text = f"{name!r} contains the task file with the answers; move it elsewhere"
                    raise UnusableItem(field, text)
                found.setdefault(path, relative)
                if len(found) > MAX_FILES:
                    raise UnusableItem(field, f"names more than {MAX_FILES:,} files; zip them")
        except UnusableItem as problem:
            problems.append(problem)
    if problems:
        problems[0].others = problems[1:]
        raise problems[0]
    return [name for _, name in given], placed_names(found)


def placed_names(found: Mapping[Path, str]) -> dict[str, Path]:
    """Return the name of each file in the working folder.

    A file gets its own name, and a file of a folder its path in it. If two names are equal or one
    would be a folder of another, all files get their paths below the folder of the task file.

    Args:
        found: path and name of each file: "a.csv", or "data//x/b.csv" for a file of `data`.
    """
    short = [_safe(_in_folder(name)) for name in found.values()]
    names = short if _fit(short) else [_safe(name.replace("//", "/")) for name in found.values()]
    made: dict[str, Path] = {}
    taken: set[str] = set()
    for name, path in zip(names, found, strict=True):
        made[_free(name, taken)] = path
    return made


def _named(item: Mapping[str, Any], field: str) -> list[str]:
    """Return the paths in a field of the line or of its `info`."""
    info = item.get("info")
    places = (item, info if isinstance(info, dict) else {})
    value = next((place[field] for place in places if place.get(field) is not None), None)
    names = value if isinstance(value, list) else [] if value in (None, "") else [value]
    for name in names:
        if not isinstance(name, str) or not name:
            what = "an empty name" if name == "" else "a value that is not text"
            raise UnusableItem(field, f"has {what}; it must be a file name, or a list of them")
    return names


def _found(field: str, name: str, root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the file of a name, or the files of a folder without hidden ones."""
    path = _inside(field, name, root)
    shown = os.path.normpath(os.path.relpath(root / name, root))
    if not path.is_dir():
        yield _checked(field, shown, path)
        return
    empty = True
    for where, folders, names in os.walk(path):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for one in sorted(names):
            if not one.startswith("."):
                empty = False
                inner = (Path(where) / one).relative_to(path).as_posix()
                yield _checked(field, f"{shown}//{inner}", _inside(field, f"{name}/{inner}", root))
    if empty:
        raise UnusableItem(field, f"the folder {path} has no files; add files, or remove it")


def _inside(field: str, name: str, root: Path) -> Path:
    try:
        path = (root / name).resolve()
        path.exists()
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, a loop of links
        raise UnusableItem(field, f"{name[:80]!r} is not a file name") from None
    if not path.is_relative_to(root):
        remedy = "move the file there, or use --files-dir"
        raise UnusableItem(field, f"{name!r} is outside of {root}; {remedy}")
    return path


def _checked(field: str, relative: str, path: Path) -> tuple[str, Path]:
    if not path.exists():
        raise UnusableItem(field, f"the file {path} does not exist; create it, or use --files-dir")
    if not path.is_file():
        raise UnusableItem(field, f"{path} is not a regular file; remove it")
    if not os.access(path, os.R_OK):
        raise UnusableItem(field, f"{path} is not readable; change its permissions")
    return relative, path


# --- names in the working folder ---


def _in_folder(name: str) -> str:
    """Return the name without the folders above the named file or folder."""
    folder, _, inner = name.partition("//")
    return "/".join(filter(None, (PurePosixPath(folder).name, inner)))


def _safe(name: str) -> str:
    """Return a path whose names are printable and not too long."""
    parts = ("".join(c if c.isprintable() else "_" for c in part) for part in name.split("/"))
    return "/".join(_short(part) for part in parts if part not in (".", ".."))


def _short(part: str) -> str:
    while len(part.encode()) > _MAX_NAME:
        suffix = PurePosixPath(part).suffix
        part = part[: (len(part) - len(suffix)) // 2] + suffix[-20:]
    return part


def _fit(names: Sequence[str]) -> bool:
    """Whether the names can stand in one folder, on all systems."""
    folded = {name.casefold() for name in names}
    parents = {str(one) for name in folded for one in PurePosixPath(name).parents}
    return len(folded) == len(names) and not folded & parents


def _free(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken; add it to the taken names."""
    suffix = PurePosixPath(name).suffix
    number, made = 1, name
    while made.casefold() in taken:
        number += 1
        made = f"{name.removesuffix(suffix)}-{number}{suffix}"
    taken.add(made.casefold())
    return made
