"""Word documents: text with tracked changes, comments, notes, hidden text, tables and text boxes.

Source of the format: ECMA-376, part 1, "WordprocessingML".
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...document import Document, Facts, Part, Reading, Row
from ...unpacking import check_office_zip, save
from ...xml import OfficeZip, local
from .docx_numbering import Numbering

_MAIN = "word/document.xml"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_EMBEDDED = ("word/embeddings/", "word/activeX/")
_INSERTED, _DELETED = ("ins", "moveTo"), ("del", "moveFrom")
_MAX_SPAN = 100
_NOTES = ("footnotes", "endnotes")
_BLOCKS = ("p", "tbl", "sdt", "sdtContent", "customXml", *_INSERTED, *_DELETED)


class Reader(Document):
    """A Word document. Its parts are the body, and the notes, comments and headers if any."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        check_office_zip(path)
        self._zip = OfficeZip(path)
        self._files = self._found_files()

    def facts(self) -> Facts:
        body = self._zip.root(_MAIN)
        count = Counter(local(element) for element in body.iter())
        words = sum(len(block.split()) for block in self.blocks("body"))
        facts = [f"{words:,} words", f"{count['tbl']} tables", f"{count['drawing']} drawings"]
        return Facts(facts, list(self._hidden(body)))

    def parts(self) -> Sequence[Part]:
        named = [Part(name, name) for name in self._files if name != "body"]
        embedded = [Part(n, f"embedded file {n!r}", True) for n in self._zip.below(*_EMBEDDED)]
        return [Part("body", "body"), *named, *embedded]

    def blocks(self, part: str) -> Iterator[str]:
        for name in self._files[part]:
            root = self._zip.root(name)
            text = _Text(self._zip, self.reading, self._comments)
            if part not in _NOTES:
                yield from text.blocks(root)
                continue
            for note in _notes(root):
                label = f"[{local(note)} {_value(note, 'id')}]"
                lines = "".join(text.blocks(note)).strip()
                yield f"{label} {lines}\n"

    def tables(self, part: str) -> list[list[Row]]:
        text = _Text(self._zip, self.reading, self._comments)
        found = []
        for name in self._files.get(part, ()):
            for table in self._zip.root(name).iter(f"{_W}tbl"):
                found.append(text.rows(table))
        return found

    def member(self, part: str) -> Path | None:
        if part not in self._zip.names or not part.startswith(_EMBEDDED):
            return None
        with self._zip.open(part) as source:
            return save(source, part, 0)

    def _found_files(self) -> dict[str, list[str]]:
        """Return the part names and their XML files."""
        found: dict[str, list[str]] = {"body": [_MAIN]}
        for kind, target in self._zip.relations(_MAIN).values():
            name = {"header": "headers and footers", "footer": "headers and footers"}.get(kind)
            name = name or (kind if kind in (*_NOTES, "comments") else None)
            if name and target in self._zip.names:
                found.setdefault(name, []).append(target)
        return found

    @functools.cached_property
    def _comments(self) -> dict[str, str]:
        """Text of each comment by id, with its author."""
        found = {}
        for name in self._files.get("comments", ()):
            for one in self._zip.root(name).iter(f"{_W}comment"):
                text = " / ".join(plain_text(p) for p in one.iter(f"{_W}p"))
                found[_value(one, "id")] = f"[comment by {_value(one, 'author')}: {text}]"
        return found

    def _hidden(self, body: Any) -> Iterator[str]:
        for kinds, what in ((_INSERTED, "insertions"), (_DELETED, "deletions")):
            authors = Counter(
                _value(element, "author") for kind in kinds for element in body.iter(_W + kind)
            )
            for author, number in authors.most_common():
                yield f"tracked changes by {author!r}: {number} {what}"
        authors = Counter(text.partition(":")[0][1:] for text in self._comments.values())
        for author, number in authors.most_common():
            yield f"{author}: {number} comments" if number > 1 else f"1 {author}"
        hidden = sum(1 for run in body.iter(f"{_W}r") if _is_hidden(run))
        if hidden:
            yield f"{hidden} runs of hidden text"
        white = sum(1 for run in body.iter(f"{_W}r") if _colour(run) == "FFFFFF")
        if white:
            yield f"{white} runs of white text"
        for name in _NOTES:
            count = sum(len(_notes(self._zip.root(file))) for file in self._files.get(name, ()))
            if count:
                yield f"{count} {name} (part={name!r})"
        for name in self._zip.below(*_EMBEDDED):
            yield f"embedded file {name!r}"
        if any(name.endswith("vbaProject.bin") for name in self._zip.names):
            yield "macros (VBA)"


class _Text:
    """The text of one XML file of the document."""

    def __init__(self, zip: OfficeZip, reading: Reading, comments: dict[str, str]):
        self._reading = reading
        self._comments = comments
        self._numbering = Numbering(zip)

    def blocks(self, root: Any) -> Iterator[str]:
        """Yield paragraphs and tables."""
        joined = ""
        for element, state in self._each_block(root, ""):
            if local(element) == "tbl":
                yield from ("".join(_line(row)) for row in self.rows(element))
                continue
            text = self._in_state(self.paragraph(element), state)
            if self._mark_vanishes(element):
                joined += text
                continue
            text, joined = joined + text, ""
            if text or state == "":
                yield f"{text}\n"
        if joined:
            yield f"{joined}\n"

    def rows(self, table: Any) -> list[Row]:
        """Return the rows of a table; tracked rows are marked in their first cell."""
        rows = []
        for row in table.iterchildren(f"{_W}tr"):
            cells = []
            for cell in row.iterchildren(f"{_W}tc"):
                lines = [t.rstrip("\n") for t in self.blocks(cell)]
                cells.append(" / ".join(line for line in lines if line))
                span = cell.find(f"{_W}tcPr/{_W}gridSpan")
                width = int(_value(span, "val") or 1) if span is not None else 1
                cells += [""] * (min(width, _MAX_SPAN) - 1)
            state = self._row_state(row)
            if state == "omit":
                continue
            if state and cells:
                cells[0] = state.format(cells[0])
            rows.append(cells)
        return rows

    def paragraph(self, paragraph: Any) -> str:
        """Return the text of a paragraph, with its list number or heading mark."""
        text = "".join(self._inline(paragraph))
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        heading = re.fullmatch(r"[Hh]eading ?(\d)|[Tt]itle", _value(style, "val"))
        prefix = self._numbering.label(paragraph)
        if heading and text:
            prefix = "#" * int(heading[1] or 1) + " " + prefix
        return prefix + text if text else ""

    def _each_block(self, parent: Any, state: str) -> Iterator[tuple[Any, str]]:
        for child in parent:
            name = local(child)
            if name in ("p", "tbl"):
                yield child, state
            elif name in (*_BLOCKS, "body", "footnote", "endnote", "comment"):
                inner = self._change(child) if name in (*_INSERTED, *_DELETED) else state
                if inner != "omit":
                    yield from self._each_block(child, inner)

    def _inline(self, parent: Any) -> Iterator[str]:
        for child in parent:
            name = local(child)
            if name in (*_INSERTED, *_DELETED):
                yield self._in_state("".join(self._inline(child)), self._change(child))
            elif name == "r":
                yield self._run(child)
            elif name in ("hyperlink", "smartTag", "sdt", "sdtContent", "fldSimple", "dir", "bdo"):
                yield from self._inline(child)
            elif name in ("oMath", "oMathPara"):
                yield "".join(t.text or "" for t in child.iter() if local(t) == "t")

    def _run(self, text_run: Any) -> str:
        text = "".join(self._pieces(text_run))
        if not text:
            return ""
        if _is_hidden(text_run):
            return "" if self._reading.hidden == "omit" else f"[hidden: {text}]"
        struck = text_run.find(f"{_W}rPr/{_W}strike")
        if struck is not None and _value(struck, "val") not in ("0", "false"):
            return f"~~{text}~~"
        return text

    def _pieces(self, parent: Any) -> Iterator[str]:
        for child in parent:
            name = local(child)
            if name in ("t", "delText"):
                yield child.text or ""
            elif name in _CHARACTERS:
                yield _CHARACTERS[name]
            elif name == "sym":
                yield chr(int(_value(child, "char") or "FFFD", 16))
            elif name in ("footnoteReference", "endnoteReference"):
                yield f"[{name[:-9]} {_value(child, 'id')}]"
            elif name == "commentReference":
                yield self._comments.get(_value(child, "id"), "")
            elif name in ("drawing", "pict", "object"):
                yield self._drawing(child)
            elif name == "AlternateContent":
                yield from self._pieces(child[0])

    def _drawing(self, drawing: Any) -> str:
        boxes = ["".join(self.blocks(e)).strip() for e in drawing.iter(f"{_W}txbxContent")]
        if boxes:
            return "".join(f"[text box: {' / '.join(box.splitlines())}]" for box in boxes[:1])
        named = (e.get("descr") or e.get("title") for e in drawing.iter() if local(e) == "docPr")
        return f"[image: {next(filter(None, named), 'without a description')}]"

    def _change(self, element: Any) -> str:
        """Return how to show a tracked change: a format, "{}" as it is, or "omit"."""
        author = _value(element, "author")
        inserted = local(element) in _INSERTED
        state = self._reading.change_state(author)
        if state == "mark":
            sign = "+" if inserted else "-"
            return f"[{sign}{author.replace('{', '(')}: {{}}{sign}]"
        return "{}" if inserted == (state == "accept") else "omit"

    def _in_state(self, text: str, state: str) -> str:
        if state == "omit" or not text:
            return ""
        return state.replace("{}", text) if state else text

    def _row_state(self, row: Any) -> str:
        for kind in (*_INSERTED, *_DELETED):
            change = row.find(f"{_W}trPr/{_W}{kind}")
            if change is not None:
                return self._change(change)
        return ""

    def _mark_vanishes(self, paragraph: Any) -> bool:
        """Return whether the end of a paragraph is tracked, and absent in the chosen state."""
        changes = (paragraph.find(f"{_W}pPr/{_W}rPr/{_W}{k}") for k in (*_INSERTED, *_DELETED))
        return any(c is not None and self._change(c) == "omit" for c in changes)


_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011", "softHyphen": ""}


def _line(row: Row) -> str:
    cells = (cell.replace("|", "\\|").replace("\n", " / ") for cell in row)
    return f"| {' | '.join(cells)} |\n"


def _notes(root: Any) -> list[Any]:
    """Return the notes that are not separators."""
    return [
        one for one in root if local(one) in ("footnote", "endnote") and not _value(one, "type")
    ]


def plain_text(element: Any) -> str:
    """Return the text of an element, whatever its state."""
    return "".join(e.text or "" for e in element.iter(f"{_W}t", f"{_W}delText"))


def _value(element: Any, name: str) -> str:
    return "" if element is None else str(element.get(_W + name) or "")


def _is_hidden(text_run: Any) -> bool:
    vanish = text_run.find(f"{_W}rPr/{_W}vanish")
    return vanish is not None and _value(vanish, "val") not in ("0", "false")


def _colour(text_run: Any) -> str:
    return _value(text_run.find(f"{_W}rPr/{_W}color"), "val").upper()
