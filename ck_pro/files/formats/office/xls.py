"""Excel 97 workbooks: values, hidden sheets, rows and columns, comments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...document import Document, Facts, Part, Reading, Row
from ...problem import ToolError, library
from ...sheet import cell_text, column_letter, heading, ranges, row_line

_STATES = {1: "hidden", 2: "very hidden"}


class Reader(Document):
    """A workbook of Excel 97 to 2003. Formulas are not read, only their values."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        self._xlrd = library("xlrd", "xlrd", "Excel 97 workbooks")
        try:
            with open(os.devnull, "w") as log:  # noqa: PTH123
                self._book = self._xlrd.open_workbook(path, formatting_info=True, logfile=log)
        except self._xlrd.XLRDError as error:
            raise ToolError(f"the workbook cannot be read: {error}") from None

    def facts(self) -> Facts:
        facts, hidden = [f"{self._book.nsheets} sheets", "formulas are not read"], list[str]()
        for sheet in self._book.sheets():
            facts.append(f"{sheet.name!r} {sheet.nrows} x {sheet.ncols}")
            if sheet.visibility:
                hidden.append(f"sheet {sheet.name!r} is {_STATES[sheet.visibility]}")
            rows, columns = self._hidden_lines(sheet)
            if rows:
                hidden.append(f"sheet {sheet.name!r}: hidden rows {', '.join(ranges(rows))}")
            if columns:
                letters = ", ".join(map(column_letter, sorted(columns)))
                hidden.append(f"sheet {sheet.name!r}: hidden columns {letters}")
            for (row, column), note in sheet.cell_note_map.items():
                where = f"{column_letter(column + 1)}{row + 1}"
                hidden.append(f"sheet {sheet.name!r}: comment on {where}: {note.text.strip()}")
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        made = []
        for sheet in self._book.sheets():
            if not sheet.visibility or self.reading.hidden == "mark":
                state = f" ({_STATES[sheet.visibility]})" if sheet.visibility else ""
                made.append(Part(sheet.name, f"sheet {sheet.name!r}{state}"))
        return made

    def blocks(self, part: str) -> Iterator[str]:
        sheet = self._book.sheet_by_name(part)
        rows, columns = self._hidden_lines(sheet)
        omit = self.reading.hidden == "omit"
        yield heading(sheet.ncols, () if omit else columns)
        for number, cells in self._shown_rows(sheet):
            if any(cells):
                yield row_line(number, cells, "hidden" if number in rows else "")

    def tables(self, part: str) -> list[list[Row]]:
        return [[cells for _, cells in self._shown_rows(self._book.sheet_by_name(part))]]

    def _shown_rows(self, sheet: Any) -> Iterator[tuple[int, list[str]]]:
        omit = self.reading.hidden == "omit"
        rows, columns = self._hidden_lines(sheet) if omit else (set[int](), set[int]())
        for index in range(sheet.nrows):
            if index + 1 not in rows:
                cells = enumerate(sheet.row(index), 1)
                yield index + 1, ["" if n in columns else self._text(cell) for n, cell in cells]

    def _hidden_lines(self, sheet: Any) -> tuple[set[int], set[int]]:
        rows = {n + 1 for n, row in sheet.rowinfo_map.items() if row.hidden}
        return rows, {n + 1 for n, column in sheet.colinfo_map.items() if column.hidden}

    def _text(self, cell: Any) -> str:
        if cell.ctype == self._xlrd.XL_CELL_DATE:
            try:
                return cell_text(self._xlrd.xldate_as_datetime(cell.value, self._book.datemode))
            except (ValueError, OverflowError):
                return cell_text(cell.value)
        if cell.ctype == self._xlrd.XL_CELL_BOOLEAN:
            return cell_text(bool(cell.value))
        if cell.ctype == self._xlrd.XL_CELL_ERROR:
            return str(self._xlrd.error_text_from_code.get(cell.value, "#ERROR"))
        return cell_text(cell.value)
