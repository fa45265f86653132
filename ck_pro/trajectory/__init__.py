"""Export, compare, fork, compress and trace the journals and output rows of runs.

`load(path)` gives them to a notebook as pandas frames.

See `docs/trajectories.md`, and `python -m ck_pro.trajectory.export --help`.

Rooms, in import order; the commands beside them may import all:

    reading    rows and journals, one at a time, in bounded memory
    labels     decisions of people about runs, steps and calls, in their own file
    formats    one file per export format
    exporting  filters, pipeline, writers and report
    previewing what an export would train on, with token counts
    otel       OpenTelemetry spans
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ck_pro.trajectory.frames import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    if name == "load":  # notebooks alone need it
        from ck_pro.trajectory.frames import load

        return load
    raise AttributeError(f"module 'ck_pro.trajectory' has no attribute {name!r}")
