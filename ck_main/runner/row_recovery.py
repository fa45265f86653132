"""Rebuild rows from journals after the output lost them during a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from ck_main.output.row import row_of
from ck_main.output.row_schema import OutputRow
from ck_main.runner.task_folder import UNUSABLE
from ck_pro.events import EventKind
from ck_pro.journal import journal_folders, read_events


def rows_from_journals(folder: Path, ids: Collection[str]) -> Iterator[OutputRow]:
    """Rebuild the rows of tasks that ended, written or not.

    `TaskTries` rebuilds the rows of tasks with several tries, which have several journals.

    Args:
        folder: folder of an output, with one folder per task.
        ids: ids of the tasks.
    """
    for journal in journal_folders(folder):
        if journal.parent.resolve() != folder.resolve():  # journal of a try
            continue
        try:
            if task_id_of(journal) not in ids:
                continue
            row = row_of(read_events(journal), written=True)
        except UNUSABLE:
            continue  # the caller reports the row as lost
        if row is not None:
            yield row


def task_id_of(journal: Path) -> str | None:
    """Return the task id that a journal names, or None."""
    for event in read_events(journal):
        if event["kind"] == EventKind.TASK:
            return str(event["data"]["id"])
        if event["kind"] == EventKind.MODEL_CALL:
            break
    return None
