"""Text of pages in lines of our own syntax: a page cannot write what reads as ours.

Page text loses its line breaks and every character that nobody sees. In single quotes an
apostrophe stays only between two letters or digits (`Don't`); others become U+2019. So the quote
that ends a text is the first one that is not followed by a letter or digit.
"""

from __future__ import annotations

import re
import unicodedata

_APOSTROPHE = re.compile(r"(?<![^\W_])'|'(?![^\W_])")
_UNSEEN_LETTERS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")
_SELECTORS = re.compile(
    "(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_JOINERS = "\u200c\u200d"
_MARKED = re.compile(r"""["\[\]]|:( |$)""")
_LIKE_TITLE_SYNTAX = re.compile(r"""^"|\[\d+\]|\bTab \S+:|\(current\)|since observation""")
_LIKE_LINE = re.compile(
    r"(?m)^(?=\s*(?:\[\d+\] [A-Za-z]+|Tab \S+( \(current\))?:|Part \d+ of \d|since observation \d))"
)


def visible(text: str) -> str:
    """Page text on one line, without the characters that nobody sees.

    Control, bidirectional, tag and zero-width characters go. The joiners U+200C and U+200D stay
    between two letters or symbols beyond ASCII, as emoji and Indic and Persian words have them. Of
    several variation selectors in a row the first stays.
    """
    if not text.isprintable():
        text = "".join(_shown(text, at, character) for at, character in enumerate(text))
    if not text.isascii():
        text = _SELECTORS.sub("", _UNSEEN_LETTERS.sub(" ", text))
    return " ".join(text.split())


def _shown(text: str, at: int, character: str) -> str:
    """What one character of a text becomes."""
    if character.isprintable():
        return character
    if character in _JOINERS:
        around = (text[at - 1 : at], text[at + 1 : at + 2])
        return character if all(map(_is_joined, around)) else ""
    return "" if unicodedata.category(character) in ("Cf", "Cs", "Cn") else " "


def _is_joined(character: str) -> bool:
    return (
        bool(character) and not character.isascii() and unicodedata.category(character)[0] in "LMS"
    )


def unquoted(text: str) -> str:
    """Page text for between single quotes, which it cannot end."""
    return _APOSTROPHE.sub("\N{RIGHT SINGLE QUOTATION MARK}", visible(text))


def quoted(text: str, most: int = 80) -> str:
    """Page text in single quotes for a message, without quotes of its own, at most so long."""
    plain = visible(text)
    cut = plain if len(plain) <= most else plain[:most] + "\u2026"
    return "'" + unquoted(cut).replace('"', "\N{RIGHT DOUBLE QUOTATION MARK}") + "'"


def value(text: str) -> str:
    """Page text after `key: `, without apostrophes: old clients take the last one of a line for
    the end of the name. In double quotes where it could be read as more than a value."""
    plain = visible(text).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return _in_double_quotes(plain) if _MARKED.search(plain) else plain


def title(text: str) -> str:
    """Page text at the end of a line: in double quotes where it looks like our syntax."""
    plain = unquoted(text)
    return _in_double_quotes(plain) if _LIKE_TITLE_SYNTAX.search(plain) else plain


def notice(text: str) -> str:
    """A line of the server for between single quotes; quotes within it become double ones."""
    return _APOSTROPHE.sub('"', visible(text))


def paragraphs(text: str) -> str:
    """Page text of several lines: none begins like a line of our own."""
    lines = (
        line if line.isprintable() and line.isascii() else _kept_indent(line)
        for line in text.split("\n")
    )
    return _LIKE_LINE.sub("\\\\", "\n".join(lines))


def _kept_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))] + visible(line)


def _in_double_quotes(text: str) -> str:
    return '"' + text.replace('"', "\N{RIGHT DOUBLE QUOTATION MARK}") + '"'
