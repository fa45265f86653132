"""Facts about a sheet of an Excel workbook, found in its XML without a parse of all its cells."""

from __future__ import annotations

import re
import zipfile

_ROW = re.compile(rb"<(?:\w+:)?row\b[^>]*\bhidden=[\"'](?:1|true)[\"'][^>]*>")
_NUMBERED = re.compile(rb"<(?:\w+:)?row\b[^>]*?\br=[\"'](\d{1,7})[\"']")
_COLUMN = re.compile(rb"<(?:\w+:)?col\b[^>]*\bhidden=[\"'](?:1|true)[\"'][^>]*>")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\b[^>]*\bref=[\"']([A-Z]+\d+(?::[A-Z]+\d+)?)[\"']")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>/]")
_ATTRIBUTE = r"\b%s=[\"'](\d{1,7})[\"']"
_MAX_COLUMNS = 16_384
_SCANNED = 400 << 20


class SheetSource:
    """The XML of a sheet.

    Args:
        archive: the workbook; None for a sheet without XML, such as a chart.
        name: of the XML part.
    """

    def __init__(self, archive: zipfile.ZipFile | None, name: str):
        self._data = b""
        if archive is not None:
            with archive.open(name) as file:
                self._data = file.read(_SCANNED)

    @property
    def merged(self) -> list[str]:
        """The merged ranges, such as "A1:B2"."""
        return [found.decode() for found in _MERGED.findall(self._data)]

    @property
    def last_row(self) -> int:
        """Number of the last row; 0 for an empty sheet."""
        return max((int(number) for number in _NUMBERED.findall(self._data)), default=0)

    @property
    def merged_cells(self) -> int:
        """Number of cells in merged ranges."""
        return sum(map(_area, self.merged))

    @property
    def has_formulas(self) -> bool:
        """Whether any cell has a formula."""
        return _FORMULA.search(self._data) is not None

    @property
    def hidden_rows(self) -> set[int]:
        """Numbers of the hidden rows."""
        return {_number(row, "r") for row in _ROW.findall(self._data)} - {0}

    @property
    def hidden_columns(self) -> set[int]:
        """Numbers of the hidden columns."""
        found = set[int]()
        for column in _COLUMN.findall(self._data):
            last = min(_number(column, "max"), _MAX_COLUMNS)
            found.update(range(_number(column, "min"), last + 1))
        return found


def _number(tag: bytes, name: str) -> int:
    found = re.search((_ATTRIBUTE % name).encode(), tag)
    return int(found[1]) if found else 0


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _area(reference: str) -> int:
    ends = re.findall(r"([A-Z]+)(\d+)", reference)
    (first, top), (last, bottom) = ends[0], ends[-1]
    rows = int(bottom) - int(top) + 1
    return rows * (_column(last.encode()) - _column(first.encode()) + 1)
