"""EPUB books: the chapters in reading order, each as an HTML page."""

from __future__ import annotations

import functools
import posixpath
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..document import Document, Facts, Part, Reading
from ..problem import ToolError
from ..unpacking import save
from ..xml import OfficeZip, local
from .html import Reader as HtmlReader


class Reader(Document):
    """A book. Its parts are its chapters, by number."""

    def __init__(self, path: Path, reading: Reading):
        super().__init__(path, reading)
        self._zip = OfficeZip(path)

    def facts(self) -> Facts:
        titles = [
            one.text or ""
            for one in self._zip.root(self._package_name).iter()
            if local(one) == "title"
        ]
        return Facts([f"title {titles[0] if titles else ''!r}", f"{len(self._chapters)} chapters"])

    def parts(self) -> Sequence[Part]:
        return [Part(str(n), f"chapter {n}") for n in range(1, len(self._chapters) + 1)]

    def blocks(self, part: str) -> Iterator[str]:
        yield from self._chapter(part).blocks("page")

    def tables(self, part: str) -> list[list[list[str]]]:
        return self._chapter(part).tables("page")

    def _chapter(self, part: str) -> HtmlReader:
        name = self._chapters[int(part) - 1]
        with self._zip.open(name) as source:
            return HtmlReader(save(source, name, 0), self.reading)

    @functools.cached_property
    def _package_name(self) -> str:
        container = self._zip.root("META-INF/container.xml")
        for one in container.iter() if container is not None else ():
            if local(one) == "rootfile" and one.get("full-path") in self._zip.names:
                return str(one.get("full-path"))
        raise ToolError("the file is damaged: the book has no package file")

    @functools.cached_property
    def _chapters(self) -> list[str]:
        """Return the names of the chapters in the order of the spine."""
        package = self._zip.root(self._package_name)
        folder = posixpath.dirname(self._package_name)
        items = {
            one.get("id"): one.get("href", "") for one in package.iter() if local(one) == "item"
        }
        order = [one.get("idref") for one in package.iter() if local(one) == "itemref"]
        hrefs = [urllib.parse.unquote(items[one]) for one in order if one in items]
        names = [posixpath.normpath(posixpath.join(folder, href)) for href in hrefs]
        known = set(self._zip.names)
        return [name for name in dict.fromkeys(names) if name in known]  # each chapter once
