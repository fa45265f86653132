"""CSV and TSV tables."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence

from ..document import Document, Facts, Part, Row
from ..encodings import encoding_of
from ..problem import ToolError
from .text import encoding_text, text_blocks

_SAMPLE = 1 << 16
_SAMPLE_LINES = 200
_DELIMITERS = "\t;|,"
"""Delimiters; of two that fit equally, the first one (a comma may be a decimal comma)."""
_MAX_FIELD = 1 << 24
_MAX_ROWS = 1_000_000
_MAX_CELLS = 10_000_000


class Reader(Document):
    """A table of delimited fields. Rows are shown as they are in the file."""

    def facts(self) -> Facts:
        rows, widths = 0, set[int]()
        for row in self._rows():
            rows += 1
            widths.add(len(row))
        columns = f"{max(widths, default=0)} columns"
        hidden = [f"rows have different numbers of fields: {sorted(widths)[:10]}"]
        encoding, delimiter = self._form()
        named = {"\t": "tab"}.get(delimiter, delimiter)
        facts = [encoding_text(encoding), f"delimiter {named!r}", f"{rows:,} rows", columns]
        return Facts(facts, hidden if len(widths) > 1 else [])

    def parts(self) -> Sequence[Part]:
        return [Part("table", "table")]

    def blocks(self, part: str) -> Iterator[str]:
        return text_blocks(self.path, self._form()[0])

    def tables(self, part: str) -> list[list[Row]]:
        rows, cells = list[Row](), 0
        for row in self._rows():
            rows.append(row)
            cells += len(row)
            if len(rows) > _MAX_ROWS or cells > _MAX_CELLS:
                most = f"{_MAX_ROWS:,} rows or {_MAX_CELLS:,} cells"
                raise ToolError(f"the table has more than {most}; read the file in code")
        return [rows]

    def _form(self) -> tuple[str, str]:
        """Return the encoding and the delimiter."""
        with self.path.open("rb") as file:
            start = file.read(_SAMPLE)
        encoding = encoding_of(start)
        text = start.decode(encoding, "replace")
        lines = text.splitlines()[:_SAMPLE_LINES]
        if len(text.splitlines()) > 1 and len(start) == _SAMPLE:
            lines = lines[: text.count("\n")]  # the last line may be incomplete
        expected = "\t" if self.path.suffix.lower() == ".tsv" else ","
        shares = {one: _evenness(lines, one) for one in _DELIMITERS}
        best = max(_DELIMITERS, key=shares.__getitem__)
        return encoding, best if shares[best] else expected

    def _rows(self) -> Iterator[Row]:
        csv.field_size_limit(_MAX_FIELD)
        encoding, delimiter = self._form()
        with self.path.open(encoding=encoding, errors="replace", newline="") as file:
            yield from csv.reader(file, delimiter=delimiter)


def _evenness(lines: list[str], delimiter: str) -> float:
    """Return the share of lines with the most frequent number of fields, if it is above 1."""
    csv.field_size_limit(_MAX_FIELD)
    counts = Counter(map(len, csv.reader(lines, delimiter=delimiter)))
    del counts[0], counts[1]
    return max(counts.values(), default=0) / max(1, len(lines))
