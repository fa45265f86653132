"""`--rerun`: tasks that have a row already are run again; their old rows are kept elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from ck_main.output.row_file import Outcome, RowFile, superseded_path
from ck_main.runner.task_folder import claimed, own_files, set_aside, tries_in
from ck_main.tasks.dataset import Task

Rerun = Literal["failed", "wrong", "all"]


def supersede(rows: RowFile, tasks: Iterable[Task], kinds: Collection[Rerun]) -> list[str]:
    """Take the rows of tasks that are to be run again out of the output.

    A rerun that was stopped is gone on with: as long as a task has no row whose earlier row was
    taken out, no others are.

    Args:
        rows: the output.
        tasks: those that may be meant.
        kinds: which rows.

    Returns:
        Lines for a person.

    Raises:
        OutputError: the rows could not be moved; they are where they were.
    """
    to = superseded_path(rows.path)
    selected = list(tasks)
    if to.exists():
        with RowFile(to) as earlier:
            known = set(earlier.done)
        pending = [t.id for t in selected if t.id in known and t.id not in rows.done]
        if pending:
            return [
                f"{len(pending)} tasks of an earlier --rerun have no row yet; it is gone on with, "
                "and no other task is run again"
            ]
    ids = set()
    for task in selected:
        outcome = rows.done.get(task.id)
        if outcome is None or not any(_is_meant(outcome, kind) for kind in kinds):
            continue
        folder = rows.folder / task.folder
        with claimed(folder) as ours:
            if ours:  # else another runner is just writing its row
                set_aside(folder, [*own_files(folder), *tries_in(folder)])
                ids.add(task.id)
    number = rows.take_out(ids, to)
    return [f"{number} rows moved to {to}; their tasks are run again"]


def _is_meant(outcome: Outcome, kind: Rerun) -> bool:
    if kind == "all":
        return True
    return not outcome.is_done if kind == "failed" else outcome.corr == 0
