"""Parquet tables, read in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..document import Document, Facts, Part, Row
from ..problem import ToolError, library
from ..sheet import cell_text

_BATCH = 1000
_MAX_ROWS = 200_000
_MAX_LISTED = 100


class Reader(Document):
    """A table. Its rows are shown with the names of the columns first."""

    def facts(self) -> Facts:
        with self._opened() as file:
            columns = [f"{field.name} ({field.type})" for field in file.schema_arrow]
            rows = file.metadata.num_rows
        more = f" and {len(columns) - _MAX_LISTED} more" if len(columns) > _MAX_LISTED else ""
        listed = ", ".join(columns[:_MAX_LISTED])
        return Facts([f"{rows:,} rows", f"{len(columns)} columns: {listed}{more}"])

    def parts(self) -> Sequence[Part]:
        return [Part("table", "table")]

    def blocks(self, part: str) -> Iterator[str]:
        for row in self._rows():
            cells = (c.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") for c in row)
            yield "\t".join(cells) + "\n"

    def tables(self, part: str) -> list[list[Row]]:
        with self._opened() as file:
            if file.metadata.num_rows > _MAX_ROWS:
                raise ToolError(f"the table has more than {_MAX_ROWS:,} rows; use pandas")
        return [list(self._rows())]

    def _opened(self) -> Any:
        parquet = library("pyarrow.parquet", "pyarrow", "Parquet tables")
        return parquet.ParquetFile(self.path, memory_map=True)

    def _rows(self) -> Iterator[Row]:
        """Yield the names of the columns, then the rows."""
        with self._opened() as file:
            yield list(map(str, file.schema_arrow.names))
            for batch in file.iter_batches(_BATCH, use_threads=False):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield list(map(cell_text, row))
