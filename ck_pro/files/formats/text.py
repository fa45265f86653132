"""Plain text of any size and encoding, source code, JSON and JSON lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence

from ..document import Document, Facts, Part

_SAMPLE = 1 << 16
_BLOCK = 1 << 12
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_INVISIBLE = re.compile("[\u200b-\u200d\u202d\u202e\u2060\u2066-\u2068\ufeff]")
_COUNTED = 64 << 20


def encoding_of(start: bytes) -> str:
    """Guess the encoding of a text from its first bytes: a byte order mark, UTF-8, or cp1252."""
    for mark, name in _BOMS:
        if start.startswith(mark):
            return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


class Reader(Document):
    """A text file, which is read as a stream."""

    def facts(self) -> Facts:
        encoding = self._encoding()
        lines = invisible = longest = 0
        for text in self._pieces(limit=_COUNTED):
            lines += text.count("\n")
            longest = max(longest, max(map(len, text.split("\n"))))
            invisible += len(_INVISIBLE.findall(text))
        partly = self.path.stat().st_size > _COUNTED
        counted = f"more than {lines:,} lines" if partly else f"{lines:,} lines"
        hidden = [f"{invisible:,} invisible characters"] if invisible else []
        return Facts([f"encoding {encoding}", counted, f"longest {longest:,} characters"], hidden)

    def parts(self) -> Sequence[Part]:
        return [Part("text", "text")]

    def blocks(self, part: str) -> Iterator[str]:
        with self.path.open(encoding=self._encoding(), errors="replace", newline="") as file:
            while block := file.read(_BLOCK):
                yield block + (file.readline() if not block.endswith("\n") else "")

    def _encoding(self) -> str:
        with self.path.open("rb") as file:
            return encoding_of(file.read(_SAMPLE))

    def _pieces(self, limit: int) -> Iterator[str]:
        seen = 0
        with self.path.open(encoding=self._encoding(), errors="replace", newline="") as file:
            while seen < limit and (text := file.read(1 << 20)):
                seen += len(text)
                yield text
