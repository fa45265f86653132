"""Excel workbooks: values and formulas, hidden sheets, rows and columns, comments, names."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...document import Document, Facts, Part, Reading, Row
from ...problem import ToolError, library
from ...sheet import cell_text, column_letter, heading, ranges, row_line
from ...unpacking import check_office_zip
from .xlsx_formulas import evaluate

_LARGE = 60 << 20
"""Unpacked bytes from which a workbook is read as a stream, without hidden rows and comments."""
_MAX_TABLE = 200_000
_MAX_LISTED = 20


class Reader(Document):
    """A workbook. Each sheet is a part, also charts and hidden ones."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        check_office_zip(path)
        with zipfile.ZipFile(path) as archive:
            self._large = sum(info.file_size for info in archive.infolist()) > _LARGE
            self._has_macros = any(n.endswith("vbaProject.bin") for n in archive.namelist())

    def facts(self) -> Facts:
        facts, hidden = [f"{len(self._values.sheetnames)} sheets"], list[str]()
        for name in self._values.sheetnames:
            sheet = self._formulas[name]
            facts.append(f"{name!r} {getattr(sheet, 'dimensions', 'a chart')}")
            hidden += self._hidden_in(name)
        hidden += [f"name {name!r} = {one.attr_text}" for name, one in self._names()]
        if self._has_macros:
            hidden.append("macros (VBA)")
        if self._large:
            hidden.append("the workbook is large: hidden rows, comments and merged cells not read")
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        made = []
        for name in self._values.sheetnames:
            state = self._values[name].sheet_state
            if state == "visible" or self.reading.hidden == "mark":
                note = "" if state == "visible" else f" ({_STATES.get(state, state)})"
                made.append(Part(name, f"sheet {name!r}{note}"))
        return made

    def blocks(self, part: str) -> Iterator[str]:
        sheet = self._formulas[part]
        if not hasattr(sheet, "iter_rows"):
            yield "(a chart sheet)\n"
            return
        hidden_rows, hidden_columns = self._hidden_lines(sheet)
        omit = self.reading.hidden == "omit"
        yield heading(sheet.max_column or 0, () if omit else hidden_columns)
        for number, cells in self._shown_rows(part, formulas=True):
            if any(cells):
                yield row_line(number, cells, "hidden" if number in hidden_rows else "")
        for line in self._notes(part):
            yield f"[{line}]\n"

    def tables(self, part: str) -> list[list[Row]]:
        if not hasattr(self._formulas[part], "iter_rows"):
            return []
        rows: list[Row] = []
        for _, row in self._shown_rows(part, formulas=False):
            rows.append(row)
            if len(rows) > _MAX_TABLE:
                raise ToolError(f"the sheet has more than {_MAX_TABLE:,} rows; use pandas")
        return [rows]

    # --- cells ---

    @functools.cached_property
    def _values(self) -> Any:
        return self._load(data_only=True)

    @functools.cached_property
    def _formulas(self) -> Any:
        return self._load(data_only=False)

    @functools.cached_property
    def _evaluated(self) -> dict[tuple[str, str], str]:
        """Values of the formulas without a cached one, by sheet and cell."""
        return evaluate(self.path)

    def _load(self, data_only: bool) -> Any:
        openpyxl = library("openpyxl", "openpyxl", "Excel workbooks")
        return openpyxl.load_workbook(
            self.path, data_only=data_only, read_only=self._large, keep_links=False
        )

    def _shown_rows(self, part: str, formulas: bool) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of each row, from the first row and column on.

        With `hidden="omit"`, hidden rows are missing and cells of hidden columns are empty.
        """
        sheet = self._formulas[part]
        area = {"min_row": 1, "min_col": 1, "max_row": sheet.max_row, "max_col": sheet.max_column}
        values = self._values[part].iter_rows(**area, values_only=True)
        rows, columns = self._hidden_lines(sheet) if self.reading.hidden == "omit" else ((), ())
        pairs = zip(values, sheet.iter_rows(**area), strict=False)
        for number, (shown, row) in enumerate(pairs, 1):
            if number not in rows:
                cells = zip(shown, row, strict=False)
                yield (
                    number,
                    [
                        "" if n in columns else self._cell(part, value, cell, formulas)
                        for n, (value, cell) in enumerate(cells, 1)
                    ],
                )

    def _cell(self, part: str, value: object, cell: Any, formulas: bool) -> str:
        formula = cell.value
        formula = getattr(formula, "text", formula)  # of an array formula
        if not (isinstance(formula, str) and formula.startswith("=")) or cell.data_type != "f":
            return cell_text(value)
        text = cell_text(value)
        note = ""
        if value is None:
            text = self._evaluated.get((part.upper(), cell.coordinate), "")
            note = ", not stored, computed now" if text else ", not stored"
        return f"{text} {{{formula}{note}}}".lstrip() if formulas else text

    # --- hidden parts ---

    def _hidden_lines(self, sheet: Any) -> tuple[set[int], set[int]]:
        if self._large or not hasattr(sheet, "row_dimensions"):
            return set(), set()
        rows = {n for n, row in sheet.row_dimensions.items() if row.hidden}
        columns: set[int] = set()
        for column in sheet.column_dimensions.values():
            if column.hidden and column.min:
                columns.update(range(column.min, min(column.max, sheet.max_column or 0) + 1))
        return rows, columns

    def _hidden_in(self, name: str) -> Iterator[str]:
        sheet = self._formulas[name]
        if sheet.sheet_state != "visible":
            yield f"sheet {name!r} is {_STATES.get(sheet.sheet_state, sheet.sheet_state)}"
        rows, columns = self._hidden_lines(sheet)
        if rows:
            yield f"sheet {name!r}: hidden rows {', '.join(ranges(rows))}"
        if columns:
            letters = ", ".join(column_letter(n) for n in sorted(columns)[:_MAX_LISTED])
            yield f"sheet {name!r}: hidden columns {letters}"
        if getattr(getattr(sheet, "auto_filter", None), "ref", None):
            yield f"sheet {name!r}: a filter on {sheet.auto_filter.ref}"
        yield from (f"sheet {name!r}: {line}" for line in self._notes(name))

    def _notes(self, part: str) -> Iterator[str]:
        sheet = self._formulas[part]
        if self._large or not hasattr(sheet, "merged_cells"):
            return
        for row in sheet.iter_rows():
            for cell in row:
                if getattr(cell, "comment", None) is not None:
                    text = " / ".join(cell.comment.text.split("\n"))
                    yield f"comment on {cell.coordinate} by {cell.comment.author}: {text}"
        merged = [str(one) for one in sheet.merged_cells.ranges]
        if merged:
            more = f" and {len(merged) - _MAX_LISTED} more" if len(merged) > _MAX_LISTED else ""
            yield f"merged cells: {', '.join(merged[:_MAX_LISTED])}{more}"

    def _names(self) -> list[tuple[str, Any]]:
        return [(n, one) for n, one in self._formulas.defined_names.items() if one.attr_text]


_STATES = {"hidden": "hidden", "veryHidden": "very hidden"}
