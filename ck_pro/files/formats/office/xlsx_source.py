"""Facts about a sheet of a large Excel workbook, found in its XML in one pass, in pieces."""

from __future__ import annotations

import posixpath
import re
import time
import zipfile
from collections.abc import Iterator
from typing import IO, Any

from ...problem import library

_ROW = re.compile(rb"<(?:\w+:)?row\b[^>]*>")
_COLUMN = re.compile(rb"<(?:\w+:)?col\b[^>]*\bhidden=[\"'](?:1|true)[\"'][^>]*>")
_HIDDEN = re.compile(rb"\bhidden=[\"'](?:1|true)[\"']")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\b[^>]*\bref=[\"']([A-Z]+\d+(?::[A-Z]+\d+)?)[\"']")
_FORMULA = re.compile(rb"<(?:\w+:)?f[\s>/]")
_ATTRIBUTE = r"\b%s=[\"'](\d{1,7})[\"']"
_NUMBER = {name: re.compile((_ATTRIBUTE % name).encode()) for name in ("r", "min", "max")}
_MAX_COLUMNS = 16_384
_PIECE = 4 << 20
_MAX_TAG = 1 << 16
_MAX_MERGED = 100_000
_MAX_COMMENTS = 100_000
_MAX_COMMENT_CHARS = 32 << 20
_COMMENT_SECONDS = 10.0


class SheetSource:
    """What the XML of a sheet says beside its cells.

    Args:
        archive: the workbook; None for a sheet without XML, such as a chart.
        name: of the XML part.

    Attributes:
        merged: the merged ranges, such as "A1:B2".
        last_row: number of the last row; 0 for an empty sheet.
        has_formulas: whether any cell has a formula.
        hidden_rows: numbers of the hidden rows.
        hidden_columns: numbers of the hidden columns.
    """

    def __init__(self, archive: zipfile.ZipFile | None, name: str):
        self.name = name
        self.merged: list[str] = []
        self.last_row = 0
        self.has_formulas = False
        self.hidden_rows, self.hidden_columns = set[int](), set[int]()
        if archive is not None:
            with archive.open(name) as file:
                for piece in _pieces(file):
                    self._add(piece)

    @property
    def merged_cells(self) -> int:
        """Number of cells in merged ranges."""
        return sum(map(_area, self.merged))

    def _add(self, piece: bytes) -> None:
        for row in _ROW.finditer(piece):
            number = _number(row[0], "r") or self.last_row + 1
            self.last_row = max(self.last_row, number)
            if _HIDDEN.search(row[0]):
                self.hidden_rows.add(number)
        for column in _COLUMN.findall(piece):
            last = min(_number(column, "max"), _MAX_COLUMNS)
            self.hidden_columns.update(range(_number(column, "min"), last + 1))
        if len(self.merged) < _MAX_MERGED:
            self.merged += [found.decode() for found in _MERGED.findall(piece)]
        self.has_formulas = self.has_formulas or _FORMULA.search(piece) is not None


class SheetComments:
    """The comments of a sheet, read as a stream.

    Args:
        archive: the workbook.
        sheet: name of the sheet's XML part.

    Attributes:
        by_row: comments as text, by row.
        count: number of comments that were read.
        cut: why more comments were not read; "" if all were.
    """

    def __init__(self, archive: zipfile.ZipFile, sheet: str):
        self.by_row: dict[int, list[str]] = {}
        self.count, self.cut = 0, ""
        folder, base = posixpath.split(sheet)
        rels = f"{folder}/_rels/{base}.rels"
        names = set(archive.namelist())
        for target in _comment_parts(archive, rels, folder) if rels in names else ():
            if target in names:
                self._read(archive, target)

    def _read(self, archive: zipfile.ZipFile, name: str) -> None:
        end, chars = time.monotonic() + _COMMENT_SECONDS, 0
        authors: list[str] = []
        for tag, element in _elements(archive, name, ("author", "comment")):
            if tag == "author":
                authors.append(element.text or "")
                continue
            text = "".join(t.text or "" for t in element.iter() if str(t.tag).endswith("}t"))
            number = str(element.get("authorId") or "")
            known = number.isdigit() and int(number) < len(authors)
            where = str(element.get("ref") or "")
            shown = " / ".join(text.split("\n"))
            line = f"comment on {where} by {authors[int(number)] if known else None}: {shown}"
            found = re.search(r"\d+", where)
            self.by_row.setdefault(int(found[0]) if found else 0, []).append(line)
            self.count, chars = self.count + 1, chars + len(line)
            reason = _why_cut(self.count, chars, end)
            if reason:
                self.cut = f"only the first {self.count:,} comments were read: {reason}"
                return


def _why_cut(count: int, chars: int, end: float) -> str:
    if count >= _MAX_COMMENTS:
        return "there are more"
    if chars > _MAX_COMMENT_CHARS:
        return "they are too long"
    return "it takes too long" if time.monotonic() > end else ""


def _comment_parts(archive: zipfile.ZipFile, rels: str, folder: str) -> Iterator[str]:
    for _, one in _elements(archive, rels, ("Relationship",)):
        if str(one.get("Type") or "").endswith("/comments"):
            target = str(one.get("Target") or "")
            inner = target[1:] if target.startswith("/") else posixpath.join(folder, target)
            yield posixpath.normpath(inner)


def _elements(
    archive: zipfile.ZipFile, name: str, tags: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield the elements with these names in an XML part, and forget them afterwards."""
    etree = library("lxml.etree", "lxml", "Excel workbooks")
    wanted = [f"{{*}}{tag}" for tag in tags]
    with archive.open(name) as file:
        parsed = etree.iterparse(
            file, tag=wanted, resolve_entities=False, no_network=True, huge_tree=False
        )
        for _, element in parsed:
            yield etree.QName(element).localname, element
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the content in pieces that end between tags."""
    rest = b""
    while piece := file.read(_PIECE):
        piece = rest + piece
        cut = piece.rfind(b"<")
        if cut < 0 or len(piece) - cut > _MAX_TAG:
            cut = len(piece)
        yield piece[:cut]
        rest = piece[cut:]
    yield rest


def _number(tag: bytes, name: str) -> int:
    found = _NUMBER[name].search(tag)
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
