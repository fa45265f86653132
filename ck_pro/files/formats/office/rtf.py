"""RTF documents, as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...document import Document, Facts, Part
from ...problem import library

_HIDDEN = {rb"\v ": "hidden text", rb"\deleted": "deleted text", rb"\revised": "inserted text"}


class Reader(Document):
    """An RTF document."""

    def facts(self) -> Facts:
        data = self.path.read_bytes()
        hidden = [f"{text} (not marked in the text)" for w, text in _HIDDEN.items() if w in data]
        if rb"\object" in data:
            hidden.append("embedded objects")
        return Facts([f"{len(self._text().split()):,} words"], hidden)

    def parts(self) -> Sequence[Part]:
        return [Part("text", "text")]

    def blocks(self, part: str) -> Iterator[str]:
        yield from (f"{line}\n" for line in self._text().split("\n"))

    def _text(self) -> str:
        to_text = library("striprtf.striprtf", "striprtf", "RTF documents").rtf_to_text
        return str(to_text(self.path.read_bytes().decode("latin-1"), errors="replace")).rstrip()
