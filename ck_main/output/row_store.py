"""Interface of a store of output rows: `RowFile`, or the desk of a Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import Protocol

from ck_main.output.row import Outcome
from ck_main.output.row_schema import OutputRow


class RowStore(Protocol):
    """The part of `RowFile` that a runner uses."""

    @property
    def path(self) -> Path:
        """Path of the output."""

    @property
    def folder(self) -> Path:
        """Folder with one folder per task."""

    @property
    def done(self) -> Mapping[str, Outcome]:
        """Outcomes of the known rows, by task id."""

    @property
    def lost(self) -> Set[str]:
        """Ids of rows that the output lost."""

    @property
    def torn(self) -> Set[str]:
        """Ids that torn lines of the output name."""

    def has(self, task_id: str) -> bool:
        """Whether the output has a row for this task now."""

    def append(self, row: OutputRow) -> None:
        """Append a row."""

    def restore(self, row: OutputRow) -> bool:
        """Append a row again if it is `lost`; return whether it was."""
