"""The working directory of a run, and the files of the task in it."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import NotRequired, TypedDict

from ck_pro.events.journal_events import FilesData
from ck_pro.exceptions import InputError
from ck_pro.executor import remove_folder
from ck_pro.files.kinds import kind_by_start, size_text
from ck_pro.journal import Journal
from ck_pro.journal.snapshots import FileSnapshots
from ck_pro.language import fenced, shown_name

LARGE_FILE = 64 << 20
"""Bytes from which a file is linked, read-only, and not copied for each run."""
FILES = "files"
"""Key of `session.info` with the files of the task."""
_MAX_FILES = 50
_MAX_TASK_FILES = 100
_MAX_READ = 2000


class WorkingFolder:
    """The directory of the code and the tools of one run.

    Args:
        path: the folder; a temporary one, which `close` removes, when None.

    Raises:
        InputError: the folder cannot be created.
    """

    def __init__(self, path: Path | str | None):
        self._path = None if path is None else _created(Path(path).resolve())
        self._remove_temporary: Callable[[], object] | None = None
        self._snapshots: FileSnapshots | None = None

    @property
    def path(self) -> Path:
        """The folder; a temporary one is created on first use."""
        if self._path is None:
            created = self._path = Path(tempfile.mkdtemp(prefix="ck-pro-")).resolve()
            # a single step without `run` calls no `close`
            self._remove_temporary = weakref.finalize(self, _remove, created, os.getpid())
        if not self._path.is_dir():  # the code may have removed it
            self._path.mkdir(parents=True, exist_ok=True)
        return self._path

    def store_files(self, journal: Journal, limit: int, resumed: bool) -> FilesData | None:
        """Store the files in a journal; see `FileSnapshots`.

        Args:
            journal: stores the contents.
            limit: bytes to store.
            resumed: whether the journal may have files of this folder already.

        Returns:
            The changes since the last call; None if there are none.
        """
        if self._snapshots is None:
            self._snapshots = FileSnapshots(self.path, journal.put_blob, limit, resumed=resumed)
        return self._snapshots.take()

    def files(self, but: Collection[str] = ()) -> list[str]:
        """Return the relative paths of the files in the folder, sorted; at most 50.

        It reads at most 2,000 entries, to limit the cost of large trees.
        """
        files = (name for name in _files(self.path) if name not in but)
        found = list(itertools.islice(files, _MAX_READ))
        whole = next(files, None) is None
        found.sort()
        extra = len(found) - _MAX_FILES
        if extra <= 0:
            return found
        return [*found[:_MAX_FILES], f"(and {extra}{'' if whole else ' or'} more)"]

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._remove_temporary is not None:
            self._remove_temporary()


def _created(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"workdir {folder}: cannot create this folder: {e.strerror}") from None
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked process
        remove_folder(folder)


class TaskFile(TypedDict):
    """A file of a task, as `session.info` has it."""

    name: str
    kind: str
    size: int
    linked: NotRequired[str]


def by_name(files: Iterable[Path | str]) -> dict[str, Path]:
    """Return files by their names.

    Raises:
        InputError: one is missing, is not a regular file, or has the name of another one.
    """
    found: dict[str, Path] = {}
    for given in files:
        path = Path(given).resolve()
        if not path.is_file():
            raise InputError(f"files: {str(given)!r} does not exist, or is not a file")
        if path.name in found:
            raise InputError(f"files: two files are named {path.name!r}; rename one")
        found[path.name] = path
    return found


def describe_files(files: Mapping[str, Path]) -> list[TaskFile]:
    """Describe the files that a run gets, by their names in its working directory."""
    found = []
    for name, path in files.items():
        size = path.stat().st_size
        made = TaskFile(name=name, kind=kind_by_start(path).name, size=size)
        if size >= LARGE_FILE:
            made["linked"] = str(path)
        found.append(made)
    return found


def place_files(workdir: Path, files: Mapping[str, Path]) -> None:
    """Copy files into a working directory, by their names in it; link large ones.

    Links in the directory, which the code of an earlier run may have made, are not followed.

    Raises:
        InputError: a folder of the directory is a link that leads out of it.
        OSError: a file cannot be copied.
    """
    root = workdir.resolve()
    for name, path in files.items():
        target = root / name
        if not target.parent.resolve().is_relative_to(root):
            raise InputError(f"files: {name!r} leads out of {workdir}; use another workdir")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
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
    lines = [
        f"{shown_name(f['name'])} ({f['kind']}, {size_text(f['size'])})"
        for f in files[:_MAX_TASK_FILES]
    ]
    if len(files) > _MAX_TASK_FILES:
        size = sum(one["size"] for one in files[_MAX_TASK_FILES:])
        lines.append(f"(and {len(files) - _MAX_TASK_FILES} more files, {size_text(size)})")
    return "# Files of the task, in the working directory\n" + fenced("\n".join(lines))


def _files(folder: Path) -> Iterator[str]:
    """Yield the relative paths of the files below a folder; links are not followed."""
    folders = [""]
    while folders:
        inside = folders.pop()
        try:
            with os.scandir(folder / inside) as entries:
                for entry in entries:
                    name = f"{inside}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{name}/")
                    elif entry.is_file():
                        yield name
        except OSError:  # removed meanwhile, or no permission
            continue
