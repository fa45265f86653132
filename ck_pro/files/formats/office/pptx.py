"""PowerPoint presentations: text, tables, chart data, notes, hidden slides."""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...document import Document, Facts, Part, Reading, Row
from ...problem import library
from ...sheet import cell_text
from ...unpacking import check_office_zip, save
from ...xml import local

_EMBEDDED = "ppt/embeddings/"


class Reader(Document):
    """A presentation. Each slide is a part, also hidden ones."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        check_office_zip(path)

    def facts(self) -> Facts:
        slides = list(self._deck.slides)
        hidden = []
        for number, slide in enumerate(slides, 1):
            if _is_hidden(slide):
                hidden.append(f"slide {number} is hidden")
            if _notes(slide):
                hidden.append(f"slide {number} has speaker notes")
            if comments := len(self._comments(slide)):
                hidden.append(f"slide {number} has {comments} comments")
            outside = sum(1 for shape in _shapes(slide.shapes) if self._is_outside(shape))
            if outside:
                hidden.append(f"slide {number}: {outside} shapes outside the slide")
        with zipfile.ZipFile(self.path) as archive:
            names = archive.namelist()
        hidden += [f"embedded file {n!r}" for n in names if n.startswith(_EMBEDDED)]
        if any(name.endswith("vbaProject.bin") for name in names):
            hidden.append("macros (VBA)")
        return Facts([f"{len(slides)} slides"], hidden)

    def parts(self) -> Sequence[Part]:
        made = []
        for number, slide in enumerate(self._deck.slides, 1):
            is_hidden = _is_hidden(slide)
            if not is_hidden or self.reading.hidden == "mark":
                made.append(Part(str(number), f"slide {number}" + " (hidden)" * is_hidden))
        with zipfile.ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if name.startswith(_EMBEDDED)]
        return [*made, *(Part(name, f"embedded file {name!r}", True) for name in names)]

    def blocks(self, part: str) -> Iterator[str]:
        slide = self._deck.slides[int(part) - 1]
        for shape in _in_reading_order(slide.shapes):
            is_outside = self._is_outside(shape)
            if is_outside and self.reading.hidden == "omit":
                continue
            mark = "[outside the slide] " if is_outside else ""
            yield from (f"{mark}{line}\n" for line in self._lines(shape) if line.strip())
        if _notes(slide):
            yield f"[speaker notes: {_notes(slide)}]\n"
        yield from (f"[{line}]\n" for line in self._comments(slide))

    def tables(self, part: str) -> list[list[Row]]:
        slide = self._deck.slides[int(part) - 1] if part.isdigit() else None
        found = []
        for shape in _in_reading_order(slide.shapes) if slide is not None else ():
            if getattr(shape, "has_table", False):
                found.append([[cell.text for cell in row.cells] for row in shape.table.rows])
            elif getattr(shape, "has_chart", False):
                found += _chart_tables(shape.chart)
        return found

    def member(self, part: str) -> Path | None:
        if not part.startswith(_EMBEDDED):
            return None
        with zipfile.ZipFile(self.path) as archive, archive.open(part) as source:
            return save(source, part, 0)

    @functools.cached_property
    def _deck(self) -> Any:
        return library("pptx", "python-pptx", "PowerPoint presentations").Presentation(self.path)

    @functools.cached_property
    def _authors(self) -> dict[str, str]:
        """Names of the authors of comments, by id."""
        found = {}
        for relation in self._deck.part.rels.values():
            if relation.reltype.rpartition("/")[2] in ("commentAuthors", "authors"):
                root = self._parsed(relation)
                found.update({one.get("id", ""): one.get("name", "") for one in root})
        return found

    def _comments(self, slide: Any) -> list[str]:
        """Return the comments on a slide, of both forms that PowerPoint writes."""
        found = []
        for relation in slide.part.rels.values():
            if relation.reltype.rpartition("/")[2] != "comments":
                continue
            for one in self._parsed(relation).iter():
                if local(one) in ("cm", "reply"):
                    words = [t.text or "" for t in _own(one) if local(t) in ("text", "t")]
                    by = self._authors.get(one.get("authorId", ""), "an unknown author")
                    found.append(f"comment by {by}: {' '.join(' '.join(words).split())}")
        return found

    def _parsed(self, relation: Any) -> Any:
        etree = library("lxml.etree", "lxml", "PowerPoint presentations")
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        return etree.fromstring(relation.target_part.blob, parser)

    def _is_outside(self, shape: Any) -> bool:
        if None in (shape.left, shape.top, shape.width, shape.height):
            return False
        right, bottom = shape.left + shape.width, shape.top + shape.height
        width, height = self._deck.slide_width, self._deck.slide_height
        return bool(right <= 0 or bottom <= 0 or shape.left >= width or shape.top >= height)

    def _lines(self, shape: Any) -> Iterator[str]:
        if getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield f"| {' | '.join(cell.text.replace(chr(10), ' / ') for cell in row.cells)} |"
        elif getattr(shape, "has_chart", False):
            chart = shape.chart
            title = chart.chart_title.text_frame.text if chart.has_title else ""
            yield f"[chart: {title or 'without a title'}]"
            try:
                for table in _chart_tables(chart):
                    yield from ("| " + " | ".join(row) + " |" for row in table)
            except (NotImplementedError, KeyError, ValueError):  # kinds that the library lacks
                yield "[the data of this chart cannot be read; render the slide]"
        elif shape.has_text_frame:
            for paragraph in shape.text_frame.paragraphs:
                yield "  " * paragraph.level + paragraph.text.replace("\v", "\n")
        else:
            named = shape._element.xpath(".//p:cNvPr/@descr")
            yield f"[{_kind(shape)}: {named[0] if named and named[0] else 'no description'}]"


def _kind(shape: Any) -> str:
    return (
        "image" if shape.shape_type is not None and "PICTURE" in str(shape.shape_type) else "shape"
    )


def _own(comment: Any) -> Iterator[Any]:
    """Yield the elements of a comment, without those of its replies."""
    for child in comment:
        if local(child) not in ("replyLst", "reply"):
            yield child
            yield from _own(child)


def _notes(slide: Any) -> str:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    return "" if frame is None else str(frame.text).strip()


def _is_hidden(slide: Any) -> bool:
    return slide._element.get("show") in ("0", "false")


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yield all shapes, also those in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _in_reading_order(shapes: Any) -> list[Any]:
    return sorted(_shapes(shapes), key=lambda shape: (shape.top or 0, shape.left or 0))


def _chart_tables(chart: Any) -> list[list[Row]]:
    """Return the data of a chart: one table for each of its plots."""
    found = []
    for plot in chart.plots:
        series = list(plot.series)
        rows = [["", *(str(one.name) for one in series)]]
        for index, category in enumerate(plot.categories):
            values = [tuple(one.values) for one in series]
            rows.append([str(category), *(cell_text(v[index]) for v in values if index < len(v))])
        found.append(rows)
    return found
