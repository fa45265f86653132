"""OpenDocument spreadsheets: values and formulas, hidden sheets, rows and columns, comments.

Source of the format: OASIS Open Document Format for Office Applications, part 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...document import Document, Facts, Part, Reading, Row
from ...problem import ToolError
from ...sheet import column_letter, heading, ranges, row_line
from ...unpacking import check_office_zip
from ...xml import OfficeZip, local

_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_MAX_COLUMNS = 16_384
_MAX_ROWS = 200_000
_MAX_CELLS = 5_000_000


class Reader(Document):
    """A spreadsheet. Each sheet is a part, also hidden ones."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        check_office_zip(path)
        self._root = OfficeZip(path).root("content.xml")
        self._sheets = {
            str(one.get(f"{_TABLE}name")): one
            for one in self._root.iter(f"{_TABLE}table")
            if local(one.getparent()) == "spreadsheet"
        }
        self._hidden_styles = {
            str(style.get(f"{_STYLE}name"))
            for style in self._root.iter(f"{_STYLE}style")
            if any(one.get(f"{_TABLE}display") == "false" for one in style)
        }

    def facts(self) -> Facts:
        facts, hidden = [f"{len(self._sheets)} sheets"], list[str]()
        for name in self._sheets:
            rows = list(self._rows(name))
            facts.append(f"{name!r} {len(rows):,} rows")
            if self._is_hidden(name):
                hidden.append(f"sheet {name!r} is hidden")
            hidden_rows = [number for number, _, is_hidden in rows if is_hidden]
            if hidden_rows:
                hidden.append(f"sheet {name!r}: hidden rows {', '.join(ranges(hidden_rows))}")
            columns = self._hidden_columns(name)
            if columns:
                letters = ", ".join(map(column_letter, sorted(columns)[:20]))
                hidden.append(f"sheet {name!r}: hidden columns {letters}")
            comments = sum(1 for _ in self._sheets[name].iter(f"{_OFFICE}annotation"))
            if comments:
                hidden.append(f"sheet {name!r}: {comments} comments")
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        made = []
        for name in self._sheets:
            is_hidden = self._is_hidden(name)
            if not is_hidden or self.reading.hidden == "mark":
                made.append(Part(name, f"sheet {name!r}" + " (hidden)" * is_hidden))
        return made

    def blocks(self, part: str) -> Iterator[str]:
        rows, columns = list(self._rows(part)), self._hidden_columns(part)
        omit = self.reading.hidden == "omit"
        width = max((len(cells) for _, cells, _ in rows), default=0)
        yield heading(width, () if omit else columns)
        for number, cells, is_hidden in rows:
            if omit and is_hidden:
                continue
            texts = [_shown(cell) for cell in cells]
            if omit:
                texts = ["" if n in columns else text for n, text in enumerate(texts, 1)]
            if any(texts):
                yield row_line(number, texts, "hidden" if is_hidden else "")

    def tables(self, part: str) -> list[list[Row]]:
        omit, columns = self.reading.hidden == "omit", self._hidden_columns(part)
        if sum(len(cells) for _, cells, _ in self._rows(part)) > _MAX_CELLS:
            raise ToolError(f"the sheet has more than {_MAX_CELLS:,} cells")
        return [
            [
                ["" if omit and n in columns else _value(cell) for n, cell in enumerate(cells, 1)]
                for _, cells, is_hidden in self._rows(part)
                if not (omit and is_hidden)
            ]
        ]

    def _rows(self, part: str) -> Iterator[tuple[int, list[Any], bool]]:
        """Yield number, cells and hiddenness of each row up to the last one with a value."""
        number = 0
        for row in self._sheets[part].iter(f"{_TABLE}table-row"):
            cells: list[Any] = []
            for cell in row:
                if local(cell) in ("table-cell", "covered-table-cell"):
                    times = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
                    cells += [cell] * min(times, _MAX_COLUMNS - len(cells))
            while cells and not _shown(cells[-1]):
                cells.pop()
            is_hidden = row.get(f"{_TABLE}visibility") in ("collapse", "filter")
            times = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
            if not cells:
                number += times
                continue
            for _ in range(times):
                number += 1
                if number > _MAX_ROWS:
                    raise ToolError(f"the sheet has more than {_MAX_ROWS:,} rows")
                yield number, cells, is_hidden

    def _hidden_columns(self, part: str) -> set[int]:
        hidden, number = set[int](), 0
        for column in self._sheets[part].iter(f"{_TABLE}table-column"):
            times = int(column.get(f"{_TABLE}number-columns-repeated", "1"))
            if column.get(f"{_TABLE}visibility") in ("collapse", "filter"):
                hidden.update(range(number + 1, number + 1 + min(times, _MAX_COLUMNS)))
            number += times
        return hidden

    def _is_hidden(self, part: str) -> bool:
        return self._sheets[part].get(f"{_TABLE}style-name") in self._hidden_styles


def _value(cell: Any) -> str:
    """Return a cell's exact value: the stored number or date, else its text."""
    kind = cell.get(f"{_OFFICE}value-type")
    if kind in ("float", "percentage", "currency"):
        text = str(cell.get(f"{_OFFICE}value", ""))
        return text[:-2] if text.endswith(".0") else text
    if kind == "date":
        return str(cell.get(f"{_OFFICE}date-value", ""))
    if kind == "boolean":
        return str(cell.get(f"{_OFFICE}boolean-value", "")).upper()
    return "\n".join("".join(p.itertext()) for p in cell if local(p) == "p")


def _shown(cell: Any) -> str:
    text = _value(cell)
    formula = str(cell.get(f"{_TABLE}formula") or "").removeprefix("of:")
    note = f" {{{formula}}}" if formula else ""
    for one in cell.iterchildren(f"{_OFFICE}annotation"):
        note += f" [comment: {' '.join(''.join(one.itertext()).split())}]"
    return (text + note).lstrip()
