"""The numbers and bullets of list paragraphs, which a Word document stores only as rules."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from ...xml import OfficeZip

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MAX_LETTERS = 780
"""Number up to which letters are used: 30 times "z"."""
_ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


class Numbering:
    """Counts list paragraphs in document order.

    Args:
        zip: the document.
    """

    def __init__(self, zip: OfficeZip):
        self._levels: dict[tuple[str, int], tuple[str, str, int]] = {}
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        self._abstract_of: dict[str, str] = {}
        self._of_style: dict[str, tuple[str, int]] = {}
        root = zip.root("word/numbering.xml")
        if root is not None:
            self._read(root)
        styles = zip.root("word/styles.xml")
        for style in styles.iter(f"{_W}style") if styles is not None else ():
            found = _numbered(style.find(f"{_W}pPr/{_W}numPr"))
            if found is not None:
                self._of_style[str(style.get(f"{_W}styleId"))] = found

    def label(self, paragraph: Any) -> str:
        """Return the number or bullet before a paragraph, with its indentation; "" if none."""
        found = _numbered(paragraph.find(f"{_W}pPr/{_W}numPr"))
        if found is None:
            found = self._of_style.get(_val(paragraph.find(f"{_W}pPr/{_W}pStyle")))
        if found is None or found[0] == "0":
            return ""
        number, level = found
        abstract = self._abstract_of.get(number, number)
        kind, text, start = self._levels.get((abstract, level), ("bullet", "", 1))
        if kind == "none":
            return ""
        indent = "  " * level
        if kind == "bullet":
            return f"{indent}- "
        counts = self._counts[abstract]
        counts[level] = counts.get(level, start - 1) + 1
        for deeper in [one for one in counts if one > level]:
            del counts[deeper]

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            its_kind, _, its_start = self._levels.get((abstract, at), ("decimal", "", 1))
            return _formatted(counts.get(at, its_start), its_kind)

        return indent + re.sub(r"%(\d)", shown, text) + " "

    def _read(self, root: Any) -> None:
        for abstract in root.iter(f"{_W}abstractNum"):
            abstract_id = str(abstract.get(f"{_W}abstractNumId"))
            for level in abstract.iter(f"{_W}lvl"):
                start = _val(level.find(f"{_W}start"))
                self._levels[abstract_id, int(level.get(f"{_W}ilvl"))] = (
                    _val(level.find(f"{_W}numFmt")) or "decimal",
                    _val(level.find(f"{_W}lvlText")),
                    int(start) if start.isdigit() else 1,
                )
        for num in root.iter(f"{_W}num"):
            self._abstract_of[str(num.get(f"{_W}numId"))] = _val(num.find(f"{_W}abstractNumId"))


def _numbered(properties: Any) -> tuple[str, int] | None:
    if properties is None:
        return None
    number = _val(properties.find(f"{_W}numId"))
    level = _val(properties.find(f"{_W}ilvl"))
    return (number, int(level) if level.isdigit() else 0) if number else None


def _formatted(number: int, kind: str) -> str:
    if kind in ("lowerLetter", "upperLetter") and 0 < number <= _MAX_LETTERS:
        letter = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letter.upper() if kind == "upperLetter" else letter
    if kind in ("lowerRoman", "upperRoman") and 0 < number < 40:
        text = ""
        for value, sign in _ROMAN:
            while number >= value:
                text, number = text + sign, number - value
        return text.upper() if kind == "upperRoman" else text
    return str(number)


def _val(element: Any) -> str:
    return "" if element is None else str(element.get(f"{_W}val") or "")
