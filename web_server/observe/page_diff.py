"""The difference between two observations of a page, as text: create it and apply it.

A delta begins with the lines of the tabs and `since observation N:`. These parts follow, unless
they are empty:

    the server's own lines (`[0] ...`), in their current form
    gone: 12 14-20          ids of removed lines; a range contains all earlier ids between its ends
    changed:                then the changed lines, in their new form
    new after [7]:          then new lines, to insert after the line with that id
    nothing else            if nothing was removed, changed or added

A line that moved is both gone and new.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

_ID = re.compile(r"\t*\[(\d+)\] ")
_NOTHING = "nothing else"
_GONE = "gone: "
_CHANGED = "changed:"
_NEW = re.compile(r"new after \[(\d+)\]:")


REMEMBERED = 8
"""How many observations of a page are stored."""
_LONGEST = 500_000
_WORTHWHILE = 0.75


class History:
    """The last observations of one page, by their numbers."""

    def __init__(self) -> None:
        self._number = 0
        self._texts: dict[int, str] = {}

    def add(self, text: str, since: int | None) -> tuple[int, str]:
        """Store an observation.

        Args:
            text: its `yaml`.
            since: the number of the observation to compare it with; None for no comparison.

        Returns:
            its number and the delta. The delta is empty if the other observation is not stored
            any more, or if the delta is hardly shorter than the text.
        """
        delta = ""
        if since is not None and since in self._texts:
            delta = difference(self._texts[since], text, since)
            if len(delta) > _WORTHWHILE * len(text):
                delta = ""
        self._number += 1
        if len(text) <= _LONGEST:
            self._texts[self._number] = text
        self._texts.pop(self._number - REMEMBERED, None)
        return self._number, delta


class _Tree:
    """The lines of an observation: tabs, the server's own lines, and elements by id."""

    def __init__(self, text: str) -> None:
        self.tabs: list[str] = []
        self.notices: list[str] = []
        self.lines: dict[int, str] = {}
        for line in text.split("\n"):
            found = _ID.match(line)
            if found is None:
                self.tabs.append(line)
            elif found[1] == "0":
                self.notices.append(line)
            else:
                self.lines[int(found[1])] = line


def difference(old: str, new: str, number: int) -> str:
    """Return the delta from one observation to another.

    Args:
        old: the `yaml` of the earlier observation.
        new: the `yaml` of the later one.
        number: the number of the earlier observation.
    """
    before, now = _Tree(old), _Tree(new)
    staying = _in_order(before.lines, now.lines)
    gone = [key for key in before.lines if key not in staying]
    changed = [
        line for key, line in now.lines.items() if key in staying and line != before.lines[key]
    ]
    parts = [*now.tabs, f"since observation {number}:", *now.notices]
    if gone:
        parts.append(_GONE + _ranges(gone, before.lines))
    if changed:
        parts += [_CHANGED, *changed]
    after = 0
    adding = False
    for key, line in now.lines.items():
        if key in staying:
            adding = False
        else:
            if not adding:
                parts.append(f"new after [{after}]:")
            adding = True
            parts.append(line)
        after = key
    if len(parts) == len(now.tabs) + 1 + len(now.notices):
        parts.append(_NOTHING)
    return "\n".join(parts)


def apply(old: str, delta: str) -> str:
    """Apply a delta to the observation that it was made from.

    Args:
        old: the `yaml` of that observation.
        delta: the result of `difference`.
    """
    lines = dict(_Tree(old).lines)
    tabs: list[str] = []
    notices: list[str] = []
    blocks: dict[int, list[str]] = {}
    block: list[str] | None = None
    for line in delta.split("\n"):
        found = _ID.match(line)
        if found is not None:
            if block is not None:
                block.append(line)
            elif found[1] == "0":
                notices.append(line)
            else:
                lines[int(found[1])] = line
        elif start := _NEW.fullmatch(line):
            block = blocks.setdefault(int(start[1]), [])
        elif line.startswith(_GONE):
            for key in _gone_ids(line, lines):
                del lines[key]
        elif line.startswith("Tab "):
            tabs.append(line)
    return "\n".join([*tabs, *_joined(lines, blocks, notices)])


def _joined(
    lines: dict[int, str], blocks: dict[int, list[str]], notices: list[str]
) -> Iterable[str]:
    """Merge the remaining lines, the new ones, and the server's own lines after line [2]."""
    yield from blocks.get(0, ())
    for key, line in lines.items():
        yield line
        if key == 2:
            yield from notices
        yield from blocks.get(key, ())


def _gone_ids(line: str, known: dict[int, str]) -> list[int]:
    """Parse the ids in a `gone:` line."""
    found: list[int] = []
    order = sorted(known)
    for word in line.removeprefix(_GONE).split():
        first, _, last = word.partition("-")
        begin = bisect_left(order, int(first))
        end = bisect_left(order, int(last or first) + 1)
        found += order[begin:end]
    return found


def _ranges(gone: Sequence[int], known: dict[int, str]) -> str:
    """Format ids, and runs of consecutive known ids as `first-last`."""
    order = sorted(known)
    away = set(gone)
    words: list[str] = []
    run: list[int] = []
    for key in [*order, -1]:
        if key in away:
            run.append(key)
            continue
        if len(run) > 2:
            words.append(f"{run[0]}-{run[-1]}")
        else:
            words += map(str, run)
        run = []
    return " ".join(words)


def _in_order(old: dict[int, str], new: dict[int, str]) -> set[int]:
    """The longest common subsequence of ids."""
    place = {key: index for index, key in enumerate(old)}
    common = [key for key in new if key in place]
    ends: list[int] = []  # the smallest end of an increasing run, by its length
    keys: list[int] = []
    above: dict[int, int | None] = {}
    for key in common:
        length = bisect_left(ends, place[key])
        above[key] = keys[length - 1] if length else None
        ends[length : length + 1] = [place[key]]
        keys[length : length + 1] = [key]
    chosen: set[int] = set()
    last: int | None = keys[-1] if keys else None
    while last is not None:
        chosen.add(last)
        last = above[last]
    return chosen
