"""Read task files: JSON lines, or one JSON list.

Fields of a line; each may also be inside an `info` object:

- the question (required): the first of `question, Question, task, Task, query, Query, instruction,
  Instruction`;
- `file_name`, `files`: the files of the task: a path or a list of paths, of files or folders, in
  the folder of the task file;
- the right answer: the first of `Final answer, answer, true_answer`. `null`, an empty text and `?`
  (the placeholder of test sets without published answers) mean that it is unknown;
- `target_url`: the start page of a web agent;
- `scorer`: how to score the answer, as for `--scorer`;
- `skip`: run the task only if `--ids` names it; 0, false, `null` and an empty text mean no;
- `id` or `task_id`; default: `task0000`, `task0001`, ... by the position in the file.

An invalid line becomes a `LineProblem`; the lines after it are read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ck_main.scoring.scoring import FIELD, check_named, named_in
from ck_main.tasks.task_files import files_of
from ck_main.tasks.task_lines import UnusableItem, read_items
from ck_pro.exceptions import ConfigError

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
# device names of Windows (a run folder may be copied there), names of the files beside the tasks'
# folders, and names of the files inside one
_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?|run\.log(?:\.jsonl)?|status(?:-\d+)?\.json"
    r"|(?:try|attempt)-\d+|work|blobs|lock|events\.jsonl(?:\.zst)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Task:
    """One task of a task file.

    Args:
        id: id from the line, or `task0000` by position.
        question: the question for the agent.
        folder: the id as a safe folder name, unique in the task file.
        answer: the right answer, if known.
        file_name: names of the task's files as in the line, separated by commas, if it has any.
        files: path of each file, by its name in the working folder.
        original: the object of the line, unchanged.
        target_url: start page, if the line names one.
        skip: whether the line marks the task as skipped.
    """

    id: str
    question: str
    folder: str
    answer: str | None = None
    file_name: str | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    original: dict[str, Any] = field(default_factory=dict)
    target_url: str | None = None
    skip: bool = False


@dataclass(frozen=True)
class LineProblem:
    """An invalid line or list item; `str()` gives the place, the fault and the remedy."""

    path: Path
    line: int
    field: str
    text: str

    def __str__(self) -> str:
        at = f", field '{self.field}'" if self.field else ""
        return f"{self.path}, line {self.line}{at}: {self.text}"


def read_tasks(path: Path, files_dir: Path | None = None) -> Iterator[Task | LineProblem]:
    """Yield the tasks of a file in order. Only a JSON list is loaded as a whole.

    Args:
        path: task file, UTF-8, JSON lines or one JSON list.
        files_dir: folder that contains the files of the tasks; default: the folder of the task
            file.

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
            task = parse_task(content, index, root, folders, path.resolve())
            if task.id in seen:
                text = f"{task.id!r} is already the id of line {seen[task.id]}; change it"
                raise UnusableItem(_first(task.original, ID_NAMES)[0], text)
        except UnusableItem as e:
            for problem in (e, *e.others):
                yield LineProblem(path, line, problem.field, problem.text)
            continue
        seen[task.id] = line
        folders.add(task.folder.casefold())
        yield task


def parse_task(
    item: Any, index: int, root: Path, taken: set[str], task_file: Path | None = None
) -> Task:
    """Convert a decoded item to a `Task`.

    Args:
        item: the item.
        index: position in the file from 0, without blank lines.
        root: resolved folder that must contain the task's files.
        taken: folder names of other tasks, in lower case.
        task_file: resolved path of the task file, which no task may name.

    Raises:
        UnusableItem: the item is invalid; the error names the field and the remedy.
    """
    if not isinstance(item, dict):
        raise UnusableItem("", f'is {_kind(item)}, not an object; write {{"question": ...}}')
    task_id = _task_id(item, index)
    names, files = files_of(item, root, task_file)
    _check_scorer(item)
    return Task(
        id=task_id,
        question=_question(item),
        folder=safe_name(task_id, taken),
        answer=_answer(item),
        file_name=", ".join(names) or None,
        files=files,
        original=item,
        target_url=_target_url(item),
        skip=str(_first(item, ("skip",))[1] or "").strip().casefold() not in _NOT_SKIPPED,
    )


def safe_name(task_id: str, taken: set[str] | None = None) -> str:
    """Return a folder name for a task id: letters, digits, `.`, `_`, `-`; at most 80 characters.

    If the id had to change, or its name is taken (ignoring case), the name ends with a part of the
    id's hash. So two ids never share a folder.
    """
    safe = _UNSAFE.sub("_", task_id).lstrip(".-")[:80].rstrip(".")
    free = safe.casefold() not in (taken or ())
    if safe == task_id and free and not _RESERVED.fullmatch(safe):
        return safe
    return f"{safe[:70]}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}".lstrip("-")


def _first(item: dict[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """Return the first of `names` with a value, from the line or its `info`, and the value."""
    info = item.get("info")
    for place in (item, info if isinstance(info, dict) else {}):
        for name in names:
            if place.get(name) is not None:
                return name, place[name]
    return names[0], None


def _question(item: dict[str, Any]) -> str:
    name, value = _first(item, QUESTION_NAMES)
    if value is None:
        raise UnusableItem(name, "is missing; use one of " + ", ".join(QUESTION_NAMES))
    if not isinstance(value, str):
        raise UnusableItem(name, f"is {_kind(value)}; the question must be text")
    if not value.strip():
        raise UnusableItem(name, "is empty; write the question")
    return value


def _check_scorer(item: dict[str, Any]) -> None:
    if name := named_in(item):
        try:
            check_named(name)
        except ConfigError as e:
            raise UnusableItem(FIELD, f"{e}; or remove the field") from None


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
        raise UnusableItem(name, f"is {_kind(value)}; an id must be text or a whole number")
    text = str(value).strip()
    if not text:
        raise UnusableItem(name, "is empty; write an id, or remove the field")
    if len(text) > MAX_ID_CHARS:
        raise UnusableItem(name, f"has {len(text)} characters; the maximum is {MAX_ID_CHARS}")
    return text


def _target_url(item: dict[str, Any]) -> str | None:
    name, value = _first(item, ("target_url",))
    if value is not None and not isinstance(value, str):
        raise UnusableItem(name, f"is {_kind(value)}; it must be the URL of a page")
    return (value or "").strip() or None


def _scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true/false"}
    return "null" if value is None else names.get(type(value), "a number")
