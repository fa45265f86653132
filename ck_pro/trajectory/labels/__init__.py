"""Labels: decisions of people or programs about runs, steps and model calls, in their own file.

May import: `reading` and the core.
Other rooms use `Label`, `Target`, `LabelFile`, `label_file_of`, `Labels` and `Decision`.
"""

from __future__ import annotations

from ck_pro.trajectory.labels.label import Label, LabelLine, Reply, Target, TargetLine
from ck_pro.trajectory.labels.label_file import (
    CurrentLabels,
    LabelFile,
    is_label_file,
    label_file_of,
    unused_label_files,
    without_label_files,
)
from ck_pro.trajectory.labels.label_set import Decision, Labels

__all__ = [
    "CurrentLabels",
    "Decision",
    "Label",
    "LabelFile",
    "LabelLine",
    "Labels",
    "Reply",
    "Target",
    "TargetLine",
    "is_label_file",
    "label_file_of",
    "unused_label_files",
    "without_label_files",
]
