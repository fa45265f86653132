"""The states of a line with marks: as shown, and as it reads with all changes made or undone."""

from __future__ import annotations

import re
from collections.abc import Iterator

_INSERTED = re.compile(r"\[\+[^:\[\]]*: ((?:(?!\[[+-]).)*?)\+\]")
_DELETED = re.compile(r"\[-[^:\[\]]*: ((?:(?!\[[+-]).)*?)-\]")
_HIDDEN = re.compile(r"\[hidden: ([^\[\]]*)\]")
_REMARK = re.compile(r"\[(?:comment(?: by [^\[\]:]*)?|(?:foot|end)?note(?: \d+)?)(?::[^\[\]]*)?\]")
_ROUNDS = 4
"""Levels of marks inside marks."""


def states(line: str) -> Iterator[str]:
    """Yield a line as it is shown; then without marks: changes accepted, and rejected.

    White space is normalised. Text that only looks like a mark is treated like one.
    """
    yield " ".join(line.split())
    if "[" in line:
        for inserted, deleted in ((r"\1", ""), ("", r"\1")):
            text = line
            for _ in range(_ROUNDS):
                text = _REMARK.sub("", _HIDDEN.sub(r"\1", text))
                text = _DELETED.sub(deleted, _INSERTED.sub(inserted, text))
            yield " ".join(text.split())
