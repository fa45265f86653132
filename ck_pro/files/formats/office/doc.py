"""Word 97 documents (.doc): text with tracked changes, hidden text, notes and comments.

Source of the format: Microsoft, [MS-DOC].
"""

from __future__ import annotations

import bisect
import functools
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from ...document import Document, Facts, Part, Reading, Row
from ...problem import ToolError, library

_MAGIC, _ENCRYPTED, _TABLE_1, _COMPRESSED = 0xA5EC, 0x0100, 0x0200, 0x40000000
_COUNTS = {"body": 0x4C, "footnotes": 0x50, "headers and footers": 0x54, "macros": 0x58}
_COUNTS |= {"comments": 0x5C, "endnotes": 0x60, "text boxes": 0x64, "text boxes of headers": 0x68}
_CHARACTER_RUNS, _PIECES, _AUTHORS = 0x00FA, 0x01A2, 0x0232
_PAGE = 512
_DELETED, _INSERTED, _VANISH, _INSERTER, _DELETER = 0x0800, 0x0801, 0x083C, 0x4804, 0x4863
_OPERAND_SIZES = (1, 1, 2, 4, 2, 2, 0, 3)
_FIELD_START, _FIELD_RESULT, _FIELD_END, _CELL = "\x13", "\x14", "\x15", "\x07"
_LINE = "\x0b"
_PLAIN: dict[int, str | None] = {
    **{ord("\r"): "\n", 0x0C: "\n", 0x1E: "\u2011", 1: "[image]", 2: "[note]", 5: "[comment]"},
    **{8: "[drawing]", 0x1F: None, 3: None, 4: None},
}


class _Look(NamedTuple):
    """Properties of characters: author of an insertion, of a deletion, and whether hidden."""

    inserted: str = ""
    deleted: str = ""
    hidden: bool = False


class Reader(Document):
    """A document of Word 97 to 2003. Its parts are the body, notes, comments and headers."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        olefile = library("olefile", "olefile", "Word 97 documents")
        with olefile.OleFileIO(path) as ole:
            self._main = ole.openstream("WordDocument").read()
            magic, flags = struct.unpack_from("<H8xH", self._main)
            if magic != _MAGIC:
                raise ToolError("the document is older than Word 97; save it as .docx")
            if flags & _ENCRYPTED:
                raise ToolError("the document is encrypted; its text needs a password")
            self._table = ole.openstream("1Table" if flags & _TABLE_1 else "0Table").read()
            self._has_macros = ole.exists("Macros")

    def facts(self) -> Facts:
        changes: Counter[tuple[str, str]] = Counter()
        hidden = 0
        for look, _ in self._spans("body"):
            changes[look.inserted, "insertions"] += bool(look.inserted)
            changes[look.deleted, "deletions"] += bool(look.deleted)
            hidden += look.hidden
        counted = ((who, what, n) for (who, what), n in changes.items() if n)
        found = [f"tracked changes by {who!r}: {n} {what}" for who, what, n in counted]
        found += [f"{hidden} runs of hidden text"] if hidden else []
        found += [f"{name} (part={name!r})" for name in self._places if name != "body"]
        found += ["macros (VBA)"] if self._has_macros else []
        return Facts([f"{sum(len(line.split()) for line in self.blocks('body')):,} words"], found)

    def parts(self) -> Sequence[Part]:
        return [Part(name, name) for name in self._places]

    def blocks(self, part: str) -> Iterator[str]:
        for line in self._lines(part):
            if _CELL in line:
                yield f"| {' | '.join(_cells(line))} |\n"
            else:
                yield line.replace(_LINE, "\n") + "\n"

    def tables(self, part: str) -> list[list[Row]]:
        groups = groupby(self._lines(part), key=lambda line: _CELL in line)
        return [[_cells(line) for line in lines] for is_table, lines in groups if is_table]

    def _lines(self, part: str) -> list[str]:
        text = "".join(self._shown(look, text) for look, text in self._spans(part))
        rows = text.replace(_CELL * 2, f"{_CELL}\n")  # the second mark ends a row
        return rows.strip("\n").split("\n")

    def _shown(self, look: _Look, text: str) -> str:
        body = text.rstrip(f"\n{_CELL}")
        if not body:
            return text
        end = text[len(body) :]
        if look.hidden:
            body = "" if self.reading.hidden == "omit" else f"[hidden: {body}]"
        for sign, who in (("+", look.inserted), ("-", look.deleted)):
            state = self.reading.change_state(who) if who and body else "as it is"
            if state == "mark":
                body = f"[{sign}{who}: {body}{sign}]"
            elif state != "as it is" and (state == "accept") != (sign == "+"):
                return ""
        return body + end

    # --- the text ---

    @functools.cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """The first and the last position of each part that has text."""
        found, start = dict[str, tuple[int, int]](), 0
        for name, at in _COUNTS.items():
            count = struct.unpack_from("<I", self._main, at)[0]
            if count or name == "body":
                found[name] = (start, start + count)
            start += count
        return found

    def _spans(self, part: str) -> Iterator[tuple[_Look, str]]:
        """Yield the text of a part in pieces of equal properties, without codes of fields."""
        start, end = self._places[part]
        codes: list[bool] = []
        now, text = _Look(), ""
        for look, piece in self._raw_spans(start, end):
            shown = ""
            for one in piece:
                if one == _FIELD_START:
                    codes.append(True)
                elif one == _FIELD_RESULT and codes:
                    codes[-1] = False
                elif one == _FIELD_END and codes:
                    codes.pop()
                elif not any(codes):
                    shown += one
            if look != now:
                yield now, text.translate(_PLAIN)
                now, text = look, ""
            text += shown
        yield now, text.translate(_PLAIN)

    def _raw_spans(self, start: int, end: int) -> Iterator[tuple[_Look, str]]:
        starts = [first for first, _, _ in self._looks]
        for first, last, place, width in self._pieces:
            low, high = max(first, start), min(last, end)
            at, stop = place + (low - first) * width, place + (high - first) * width
            while at < stop:
                index = bisect.bisect_right(starts, at) - 1
                look, until = _Look(), stop
                if index >= 0 and at < self._looks[index][1]:
                    look, until = self._looks[index][2], self._looks[index][1]
                elif index + 1 < len(starts):
                    until = starts[index + 1]
                until = min(stop, max(until, at + width))
                data = self._main[at:until]
                yield look, data.decode("cp1252" if width == 1 else "utf-16-le", "replace")
                at = until

    @functools.cached_property
    def _pieces(self) -> list[tuple[int, int, int, int]]:
        """First and last position, place in the file and bytes per character of each piece."""
        data = self._stored(_PIECES)
        at = 0
        while data[at : at + 1] == b"\x01":  # properties, before the table of pieces
            at += 3 + struct.unpack_from("<H", data, at + 1)[0]
        size = struct.unpack_from("<xI", data, at)[0]
        count = (size - 4) // 12
        ends = struct.unpack_from(f"<{count + 1}I", data, at + 5)
        made = []
        for number, (first, last) in enumerate(pairwise(ends)):
            place = struct.unpack_from("<2xI", data, at + 5 + 4 * (count + 1) + 8 * number)[0]
            narrow = bool(place & _COMPRESSED)
            place = (place & ~_COMPRESSED) // 2 if narrow else place
            made.append((first, last, place, 1 if narrow else 2))
        return made

    @functools.cached_property
    def _looks(self) -> list[tuple[int, int, _Look]]:
        """Start, end and properties of the characters with properties, by place in the file."""
        data = self._stored(_CHARACTER_RUNS)
        count = max(0, (len(data) - 4) // 8)
        pages = struct.unpack_from(f"<{count}I", data, 4 * (count + 1)) if count else ()
        found = []
        for number in pages:
            page = self._main[(number & 0x3FFFFF) * _PAGE :][:_PAGE]
            runs = page[-1] if len(page) == _PAGE else 0
            ends = struct.unpack_from(f"<{runs + 1}I", page)
            for index, (start, end) in enumerate(pairwise(ends)):
                at = 2 * page[4 * (runs + 1) + index]
                look = self._look(page[at + 1 : at + 1 + page[at]]) if at else _Look()
                if look != _Look():
                    found.append((start, end, look))
        return sorted(found)

    def _look(self, properties: bytes) -> _Look:
        values, at = dict[int, int](), 0
        while at + 3 <= len(properties):
            code = struct.unpack_from("<H", properties, at)[0]
            size = _OPERAND_SIZES[code >> 13] or properties[at + 2] + 1
            values[code] = int.from_bytes(properties[at + 2 : at + 2 + size], "little")
            at += 2 + size
        return _Look(
            self._author(values.get(_INSERTER, 0)) if values.get(_INSERTED) else "",
            self._author(values.get(_DELETER, 0)) if values.get(_DELETED) else "",
            bool(values.get(_VANISH)),
        )

    def _author(self, number: int) -> str:
        return self._authors[number] if number < len(self._authors) else "an unknown author"

    @functools.cached_property
    def _authors(self) -> list[str]:
        data, at, names = self._stored(_AUTHORS), 6, list[str]()
        while at + 2 <= len(data):
            size = 2 * struct.unpack_from("<H", data, at)[0]
            names.append(data[at + 2 : at + 2 + size].decode("utf-16-le", "replace"))
            at += 2 + size
        return names

    def _stored(self, at: int) -> bytes:
        """Return the bytes in the table stream that a pair of the header points to."""
        place, size = struct.unpack_from("<II", self._main, at)
        return bytes(self._table[place : place + size])


def _cells(line: str) -> Row:
    cells = line.replace(_LINE, " / ").removesuffix(_CELL).split(_CELL)
    return [cell.strip() for cell in cells]
