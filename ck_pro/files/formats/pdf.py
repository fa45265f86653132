"""PDF files: text page by page from two engines, tables, form fields, comments, attachments."""

from __future__ import annotations

import ctypes
import functools
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..document import Document, Facts, Part, Reading, Row
from ..problem import ToolError, library
from ..unpacking import save
from .pdf_columns import column_text

_MANY_PAGES = 60
"""Pages of which `facts` looks at the text."""
_LISTED_WORDS = 12
_INVISIBLE_MODE = 3
_WORD = re.compile(r"\w+")


class Reader(Document):
    """A PDF file. Each page is a part."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        self._pdfium = library("pypdfium2", "pypdfium2", "PDF files")
        self._raw = library("pypdfium2.raw", "pypdfium2", "PDF files")
        try:
            self._pdf = self._pdfium.PdfDocument(path)
        except self._pdfium.PdfiumError as error:
            if "password" in str(error).lower():
                raise ToolError("the PDF is encrypted; its text needs a password") from None
            raise ToolError(f"the PDF is damaged: {error}") from None
        if len(self._pdf) == 0:
            raise ToolError("the PDF is damaged: it has no pages")
        self._pdf.init_forms()

    def facts(self) -> Facts:
        pages = len(self._pdf)
        facts = [f"{pages:,} pages"]
        metadata = self._pdf.get_metadata_dict()
        facts += [f"{k.lower()} {metadata[k]!r}" for k in ("Title", "Producer") if metadata.get(k)]
        hidden: list[str] = []
        without_text = []
        for number in range(1, min(pages, _MANY_PAGES) + 1):
            if not _WORD.search(self._text(number)):
                without_text.append(number)
            hidden += self._hidden_on(number)
        if without_text:
            shown = ", ".join(map(str, without_text[:_LISTED_WORDS]))
            more = "" if len(without_text) <= _LISTED_WORDS else ", ..."
            facts.append(f"{len(without_text)} pages without text (pictures): {shown}{more}")
        if pages > _MANY_PAGES:
            facts.append(f"only the first {_MANY_PAGES} pages were checked for text")
        hidden += [f"attachment {name!r}" for name in self._attachments]
        return Facts(facts, hidden)

    def parts(self) -> Sequence[Part]:
        pages = [Part(str(n), f"page {n}") for n in range(1, len(self._pdf) + 1)]
        return [*pages, *(Part(n, f"attachment {n!r}", True) for n in self._attachments)]

    def blocks(self, part: str) -> Iterator[str]:
        number = int(part)
        page = self._page(number)
        if page.get_rotation():
            yield f"[the page is rotated by {page.get_rotation()} degrees]\n"
        text, in_columns = self._page_text(number)
        if in_columns:
            yield "[the page has columns; they are shown one after the other]\n"
        yield from (f"{line}\n" for line in text.split("\n"))
        if not _WORD.search(text):
            shown = f"look({self.shown!r}, page={number})"
            yield f"[the page has no text: it is a picture; {shown} shows it]\n"
            return
        missing = self._missing_words(number, text)
        if missing:
            shown = " ".join(missing[:_LISTED_WORDS])
            more = (
                f" and {len(missing) - _LISTED_WORDS} more" if len(missing) > _LISTED_WORDS else ""
            )
            yield f"[a second engine also finds: {shown}{more}; render the page to check]\n"
        hidden = (line for line in self._hidden_on(number) if "rotated" not in line)
        yield from (f"[{line}]\n" for line in (*self._fields(page), *hidden))

    def plain_blocks(self, part: str) -> Iterator[str]:
        yield self._text(int(part))

    def tables(self, part: str) -> list[list[Row]]:
        found = self._second_page(int(part)).extract_tables()
        return [[[cell or "" for cell in row] for row in table] for table in found]

    def member(self, part: str) -> Path | None:
        if part not in self._attachments:
            return None
        data = bytes(self._attachments[part].get_data())
        return save(io.BytesIO(data), part, 0)

    # --- text ---

    def _page(self, number: int) -> Any:
        return self._pdf[number - 1]

    def _text(self, number: int) -> str:
        return self._page_text(number)[0]

    @functools.lru_cache(maxsize=4)  # noqa: B019 - the reader lives for one call
    def _page_text(self, number: int) -> tuple[str, bool]:
        """Return the text of a page, and whether its columns were put in order."""
        page = self._page(number).get_textpage()
        text = str(page.get_text_range()).replace("\r\n", "\n").replace("\ufffe", "-").rstrip()
        in_columns = column_text(page, text)
        return in_columns or text, in_columns is not None

    @functools.cached_property
    def _second(self) -> Any:
        """The file, opened by the second engine."""
        return library("pdfplumber", "pdfplumber", "tables in PDF files").open(self.path)

    def _second_page(self, number: int) -> Any:
        return self._second.pages[number - 1]

    def _missing_words(self, number: int, text: str) -> list[str]:
        """Return the words that only the second engine finds on a page."""
        page = self._second_page(number)
        second = page.extract_text() or ""
        page.close()  # forgets its characters
        joined = "".join(_WORD.findall(text)).casefold()
        counted = Counter(word.casefold() for word in _WORD.findall(text))
        missing = []
        for word in _WORD.findall(second):
            if counted[word.casefold()]:
                counted[word.casefold()] -= 1
            elif word.casefold() not in joined:  # words split in another way are equal
                missing.append(word)
        return missing

    # --- what is not text of the page ---

    def _fields(self, page: Any) -> Iterator[str]:
        """Yield the annotations of a page: comments, and the values of form fields."""
        raw = self._raw
        for index in range(raw.FPDFPage_GetAnnotCount(page)):
            annotation = raw.FPDFPage_GetAnnot(page, index)
            kind = raw.FPDFAnnot_GetSubtype(annotation)
            contents = self._string(annotation, b"Contents")
            if kind == raw.FPDF_ANNOT_WIDGET:
                name, value = self._string(annotation, b"T"), self._string(annotation, b"V")
                yield f"form field {name!r}: {value!r}"
            elif contents and kind != raw.FPDF_ANNOT_LINK:
                author = self._string(annotation, b"T")
                yield f"comment{f' by {author}' if author else ''}: {' '.join(contents.split())}"
            raw.FPDFPage_CloseAnnot(annotation)

    def _string(self, annotation: Any, key: bytes) -> str:
        raw = self._raw
        size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
        buffer = ctypes.create_string_buffer(size)
        raw.FPDFAnnot_GetStringValue(
            annotation, key, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size
        )
        return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")

    def _hidden_on(self, number: int) -> Iterator[str]:
        page = self._page(number)
        if page.get_rotation():
            yield f"page {number} is rotated by {page.get_rotation()} degrees"
        comments = sum(line.startswith("comment") for line in self._fields(page))
        if comments:
            yield f"page {number}: {comments} comments"
        invisible, white = 0, 0
        for piece in page.get_objects(filter=[self._raw.FPDF_PAGEOBJ_TEXT]):
            mode = self._raw.FPDFTextObj_GetTextRenderMode(piece)
            invisible += mode == _INVISIBLE_MODE
            white += _is_white(self._raw, piece)
        if invisible:
            yield f"page {number}: {invisible} pieces of invisible text (the text is shown)"
        if white:
            yield f"page {number}: {white} pieces of white text (the text is shown)"

    @functools.cached_property
    def _attachments(self) -> dict[str, Any]:
        count = self._pdf.count_attachments()
        found = [self._pdf.get_attachment(index) for index in range(count)]
        return {str(one.get_name()): one for one in found}


def _is_white(raw: Any, piece: Any) -> bool:
    colours = [ctypes.c_uint() for _ in range(4)]
    if not raw.FPDFPageObj_GetFillColor(piece, *map(ctypes.byref, colours)):
        return False
    return all(one.value >= 250 for one in colours[:3])
