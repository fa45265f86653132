"""What changed between two observations of a page, as text: made here, and applied.

A delta begins with the lines of the tabs, then `since observation N:`, then those of these parts
that there is something to say in:

    the lines of the server itself (`[0] ...`), as they are now
    gone: 12 14-20          ids of lines that are no more; a range names those that were there
    changed:                followed by lines in their new form, at the place of the old ones
    new after [7]:          followed by lines as they stand in the tree, after the line of that id
    nothing else            when neither of the three was

A line that moved is gone and new. Ids are those of the tree, so nothing else is needed to follow.
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
"""Of so many observations of a page the text is kept."""
_LONGEST = 500_000
_WORTHWHILE = 0.75


class History:
    """The last observations of one page, by their numbers."""

    def __init__(self) -> None:
        self._number = 0
        self._texts: dict[int, str] = {}

    def add(self, text: str, since: int | None) -> tuple[int, str]:
        """Keep an observation.

        Args:
            text: its tree, `yaml` of the wire.
            since: the number of the observation to compare it with; None for no comparison.

        Returns:
            its number, and the delta; that is empty where the other observation is not known any
            more, or the tree itself is hardly longer than what changed.
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
    """The lines of an observation: of the tabs, of the server, and of elements by id."""

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
    """What `new` has otherwise than `old`, in the form that the module describes.

    Args:
        old: the tree of an earlier observation, `yaml` of the wire.
        new: the tree now.
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
    """The tree that a delta leads to.

    Args:
        old: the tree that it was made from.
        delta: what `difference` gave.
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
        elif begun := _NEW.fullmatch(line):
            block = blocks.setdefault(int(begun[1]), [])
        elif line.startswith(_GONE):
            for key in _named(line, lines):
                del lines[key]
        elif line.startswith("Tab "):
            tabs.append(line)
    return "\n".join([*tabs, *_joined(lines, blocks, notices)])


def _joined(
    lines: dict[int, str], blocks: dict[int, list[str]], notices: list[str]
) -> Iterable[str]:
    """The kept lines with the new ones between them, and the server's own after line [2]."""
    yield from blocks.get(0, ())
    for key, line in lines.items():
        yield line
        if key == 2:
            yield from notices
        yield from blocks.get(key, ())


def _named(line: str, known: dict[int, str]) -> list[int]:
    """The ids that a line of gone ones names."""
    wanted: list[int] = []
    order = sorted(known)
    for word in line.removeprefix(_GONE).split():
        first, _, last = word.partition("-")
        begin = bisect_left(order, int(first))
        end = bisect_left(order, int(last or first) + 1)
        wanted += order[begin:end]
    return wanted


def _ranges(gone: Sequence[int], known: dict[int, str]) -> str:
    """Ids as words, runs of them as `first-last`: a run holds every id known between its ends."""
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
    """The largest set of common ids that come in the same order in both."""
    place = {key: index for index, key in enumerate(old)}
    common = [key for key in new if key in place]
    ends: list[int] = []  # the smallest last place of a run of each length
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
