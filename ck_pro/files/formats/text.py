"""Plain text of any size and encoding, source code, JSON and JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..document import Document, Facts, Part
from ..encodings import encoding_of, is_guess

_SAMPLE = 1 << 16
_BLOCK = 1 << 14
_INVISIBLE = re.compile("[\u200b-\u200d\u202d\u202e\u2060\u2066-\u2068\ufeff]")
_COUNTED = 64 << 20


def encoding_text(encoding: str) -> str:
    """Return a fact about an encoding."""
    return f"encoding {encoding}" + " (a guess)" * is_guess(encoding)


def text_blocks(path: Path, encoding: str) -> Iterator[str]:
    """Yield a text in blocks of whole lines; a long line is cut."""
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        while block := file.read(_BLOCK):
            yield block + (file.readline(_BLOCK) if not block.endswith("\n") else "")


class Reader(Document):
    """A text file, which is read as a stream."""

    def facts(self) -> Facts:
        encoding = self._encoding()
        lines = invisible = longest = damaged = 0
        for text in self._pieces(limit=_COUNTED):
            lines += text.count("\n")
            longest = max(longest, max(map(len, text.split("\n"))))
            invisible += len(_INVISIBLE.findall(text))
            damaged += text.count("\ufffd")
        partly = self.path.stat().st_size > _COUNTED
        counted = f"more than {lines:,} lines" if partly else f"{lines:,} lines"
        hidden = [f"{invisible:,} invisible characters"] if invisible else []
        if damaged:
            hidden.append(f"{damaged:,} characters are damaged, or the encoding is another one")
        return Facts([encoding_text(encoding), counted, f"longest {longest:,} characters"], hidden)

    def parts(self) -> Sequence[Part]:
        return [Part("text", "text")]

    def blocks(self, part: str) -> Iterator[str]:
        return text_blocks(self.path, self._encoding())

    def _encoding(self) -> str:
        with self.path.open("rb") as file:
            return encoding_of(file.read(_SAMPLE))

    def _pieces(self, limit: int) -> Iterator[str]:
        seen = 0
        with self.path.open(encoding=self._encoding(), errors="replace", newline="") as file:
            while seen < limit and (text := file.read(1 << 20)):
                seen += len(text)
                yield text
