"""OpenDocument texts and presentations: text with tracked changes, comments and notes.

Source of the format: OASIS Open Document Format for Office Applications, part 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...document import Document, Facts, Part, Reading, Row
from ...unpacking import check_office_zip
from ...xml import OfficeZip, local

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_MAX_REPEATED = 1000
_MARGINS = "headers and footers"


class Reader(Document):
    """An OpenDocument text, or a presentation, whose slides are its parts."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        check_office_zip(path)
        self._zip = OfficeZip(path)
        self._root = self._zip.root("content.xml")
        self._changes = _tracked(self._root)
        styles = self._zip.root("styles.xml")
        self._margins = [
            one
            for one in (styles.iter() if styles is not None else ())
            if local(one) in ("header", "footer") and "".join(one.itertext()).strip()
        ]
        self._pages = [one for one in self._root.iter() if local(one) == "page"]
        self._open: list[str] = []
        """Ids of the tracked insertions that are open."""

    def facts(self) -> Facts:
        count = Counter(local(one) for one in self._root.iter())
        hidden = [
            f"tracked changes by {author!r}: {number} {kind}s"
            for (kind, author), number in Counter(
                (kind, author) for kind, author, _ in self._changes.values()
            ).items()
        ]
        hidden += [f"{count[kind]} {what}" for kind, what in _COUNTED.items() if count[kind]]
        facts = [f"{len(self._pages)} slides"] if self._pages else []
        return Facts([*facts, f"{count['p']:,} paragraphs", f"{count['table']} tables"], hidden)

    def parts(self) -> Sequence[Part]:
        if not self._pages:
            margins = [Part(_MARGINS, _MARGINS)] if self._margins else []
            return [Part("text", "text"), *margins]
        return [Part(str(n), f"slide {n}") for n in range(1, len(self._pages) + 1)]

    def blocks(self, part: str) -> Iterator[str]:
        if part == _MARGINS:
            for one in self._margins:
                yield from self._blocks(one)
            return
        yield from self._blocks(self._of(part))

    def tables(self, part: str) -> list[list[Row]]:
        if part == _MARGINS:
            return []
        return [self._rows(one) for one in self._of(part).iter(f"{_TABLE}table")]

    def _of(self, part: str) -> Any:
        return self._pages[int(part) - 1] if self._pages else self._root

    def _blocks(self, parent: Any) -> Iterator[str]:
        for child in parent:
            name = local(child)
            if name in ("p", "h"):
                level = child.get(f"{_TEXT}outline-level", "1")
                mark = "#" * int(level) + " " if name == "h" else ""
                text = self._inline(child)
                yield f"{mark if text else ''}{text}\n"
            elif name == "table":
                yield from (f"| {' | '.join(row)} |\n" for row in self._rows(child))
            elif name == "list-item":
                lines = list(self._blocks(child))
                yield from ((f"- {one}" if n == 0 else f"  {one}") for n, one in enumerate(lines))
            elif name == "notes":
                notes = " / ".join(line.strip() for line in self._blocks(child) if line.strip())
                if notes:
                    yield f"[speaker notes: {notes}]\n"
            elif name in ("change", "change-start", "change-end"):
                yield from (f"{one}\n" for one in [self._change(child)] if one)
            elif name not in ("tracked-changes", "sequence-decls", "forms"):
                yield from self._blocks(child)

    def _inline(self, element: Any) -> str:
        pieces = [self._kept(element.text)]
        for child in element:
            name = local(child)
            if name == "s":
                count = min(int(child.get(f"{_TEXT}c", "1")), _MAX_REPEATED)
                pieces.append(self._kept(" " * count))
            elif name in ("tab", "line-break"):
                pieces.append(self._kept("\t" if name == "tab" else "\n"))
            elif name in ("change", "change-start", "change-end"):
                pieces.append(self._change(child))
            elif name == "annotation":
                pieces.append(_comment(child))
            elif name == "note":
                body = [self._inline(p) for p in child.iter(f"{_TEXT}p")]
                pieces.append(f"[note: {' / '.join(body)}]")
            elif name == "hidden-text":
                hidden = child.get(f"{_TEXT}string-value", "")
                pieces.append(f"[hidden: {hidden}]" if self.reading.hidden == "mark" else "")
            elif name not in ("annotation-end", "bookmark", "soft-page-break"):
                pieces.append(self._inline(child))
            pieces.append(self._kept(child.tail))
        return "".join(pieces)

    def _kept(self, text: str | None) -> str:
        """Return text, or nothing if it is in an insertion that is rejected."""
        if not text:
            return ""
        authors = [self._changes[one][1] for one in self._open if one in self._changes]
        rejected = any(self.reading.change_state(author) == "reject" for author in authors)
        return "" if rejected else text

    def _change(self, mark: Any) -> str:
        """Return the text for the start or end of an insertion, or for a deletion."""
        change = str(mark.get(f"{_TEXT}change-id"))
        kind, author, deleted = self._changes.get(change, ("", "", ""))
        state = self.reading.change_state(author)
        name = local(mark)
        if name == "change":
            if kind != "deletion" or state == "accept":
                return ""
            return deleted if state == "reject" else f"[-{author}: {deleted}-]"
        if name == "change-start":
            self._open.append(change)
            return f"[+{author}: " if state == "mark" and kind == "insertion" else ""
        if change in self._open:
            self._open.remove(change)
        return "+]" if state == "mark" and kind == "insertion" else ""

    def _rows(self, table: Any) -> list[Row]:
        rows = []
        for row in table.iter(f"{_TABLE}table-row"):
            cells: Row = []
            for cell in row:
                if local(cell) in ("table-cell", "covered-table-cell"):
                    text = " / ".join(one.strip() for one in self._blocks(cell) if one.strip())
                    repeated = int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
                    cells += [text] * min(repeated, _MAX_REPEATED)
            rows.append(cells)
        return rows


_COUNTED = {"annotation": "comments", "note": "notes", "hidden-text": "hidden texts"}


def _comment(element: Any) -> str:
    author = next((one.text for one in element if local(one) == "creator"), "") or ""
    text = " / ".join("".join(p.itertext()) for p in element.iter(f"{_TEXT}p"))
    return f"[comment by {author}: {text}]"


def _tracked(root: Any) -> dict[str, tuple[str, str, str]]:
    """Return kind ("insertion", "deletion"), author and deleted text of each tracked change."""
    found = {}
    for region in root.iter(f"{_TEXT}changed-region"):
        for change in region:
            author = next((o.text for o in change.iter() if local(o) == "creator"), "") or ""
            deleted = " / ".join("".join(p.itertext()) for p in change.iter(f"{_TEXT}p"))
            found[str(region.get(f"{_TEXT}id"))] = (local(change), author, deleted)
    return found
