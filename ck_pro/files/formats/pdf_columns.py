"""Text of PDF pages with columns of prose, whose lines the file stores side by side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

_MIN_ROWS = 3
_MIN_GAP = 1.2
"""Width of the gap between columns, in heights of a line."""
_MIN_FILL = 0.6
"""Share of a column that its lines fill on average, unlike the cells of a table."""
_MIN_WORDS = 3
_MAX_LINES = 2000
_MAX_COLUMNS = 6


class _Line(NamedTuple):
    """A piece of text on one line, with its box in points; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float
    text: str


def column_text(textpage: Any, text: str) -> str | None:
    """Return the text of a page column by column; None if its order in the file is as good.

    Args:
        textpage: the page of `pypdfium2`.
        text: the text in the order of the file.
    """
    if textpage.count_rects() > _MAX_LINES:
        return None
    lines = list(_lines(textpage))
    found = _ordered(lines, _MAX_COLUMNS)
    if found is None:
        return None
    made = "\n".join(found)
    same_order, same_words = (
        made.split() == text.split(),
        sorted(made.split()) == sorted(text.split()),
    )
    return made if same_words and not same_order else None


def _lines(textpage: Any) -> Iterator[_Line]:
    """Yield the pieces of each line, joined over gaps between words."""
    boxes: list[Any] = [textpage.get_rect(index) for index in range(textpage.count_rects())]
    for row in _rows([_Line(left, bottom, right, top, "") for left, bottom, right, top in boxes]):
        now: _Line | None = None
        for one in row:
            height = one.top - one.bottom
            if now is not None and one.left - now.right < _MIN_GAP * height:
                bottom, top = min(now.bottom, one.bottom), max(now.top, one.top)
                now = _Line(now.left, bottom, max(now.right, one.right), top, "")
                continue
            if now is not None:
                yield _with_text(textpage, now)
            now = one
        if now is not None:
            yield _with_text(textpage, now)


def _with_text(textpage: Any, line: _Line) -> _Line:
    text = textpage.get_text_bounded(line.left - 1, line.bottom, line.right + 1, line.top)
    return line._replace(text=" ".join(str(text).split()))


def _rows(lines: list[_Line]) -> list[list[_Line]]:
    """Group pieces that stand side by side, from the top of the page, each row from the left."""
    rows: list[list[_Line]] = []
    for line in sorted(lines, key=lambda one: -(one.top + one.bottom)):
        middle = (line.top + line.bottom) / 2
        if rows and rows[-1][0].bottom < middle < rows[-1][0].top:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row) for row in rows]


def _ordered(lines: list[_Line], most: int) -> list[str] | None:
    """Return the lines in reading order; None if there are no columns."""
    rows = _rows(lines)
    gutter = _gutter(rows) if most > 1 else None
    if gutter is None:
        return None
    made: list[str] = []
    left, right = list[_Line](), list[_Line]()

    def flush() -> None:
        for side in (left, right):
            inner = _ordered(side, most - 1)
            made.extend(inner or [" ".join(one.text for one in row) for row in _rows(side)])
            side.clear()

    for row in rows:
        if any(one.left < gutter < one.right for one in row):
            flush()
            made.append(" ".join(one.text for one in row))
            continue
        for one in row:
            (left if one.right <= gutter else right).append(one)
    flush()
    return made


def _gutter(rows: list[list[_Line]]) -> float | None:
    """Return the x coordinate between two columns of prose, if there are any."""
    gaps = [(a.right + b.left) / 2 for row in rows for a, b in pairwise(row)]
    best, most = None, _MIN_ROWS - 1
    for x in sorted({round(gap) for gap in gaps}):
        sides = [
            ([one for one in row if one.right <= x], [one for one in row if one.left >= x])
            for row in rows
            if not any(one.left < x < one.right for one in row)
        ]
        both = [(a, b) for a, b in sides if a and b]
        if len(both) > most and all(_is_prose([pair[n] for pair in both]) for n in (0, 1)):
            best, most = float(x), len(both)
    return best


def _is_prose(column: list[list[_Line]]) -> bool:
    left = min(row[0].left for row in column)
    width = max(row[-1].right for row in column) - left
    filled = sum(sum(one.right - one.left for one in row) for row in column)
    words = sum(len(one.text.split()) for row in column for one in row)
    rows = len(column)
    return width > 0 and filled / width / rows >= _MIN_FILL and words / rows >= _MIN_WORDS
