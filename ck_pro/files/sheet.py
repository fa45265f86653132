"""Text of a spreadsheet's cells: one line per row, with the row's number and the column letters."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator

_QUOTED = re.compile(r"(\"[^\"]*\"|'[^']*')")
_REFERENCE = re.compile(r"(?<![A-Za-z0-9_.$])(\$?[A-Z]{1,3})([1-9]\d{0,6})(?![A-Za-z0-9_.(])")
_ROWS_BETWEEN = 40
"""Rows after which a formula that was copied down is shown again."""


def column_letter(number: int) -> str:
    """Return the letters of a column, from 1: A, B, ..., Z, AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def cell_text(value: object) -> str:
    """Return a cell's value as text: dates in ISO form, whole numbers without a fraction."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def heading(columns: int, hidden: Iterable[int] = ()) -> str:
    """Return the line of column letters; hidden columns (from 1) are marked."""
    marked = set(hidden)
    names = (column_letter(n) + (" (hidden)" if n in marked else "") for n in range(1, columns + 1))
    return "row\t" + "\t".join(names) + "\n"


def row_line(number: int, cells: list[str], note: str = "") -> str:
    """Return the line of a row; tabs and line ends in a cell are escaped."""
    texts = (c.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for c in cells)
    label = f"{number} ({note})" if note else str(number)
    return f"{label}\t" + "\t".join(texts).rstrip("\t") + "\n"


class Formulas:
    """Shortens formulas that were copied down: a column shows each formula again in 40 rows."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int, list[str]]] = {}

    def text(self, row: int, column: int, formula: str) -> str:
        """Return the formula of a cell, or "as above" for a copy of the one in the row above."""
        pieces = _QUOTED.split(formula)
        for n in range(0, len(pieces), 2):
            pieces[n] = _REFERENCE.sub(lambda m: f"{m[1]}{{{int(m[2]) - row}}}", pieces[n])
        above, shown, known = self._last.get(column, (0, 0, []))
        copied = above == row - 1 and known == pieces and row - shown < _ROWS_BETWEEN
        self._last[column] = row, shown if copied else row, pieces
        return "as above" if copied else formula


def ranges(numbers: Iterable[int]) -> Iterator[str]:
    """Yield consecutive numbers as ranges: "3", "5 to 9"."""
    found = sorted(set(numbers))
    start = None
    for n in found:
        start = n if start is None else start
        if n + 1 not in set(found[-1:]) | set(found):
            yield str(start) if start == n else f"{start} to {n}"
            start = None
