"""HTML pages as text: headings, lists, links, tables; scripts and hidden elements are marked."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..document import Document, Facts, Part, Row
from ..encodings import encoding_of
from ..problem import library

_SKIPPED = ("script", "style", "template", "noscript", "head")
_BLOCKS = (
    *("p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "ul", "ol"),
    *("table", "tr", "blockquote", "figure", "figcaption", "form", "fieldset", "dl", "dt", "dd"),
    *("li", "pre", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "body", "html", "details", "summary"),
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CHARSET = re.compile(rb"""<meta[^>]+charset=["']?([\w-]+)""", re.IGNORECASE)
_MAX_DEPTH = 400
_BREAK = "\0"
"""A line end between blocks; no page contains this character."""


class Reader(Document):
    """An HTML page, read without running its scripts."""

    def facts(self) -> Facts:
        root = self._root
        title = root.findtext(".//title") or ""
        hidden = [f"{len(list(root.iter('script')))} scripts, which are not run"]
        hidden = hidden if any(True for _ in root.iter("script")) else []
        comments = [one for one in root.iter() if not isinstance(one.tag, str)]
        if comments:
            hidden.append(f"{len(comments)} comments in the source")
        invisible = sum(1 for one in root.iter() if _is_hidden(one))
        if invisible:
            hidden.append(f"{invisible} hidden elements")
        tables = sum(1 for _ in root.iter("table"))
        return Facts([f"title {' '.join(title.split())!r}", f"{tables} tables"], hidden)

    def parts(self) -> Sequence[Part]:
        return [Part("page", "page")]

    def blocks(self, part: str) -> Iterator[str]:
        text = "".join(self._text(self._root, 0, False))
        yield from (
            f"{line}\n" for line in re.sub(r" *(\0[ \0]*)+", "\n", text).strip().split("\n")
        )

    def tables(self, part: str) -> list[list[Row]]:
        found = []
        for table in self._root.iter("table"):
            rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
            found.append(
                [[_flat(c) for c in row if c.tag in ("td", "th")] for row in rows if len(row)]
            )
        return found

    @functools.cached_property
    def _root(self) -> Any:
        html = library("lxml.html", "lxml", "HTML pages")
        data = self.path.read_bytes()
        declared = _CHARSET.search(data[:4096])
        encoding = declared[1].decode("ascii") if declared else encoding_of(data[:65_536])
        parser = html.HTMLParser(encoding=encoding, no_network=True, huge_tree=False)
        return html.document_fromstring(data or b"<html></html>", parser=parser)

    def _text(self, element: Any, depth: int, verbatim: bool) -> Iterator[str]:
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED:
            return
        if depth > _MAX_DEPTH:
            yield _flat(element)
            return
        if _is_hidden(element):
            if self.reading.hidden == "mark":
                inner = "".join(self._content(element, depth, verbatim)).replace(_BREAK, " ")
                if text := " ".join(inner.split()):
                    yield f"[hidden: {text}]"
            return
        is_block = tag in _BLOCKS
        if is_block:
            yield _BREAK
        yield from self._content(element, depth, verbatim)
        if is_block:
            yield _BREAK

    def _content(self, element: Any, depth: int, verbatim: bool) -> Iterator[str]:
        """Yield the text in an element, with the marks of its kind."""
        yield _before(element)
        verbatim = verbatim or element.tag in ("pre", "textarea")
        yield element.text if verbatim and element.text else _collapsed(element.text)
        for child in element:
            yield from self._text(child, depth + 1, verbatim)
            yield child.tail if verbatim and child.tail else _collapsed(child.tail)
        yield _after(element)


def _before(element: Any) -> str:
    tag = element.tag
    if re.fullmatch("h[1-6]", tag):
        return "#" * int(tag[1]) + " "
    if tag == "img":
        return f"[image: {element.get('alt') or 'no description'}]"
    if tag == "input" and element.get("type") in ("checkbox", "radio"):
        return "[x]" if element.get("checked") is not None else "[ ]"
    return {"li": "- ", "br": "\n", "td": "| ", "th": "| ", "del": "~~", "s": "~~"}.get(tag, "")


def _after(element: Any) -> str:
    tag = element.tag
    if tag == "a" and element.get("href"):
        return f" ({element.get('href')})"
    if tag == "sup":
        return ""
    return {"td": " ", "th": " ", "tr": "|", "del": "~~", "s": "~~"}.get(tag, "")


def _is_hidden(element: Any) -> bool:
    if not isinstance(element.tag, str):
        return False
    style = element.get("style") or ""
    return element.get("hidden") is not None or bool(_HIDDEN_STYLE.search(style))


def _flat(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


def _collapsed(text: str | None) -> str:
    return re.sub(r"\s+", " ", text) if text else ""
