"""What an earlier attempt left in its folder, as its journal tells.

A journal tells how far an attempt came: its event `eval` says that the row is complete and can be
made from the journal alone, its event `row` that the row was written.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ck_main.output.row import EVAL_EVENT, TASK_EVENT, WRITTEN_EVENT, row_of, task_facts
from ck_main.tasks.dataset import Task
from ck_pro.exceptions import JournalError
from ck_pro.journal import Journal, is_journal, read_events
from ck_pro.run.resume import InterruptedSession, PriorUsage, cut_off
from ck_pro.session import AgentSession

_log = logging.getLogger(__name__)
# a journal of another version, or one that somebody wrote in
UNUSABLE = (JournalError, KeyError, TypeError, ValueError, AttributeError)
"""What reading a journal raises that cannot be gone on with."""


class PreviousAttempt:
    """An attempt that an earlier run left; its journal is read once, when first asked about.

    Args:
        folder: the attempt's own; whoever looks has claimed it.

    Attributes:
        refused: one line saying why it cannot be gone on with, where that is a surprise.
    """

    def __init__(self, folder: Path):
        self.folder, self.refused = folder, ""

    @cached_property
    def _events(self) -> list[dict[str, Any]]:
        """Of the journal; empty if there is none that can be read."""
        if not is_journal(self.folder):
            return []
        try:
            return list(read_events(self.folder))
        except UNUSABLE as e:
            self._refuse(e)
            return []

    @cached_property
    def _found(self) -> tuple[InterruptedSession | None, PriorUsage]:
        try:
            return cut_off(self._events)
        except UNUSABLE as e:
            self._refuse(e)
            return None, PriorUsage()

    def _refuse(self, error: Exception) -> None:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        self.refused = f"its journal is not usable ({said})"
        _log.warning("%s: %s", self.folder, self.refused)

    @property
    def facts(self) -> dict[str, Any] | None:
        """What it says of its task: the data of the event `task`."""
        found = (e["data"] for e in self._events if e["kind"] == TASK_EVENT)
        return next(found, None)

    @property
    def session(self) -> AgentSession | None:
        """Its main session; None if there is no usable one."""
        cut = self._found[0]
        return None if cut is None else cut.session

    @property
    def complete(self) -> bool:
        """Whether it came to its row, written or not."""
        return any(e["kind"] in (EVAL_EVENT, WRITTEN_EVENT) for e in self._events)

    def row(self, task: Task, *, written: bool = False) -> dict[str, Any] | None:
        """The row that was made and is not in the output.

        Args:
            task: the task. If it has changed, there is no row.
            written: also a row that was written: the output lost it. Otherwise a row that is not in
                the output was removed from it to run the task again.
        """
        try:
            row = row_of(self._events, written=written)
        except UNUSABLE as e:
            self._refuse(e)
            return None
        if row is None:
            return None
        facts = stored(task_facts(task))
        return row if all(row.get(k) == v for k, v in facts.items()) else None

    def unfinished(
        self, facts: Mapping[str, Any], *, begun: bool = False
    ) -> tuple[InterruptedSession, PriorUsage] | None:
        """Where to go on; None if there is nothing, or nothing of this task, to go on with.

        Args:
            facts: of the task, for its row.
            begun: also if it came to its row.
        """
        cut, used = self._found
        known = self.facts
        if cut is None or known is None or "start_time" not in cut.session.info:
            return None
        given = stored(facts)
        if known != given:
            other = sorted(k for k in {*known, *given} if known.get(k) != given.get(k))
            self.refused = f"the task is not as it was when it was begun ({', '.join(other)})"
            return None
        if self.complete and not begun:
            return None  # whoever asks again wants it done again
        return cut, used


def stored(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts as a journal has them: without secrets."""
    data: dict[str, Any] = Journal().append(TASK_EVENT, sid="", data=dict(facts))["data"]
    return data
