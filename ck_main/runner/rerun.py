"""`--rerun`: run tasks again that already have a row; keep the old rows in another file."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from ck_main.output.output_files import superseded_path, write_failure
from ck_main.output.row import Outcome, verdict_of
from ck_main.output.row_file import RowFile
from ck_main.runner.task_folder import attempt_files, claimed, set_aside, tries_in
from ck_main.tasks.dataset import Task

Rerun = Literal["failed", "wrong", "all"]


def supersede(rows: RowFile, tasks: Iterable[Task], kinds: Collection[Rerun]) -> list[str]:
    """Move the rows of the tasks to run again out of the output.

    An interrupted rerun is resumed: no rows are moved while a task of it has no new row.

    Args:
        rows: the output.
        tasks: the selected tasks.
        kinds: kinds of rows to move.

    Returns:
        Lines to display.

    Raises:
        OutputError: the rows could not be moved and are unchanged.
    """
    to = superseded_path(rows.path)
    selected = list(tasks)
    if to.exists():
        with RowFile(to) as earlier:
            known = set(earlier.done)
        pending = [t.id for t in selected if t.id in known and t.id not in rows.done]
        if pending:
            return [
                f"{len(pending)} tasks of an earlier --rerun have no row yet; resuming it, "
                "no other tasks are run again"
            ]
    ids = set()
    for task in selected:
        outcome = rows.done.get(task.id)
        if outcome is None or not any(_matches(outcome, kind) for kind in kinds):
            continue
        folder = rows.folder / task.folder
        try:
            with claimed(folder) as locked:
                if locked:  # otherwise another runner is writing its row
                    set_aside(folder, [*attempt_files(folder), *tries_in(folder)])
                    ids.add(task.id)
        except OSError as e:
            raise write_failure(e) from None
    number = rows.take_out(ids, to)
    return [f"{number} rows moved to {to}; running their tasks again"]


def _matches(outcome: Outcome, kind: Rerun) -> bool:
    if kind == "all":
        return True
    return not outcome.is_done if kind == "failed" else verdict_of(outcome.corr) == "wrong"
