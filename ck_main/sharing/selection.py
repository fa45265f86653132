"""Choose one run from the inputs of the command."""

from __future__ import annotations

from pathlib import Path

from ck_main.viewer.runs.entries import Entry
from ck_main.viewer.runs.library import Library
from ck_main.viewer.runs.sources import sources_of
from ck_pro.exceptions import InputError

_SHOWN_IDS = 12


def select_run(path: Path, task: str | None, number: str | None) -> tuple[Library, Entry]:
    """Return the run of an output or a folder, with the list that it is in.

    Args:
        path: an output, its folder, or the folder of a task.
        task: id of the task; may be None if there is only one run.
        number: its try, such as "2", or an old attempt, such as "attempt-1"; None for the result.

    Raises:
        InputError: there is no such run, or several.
    """
    library = Library(sources_of([path]))
    library.scan()
    entries = library.entries()
    if not entries:
        raise InputError(f"{path} has no runs")
    found = [entry for entry in entries if task is None or entry.task_id == task]
    ids = list(dict.fromkeys(entry.task_id for entry in entries))
    if not found:
        raise InputError(f"{path} has no task {task!r}; it has {_listed(ids)}")
    if len({entry.task_id for entry in found}) > 1:
        raise InputError(f"{path} has {len(ids)} tasks; choose one by --task: {_listed(ids)}")
    if number is None:
        return library, found[-1]
    tries = library.parts(found[-1])
    for entry in tries:
        if entry.number == number:
            return library, entry
    known = _listed([entry.number for entry in tries])
    raise InputError(f"task {found[-1].task_id!r} has no try {number!r}; it has {known}")


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - _SHOWN_IDS} more" if len(names) > _SHOWN_IDS else ""
    return ", ".join(names[:_SHOWN_IDS]) + more
