"""The inputs of the viewer: outputs with their folders, and folders of journals."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ck_main.output.output_files import folder_of
from ck_main.tasks.dataset import safe_name
from ck_pro.journal import is_journal
from ck_pro.trajectory.labels import without_label_files
from ck_pro.trajectory.reading.sources import check_inputs

ROWS_SUFFIX = ".jsonl"
_PART = re.compile(r"(try|attempt)-(\d+)")


@dataclass(frozen=True)
class Source:
    """One input: the rows of an output, the folder of its tasks, or both.

    Args:
        name: as the user gave it; labels the runs.
        path: absolute path that stands for it in keys: of the rows, even if they do not exist yet,
            or of a task's folder.
        rows: the file of rows; None for a folder that is not the folder of an output.
        folder: the folder of the tasks; None if there is none yet.
    """

    name: str
    path: Path
    rows: Path | None
    folder: Path | None

    @property
    def kind(self) -> str:
        """ "rows" or "journals"."""
        return "rows" if self.rows is not None and self.rows.exists() else "journals"


@dataclass(frozen=True)
class TaskPart:
    """A journal in the folder of a task: the task's own, a try's, or that of an old attempt."""

    name: str
    folder: Path


def sources_of(paths: Sequence[Path]) -> list[Source]:
    """Return the sources of the command line; an output and its folder are one source.

    Raises:
        InputError: a path does not exist or cannot be read, is binary, or has no journal.
    """
    found: dict[Path, Source] = {}
    for given in without_label_files(paths):
        source = _source(given)
        found.setdefault(source.path, source)
    return list(found.values())


def _source(given: Path) -> Source:
    path = Path(os.path.abspath(given))  # noqa: PTH100 - keys keep the path of a symbolic link
    if path.is_dir():
        rows = path.with_name(path.name + ROWS_SUFFIX)
        if rows.is_file() or not (is_journal(path) or (path / "status.json").exists()):
            if not rows.is_file():
                check_inputs([given])
            return Source(str(given), rows, rows, path)
        if is_journal(path):
            return Source(str(given), path, None, path)
        return Source(str(given), rows, rows, path)  # a command that has just started
    if not path.exists() and folder_of(path).is_dir():
        return Source(str(given), path, path, folder_of(path))
    check_inputs([given])
    return Source(str(given), path, path, folder_of(path))


def key_of(path: Path, task_id: str, number: str) -> str:
    """Return the key of a run, 12 hexadecimal digits.

    Args:
        path: of the source.
        task_id: id of its task.
        number: "1", "2", ... for tries, "attempt-1", ... for attempts that were restarted.
    """
    text = f"{path}\n{task_id}\n{number}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def folder_names(task_id: str) -> list[str]:
    """Return the names that the folder of a task may have."""
    try:
        return list(dict.fromkeys((safe_name(task_id), safe_name(task_id, _Everything()))))
    except UnicodeEncodeError:  # half of a surrogate pair: the runner runs no such task
        return []


class _Everything(set[str]):
    """A set that contains every name."""

    def __contains__(self, name: object) -> bool:
        return True


def task_folders(folder: Path) -> Iterator[Path]:
    """Yield the task folders of a source in the order of their names; none if it is missing."""
    try:
        with os.scandir(folder) as found:
            names = [e.name for e in found if not e.name.startswith(".") and e.is_dir()]
    except OSError:
        return
    for name in sorted(names, key=natural):
        yield folder / name


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts `task2` before `task10`."""
    return [(0, int(t), "") if t.isdecimal() else (1, 0, t) for t in re.split(r"(\d+)", name)]


def parts_of(folder: Path) -> list[TaskPart]:
    """Return the journals of a task: its own and its tries, then old attempts."""
    found = [TaskPart("1", folder)] if is_journal(folder) else []
    tries, attempts = list[tuple[int, TaskPart]](), list[tuple[int, TaskPart]]()
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names only
    except OSError:
        return found
    for name in names:
        part = _PART.fullmatch(name)
        if part is not None and is_journal(folder / name):
            number = int(part[2])
            one = TaskPart(str(number) if part[1] == "try" else name, folder / name)
            (tries if part[1] == "try" else attempts).append((number, one))
    ordered = [part for _, part in sorted(tries, key=lambda t: t[0])]
    return [*found, *ordered, *(part for _, part in sorted(attempts, key=lambda t: t[0]))]
