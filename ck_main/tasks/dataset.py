"""Task files: JSON lines (or one JSON list) in, `Task` or `LineProblem` out, one at a time.

What a line may hold (all of it also inside an `info` object):

- the question: the first of `question, Question, task, Task, query, Query, instruction,
  Instruction`; the only field that must be there;
- `file_name`: a file that belongs to the task, beside the task file;
- the right answer: the first of `Final answer, answer, true_answer`; `null`, an empty text and `?`
  (the placeholder of test sets whose answers are withheld) mean that it is not known;
- `target_url`: the page that a web agent begins with;
- `skip`: the task is not run, unless `--ids` names it; 0, false, `null` and an empty text mean no;
- `id` or `task_id`; without one the task is `task0000`, `task0001`, ... by its place in the file.

A line that cannot be used becomes a `LineProblem`; the lines after it are read all the same.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.tasks.task_lines import MAX_LINE_BYTES, UnusableItem, read_items

__all__ = ["MAX_LINE_BYTES", "LineProblem", "Task", "parse_task", "read_tasks", "safe_name"]
QUESTION_NAMES = (
    "question",
    "Question",
    "task",
    "Task",
    "query",
    "Query",
    "instruction",
    "Instruction",
)
ANSWER_NAMES = ("Final answer", "answer", "true_answer")
ID_NAMES = ("id", "task_id")
MAX_ID_CHARS = 200
_NOT_SKIPPED = ("", "0", "0.0", "false", "no")

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
# names that Windows keeps for devices (a run folder may be copied there), those of files that stand
# beside the folders of the tasks, and those by which readers know what is inside one
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|run\.log(?:\.jsonl)?|status(?:-\d+)?\.json"
    r"|(?:try|attempt)-\d+|work|blobs|lock|events\.jsonl(?:\.zst)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Task:
    """One task of a task file.

    Args:
        id: as the line gives it, or `task0000` by its place.
        question: what the agent is asked.
        folder: the id made safe as the name of a file, unique in the task file.
        answer: the right answer as text; None if not known.
        file_name: the name of the task's file as the line gives it; None without a file.
        file: where that file is.
        original: the line's object, unchanged.
        target_url: the page to begin with; None if the line names none.
        skip: the line says that the task is not to be run.
    """

    id: str
    question: str
    folder: str
    answer: str | None = None
    file_name: str | None = None
    file: Path | None = None
    original: dict[str, Any] = field(default_factory=dict)
    target_url: str | None = None
    skip: bool = False


@dataclass(frozen=True)
class LineProblem:
    """A line (or list item) that cannot be used; `str()` is one line: where, what, what to do."""

    path: Path
    line: int
    field: str
    text: str

    def __str__(self) -> str:
        at = f", field '{self.field}'" if self.field else ""
        return f"{self.path}, line {self.line}{at}: {self.text}"


def read_tasks(path: Path, files_dir: Path | None = None) -> Iterator[Task | LineProblem]:
    """The tasks of a file in order, one line held at a time (a JSON list is held whole).

    Args:
        path: the task file, UTF-8, JSON lines or one JSON list.
        files_dir: the folder that `file_name` is relative to and may not leave; by default the
            folder of the task file.

    Raises:
        TaskFileError: the file cannot be opened or read.
    """
    root = (files_dir if files_dir is not None else path.parent).resolve()
    seen: dict[str, int] = {}
    folders: set[str] = set()
    for index, (line, content) in enumerate(read_items(path)):
        try:
            if isinstance(content, UnusableItem):
                raise content
            task = parse_task(content, index, root, folders)
            if task.id in seen:
                at = f"{task.id!r} is already the id of line {seen[task.id]}; give it another"
                raise UnusableItem(_first(task.original, ID_NAMES)[0], at)
        except UnusableItem as e:
            yield LineProblem(path, line, e.field, e.text)
            continue
        seen[task.id] = line
        folders.add(task.folder.casefold())
        yield task


def parse_task(item: Any, index: int, root: Path, taken: set[str]) -> Task:
    """One decoded item as a `Task`; raises `UnusableItem` with the field and what to do.

    Args:
        item: what the line holds.
        index: its place in the file from 0, blank lines not counted.
        root: the resolved folder that the task's file must be in.
        taken: folder names that other tasks have, in lower case.
    """
    if not isinstance(item, dict):
        raise UnusableItem("", f'is {_kind(item)}, not an object; write {{"question": ...}}')
    task_id = _task_id(item, index)
    file_name, file = _file(item, root)
    return Task(
        id=task_id,
        question=_question(item),
        folder=safe_name(task_id, taken),
        answer=_answer(item),
        file_name=file_name,
        file=file,
        original=item,
        target_url=_target_url(item),
        skip=str(_first(item, ("skip",))[1] or "").strip().casefold() not in _NOT_SKIPPED,
    )


def safe_name(task_id: str, taken: set[str] | None = None) -> str:
    """`task_id` as the name of a folder: letters, digits, `.`, `_`, `-`; at most 80 characters.

    An id that had to be changed (or whose name another task has, small and capital letters being
    one) gets a part of its hash, so that two ids never share a folder.
    """
    safe = _UNSAFE.sub("_", task_id).lstrip(".-")[:80].rstrip(".")
    free = safe.casefold() not in (taken or ())
    if safe == task_id and free and not _RESERVED.fullmatch(safe):
        return safe
    return f"{safe[:70]}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}".lstrip("-")


def _first(item: dict[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """The first of `names` that has a value, in the line itself, then in its `info`."""
    info = item.get("info")
    for place in (item, info if isinstance(info, dict) else {}):
        for name in names:
            if place.get(name) is not None:
                return name, place[name]
    return names[0], None


def _question(item: dict[str, Any]) -> str:
    name, value = _first(item, QUESTION_NAMES)
    if value is None:
        raise UnusableItem(name, "is missing; give it as one of " + ", ".join(QUESTION_NAMES))
    if not isinstance(value, str):
        raise UnusableItem(name, f"is {_kind(value)}; the question must be text")
    if not value.strip():
        raise UnusableItem(name, "is empty; write the question")
    return value


def _answer(item: dict[str, Any]) -> str | None:
    name, value = _first(item, ANSWER_NAMES)
    if value is None:
        return None
    if isinstance(value, list) and all(_scalar(v) for v in value):
        value = ", ".join(str(v) for v in value)
    if not _scalar(value):
        raise UnusableItem(name, f"is {_kind(value)}; the answer must be text or a number")
    text = str(value)
    return None if text.strip() in ("", "?") else text


def _task_id(item: dict[str, Any], index: int) -> str:
    name, value = _first(item, ID_NAMES)
    if value is None:
        return f"task{index:04d}"
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UnusableItem(name, f"is {_kind(value)}; an id is text or a whole number")
    text = str(value).strip()
    if not text:
        raise UnusableItem(name, "is empty; give an id or leave the field out")
    if len(text) > MAX_ID_CHARS:
        raise UnusableItem(name, f"has {len(text)} characters; at most {MAX_ID_CHARS} are allowed")
    return text


def _target_url(item: dict[str, Any]) -> str | None:
    name, value = _first(item, ("target_url",))
    if value is not None and not isinstance(value, str):
        raise UnusableItem(name, f"is {_kind(value)}; it must be the address of a page")
    return (value or "").strip() or None


def _file(item: dict[str, Any], root: Path) -> tuple[str | None, Path | None]:
    _, name = _first(item, ("file_name",))
    if name is None or name == "":
        return None, None
    if not isinstance(name, str):
        raise UnusableItem("file_name", f"is {_kind(name)}; it must be the name of a file")
    try:
        file = (root / name).resolve()
        inside, present = file.is_relative_to(root), file.is_file()
    except (OSError, ValueError, RuntimeError):  # too long, a zero byte, a loop of links
        raise UnusableItem("file_name", f"{name[:80]!r} is not the name of a file") from None
    if not inside:
        raise UnusableItem(
            "file_name", f"{name!r} leads out of {root}; put the file there or give --files-dir"
        )
    if not present:
        raise UnusableItem(
            "file_name", f"there is no file {file}; put it there or give --files-dir"
        )
    if not os.access(file, os.R_OK):
        raise UnusableItem("file_name", f"{file} may not be read; correct its permissions")
    return name, file


def _scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true/false"}
    return "null" if value is None else names.get(type(value), "a number")
