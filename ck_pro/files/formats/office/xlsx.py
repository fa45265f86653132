"""Excel workbooks: values and formulas, hidden sheets, rows and columns, comments, names."""

from __future__ import annotations

import functools
import itertools
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...child import in_child, remembered
from ...document import Document, Facts, Part, Reading, Row
from ...problem import ToolError, library
from ...sheet import Formulas, cell_text, column_letter, heading, ranges, row_line
from ...unpacking import check_office_zip
from .xlsx_formulas import evaluate
from .xlsx_source import SheetComments, SheetSource

_LARGE = 12 << 20
"""Unpacked bytes from which a workbook is read as a stream."""
_MAX_MERGED = 5_000_000
"""Cells in merged ranges from which a workbook is read as a stream."""
_MAX_WIDTH = 1000
"""Columns up to which all rows have the same length."""
_MAX_EVALUATED = 1_000_000
"""Cells of a sheet up to which formulas are computed."""
_EVALUATION_SECONDS = 20.0
_STREAM_SECONDS = 25.0
"""Seconds from which no further row of a large sheet is read."""
_SHEETS = "xl/worksheets/sheet"
_MAX_TABLE = 200_000
_MAX_LISTED = 20


class Reader(Document):
    """A workbook. Each sheet is a part, also charts and hidden ones."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        check_office_zip(path)
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            self._has_macros = any(n.endswith("vbaProject.bin") for n in names)
            large = sum(info.file_size for info in archive.infolist()) > _LARGE
            sheets = {n: SheetSource(archive, n) for n in names if n.startswith(_SHEETS)}
        self._large = large or any(one.merged_cells > _MAX_MERGED for one in sheets.values())
        self._sources = sheets if self._large else {}
        self._omits = reading.hidden == "omit"

    def facts(self) -> Facts:
        facts, hidden = [f"{len(self._formulas.sheetnames)} sheets"], list[str]()
        for name in self._formulas.sheetnames:
            facts.append(f"{name!r} {self._size(name)}")
            hidden += self._hidden_in(name)
        hidden += [f"name {name!r} = {one.attr_text}" for name, one in self._names()]
        if self._has_macros:
            hidden.append("macros (VBA)")
        if self._large:
            hidden.append("the workbook is large: formulas without a stored value are not computed")
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        made = []
        for name in self._formulas.sheetnames:
            state = self._formulas[name].sheet_state
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
        width = min(sheet.max_column or 0, _MAX_WIDTH)
        yield heading(width, () if self._omits else hidden_columns)
        comments = self._comments_of(part)
        by_row = {} if comments is None else comments.by_row
        waiting = sorted(by_row, reverse=True)
        for number, cells in self._shown_rows(part, Formulas()):
            if any(cells):
                yield row_line(number, cells, "hidden" if number in hidden_rows else "")
            while waiting and waiting[-1] <= number:
                yield from (f"[{line}]\n" for line in by_row[waiting.pop()])
        for row in reversed(waiting):
            yield from (f"[{line}]\n" for line in by_row[row])
        yield from (f"[{line}]\n" for line in (*self.unread, *self._notes(part)))

    def _comments_of(self, part: str) -> SheetComments | None:
        """Return the comments of a sheet of a large workbook; None for a small one."""
        if not self._large:
            return None
        with zipfile.ZipFile(self.path) as archive:
            return SheetComments(archive, self._source(part).name)

    def tables(self, part: str) -> list[list[Row]]:
        if not hasattr(self._formulas[part], "iter_rows"):
            return []
        rows: list[Row] = []
        for number, row in self._shown_rows(part, None):
            if max(number, len(rows)) > _MAX_TABLE:
                raise ToolError(f"the sheet has more than {_MAX_TABLE:,} rows; use pandas")
            if not self._omits:
                rows += [[""] * len(row)] * (number - 1 - len(rows))
            rows.append(row)
        if self.unread:
            raise ToolError(f"{self.unread[0]}; use pandas")
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
        sheets = (self._formulas[name] for name in self._formulas.sheetnames)
        areas = (s.max_row * s.max_column for s in sheets if hasattr(s, "iter_rows"))
        if self._large or sum(areas) > _MAX_EVALUATED:
            return {}
        found = self.path.stat()
        key = (str(self.path.resolve()), found.st_mtime_ns, found.st_size)
        return remembered(key, self._evaluate)

    def _evaluate(self) -> dict[tuple[str, str], str]:
        try:
            return in_child(lambda: evaluate(self.path), _EVALUATION_SECONDS)
        except ToolError:  # it takes too long, also the next time
            return {}

    def _load(self, data_only: bool) -> Any:
        openpyxl = library("openpyxl", "openpyxl", "Excel workbooks")
        return openpyxl.load_workbook(
            self.path, data_only=data_only, read_only=self._large, keep_links=False
        )

    def _shown_rows(self, part: str, formulas: Formulas | None) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of each row, from the first row and column on.

        With `hidden="omit"`, hidden rows are missing and cells of hidden columns are empty.
        """
        columns = self._hidden_lines(self._formulas[part])[1] if self._omits else set[int]()
        for number, pairs in self._pairs(part):
            if not (self._omits and number in self._hidden_lines(self._formulas[part])[0]):
                yield (
                    number,
                    [
                        "" if n in columns else self._cell(part, (number, n), value, cell, formulas)
                        for n, (value, cell) in enumerate(pairs, 1)
                    ],
                )

    def _pairs(self, part: str) -> Iterator[tuple[int, list[tuple[Any, Any]]]]:
        """Yield the number of each row, and the value and the cell of each of its columns."""
        if self._large:
            yield from self._in_time(part, self._streamed(part))
            return
        sheet, values = self._formulas[part], self._values[part]
        by_row: dict[int, dict[int, Any]] = {}
        for (row, column), cell in sheet._cells.items():  # a stray cell may be far away
            by_row.setdefault(row, {})[column] = cell
        width = sheet.max_column if sheet.max_column <= _MAX_WIDTH else 0
        for number in sorted(by_row):
            row_cells = by_row[number]
            stored = (
                values._cells.get((number, n)) for n in range(1, (width or max(row_cells)) + 1)
            )
            yield (
                number,
                [(getattr(v, "value", None), row_cells.get(n)) for n, v in enumerate(stored, 1)],
            )

    def _streamed(self, part: str) -> Iterator[tuple[int, list[tuple[Any, Any]]]]:
        """Yield the pairs of a sheet of a large workbook."""
        sheet = self._formulas[part]
        sheet.reset_dimensions()  # they may be wrong, and would cut the sheet
        if not self._source(part).has_formulas:
            rows = sheet.iter_rows(min_row=1, min_col=1, values_only=True)
            yield from ((n, [(v, v) for v in row]) for n, row in enumerate(rows, 1))
            return
        self._values[part].reset_dimensions()
        shown = self._values[part].iter_rows(min_row=1, min_col=1, values_only=True)
        cells = sheet.iter_rows(min_row=1, min_col=1)
        for number, (row, row_cells) in enumerate(zip(shown, cells, strict=False), 1):
            yield number, list(zip(row, row_cells, strict=False))

    def _in_time(
        self, part: str, rows: Iterator[tuple[int, list[tuple[Any, Any]]]]
    ) -> Iterator[tuple[int, list[tuple[Any, Any]]]]:
        """Yield rows until the time for a large sheet is over; note where they end."""
        end = time.monotonic() + _STREAM_SECONDS
        for number, pairs in rows:
            if time.monotonic() > end:
                reason = f"reading a sheet ends after {_STREAM_SECONDS:g} s"
                line = f"the rows of {part!r} from {number:,} on were not read: {reason}"
                self.unread.append(line)
                return
            yield number, pairs

    def _cell(
        self,
        part: str,
        at: tuple[int, int],
        value: object,
        cell: Any,
        formulas: Formulas | None,
    ) -> str:
        """Return the text of a cell: its value, and its formula if `formulas` is given."""
        if cell is None or cell is value:
            return cell_text(value)
        formula = cell.value
        formula = getattr(formula, "text", formula)  # of an array formula
        if not (isinstance(formula, str) and formula.startswith("=")) or cell.data_type != "f":
            return cell_text(value)
        text = cell_text(value)
        note = ""
        if value is None:
            text = self._evaluated.get((part.upper(), cell.coordinate), "")
            note = ", not stored, computed now" if text else ", not stored"
        if formulas is None:
            return text
        return f"{text} {{{formulas.text(*at, formula)}{note}}}".lstrip()

    # --- hidden parts ---

    def _size(self, part: str) -> str:
        sheet = self._formulas[part]
        if not hasattr(sheet, "iter_rows"):
            return "a chart"
        if self._large:
            return f"{self._source(part).last_row:,} rows"
        return f"A1:{column_letter(sheet.max_column or 1)}{sheet.max_row or 1}"

    def _source(self, part: str) -> SheetSource:
        """Return the XML of a sheet of a large workbook."""
        name = str(getattr(self._formulas[part], "_worksheet_path", "")).lstrip("/")
        return self._sources.get(name) or SheetSource(None, name)

    def _hidden_lines(self, sheet: Any) -> tuple[set[int], set[int]]:
        if self._large:
            source = self._source(sheet.title)
            return source.hidden_rows, source.hidden_columns
        if not hasattr(sheet, "row_dimensions"):
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
        comments = self._comments_of(name)
        if comments is not None and comments.count:
            lines = itertools.chain.from_iterable(comments.by_row.values())
            yield from (f"sheet {name!r}: {line}" for line in itertools.islice(lines, _MAX_LISTED))
            if comments.count > _MAX_LISTED:
                yield f"sheet {name!r}: {comments.count:,} comments in all"
        yield from (f"sheet {name!r}: {line}" for line in self._notes(name))

    def _notes(self, part: str) -> Iterator[str]:
        sheet = self._formulas[part]
        if self._large:
            merged = self._source(part).merged
            comments = self._comments_of(part)
            if comments is not None and comments.cut:
                yield comments.cut
        elif hasattr(sheet, "merged_cells"):
            yield from _comments(sheet)
            merged = [str(one) for one in sheet.merged_cells.ranges]
        else:
            return
        if merged:
            more = f" and {len(merged) - _MAX_LISTED} more" if len(merged) > _MAX_LISTED else ""
            yield f"merged cells: {', '.join(merged[:_MAX_LISTED])}{more}"

    def _names(self) -> list[tuple[str, Any]]:
        return [(n, one) for n, one in self._formulas.defined_names.items() if one.attr_text]


def _comments(sheet: Any) -> Iterator[str]:
    for _, cell in sorted(sheet._cells.items()):
        if getattr(cell, "comment", None) is not None:
            text = " / ".join(cell.comment.text.split("\n"))
            yield f"comment on {cell.coordinate} by {cell.comment.author}: {text}"


_STATES = {"hidden": "hidden", "veryHidden": "very hidden"}
