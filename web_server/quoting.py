"""Quote page text, so that it cannot imitate the syntax of observations and messages.

Line breaks and invisible characters are removed from page text. In single quotes an apostrophe
stays only between two letters or digits (`Don't`); others become U+2019. So a quoted text ends at
the first apostrophe that no letter or digit follows.
"""

from __future__ import annotations

import re
import unicodedata

_APOSTROPHE = re.compile(r"(?<![^\W_])'|'(?![^\W_])")
_INVISIBLE_LETTERS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")
_SELECTORS = re.compile(
    "(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
_JOINERS = "\u200c\u200d"
_MARKED = re.compile(r"""["\[\]]|:( |$)""")
_LIKE_TITLE_SYNTAX = re.compile(r"""^"|\[\d+\]|\bTab \S+:|\(current\)|since observation""")
_LIKE_LINE = re.compile(
    r"(?m)^(?=[^\S\n]*(?:\[\d+\] [A-Za-z]+|Tab \S+( \(current\))?:|Part \d+ of \d|"
    r"Parts \d+ to \d|since observation \d))"
)


def visible(text: str) -> str:
    """Return page text on one line, without invisible characters.

    Control, bidirectional, tag and zero-width characters are removed. The joiners U+200C and
    U+200D stay between two letters or symbols beyond ASCII, as in emoji and in Indic and Persian
    words. The first of several consecutive variation selectors stays.
    """
    if not text.isprintable():
        text = "".join(_shown(text, at, character) for at, character in enumerate(text))
    if not text.isascii():
        text = _SELECTORS.sub("", _INVISIBLE_LETTERS.sub(" ", text))
    return " ".join(text.split())


def _shown(text: str, at: int, character: str) -> str:
    """Return the replacement of one character in a text."""
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
    """Return page text for use between single quotes, which it cannot end."""
    return _APOSTROPHE.sub("\N{RIGHT SINGLE QUOTATION MARK}", visible(text))


def quoted(text: str, limit: int = 80) -> str:
    """Return page text in single quotes, without inner quotes.

    Args:
        text: the page text.
        limit: maximum length in characters; longer text is cut.
    """
    plain = visible(text)
    cut = plain if len(plain) <= limit else plain[:limit] + "\u2026"
    return "'" + unquoted(cut).replace('"', "\N{RIGHT DOUBLE QUOTATION MARK}") + "'"


def value(text: str) -> str:
    """Return page text for use after `key: `, in double quotes if it could be read as syntax.

    Apostrophes are replaced, because old clients read the last one of a line as the end of the
    name.
    """
    plain = visible(text).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return _in_double_quotes(plain) if _MARKED.search(plain) else plain


def title(text: str) -> str:
    """Return page text for the end of a line, in double quotes if it looks like syntax."""
    plain = unquoted(text)
    return _in_double_quotes(plain) if _LIKE_TITLE_SYNTAX.search(plain) else plain


def notice(text: str) -> str:
    """Return a text of the server for use between single quotes; inner quotes become double."""
    return _APOSTROPHE.sub('"', visible(text))


def paragraphs(text: str) -> str:
    """Return page text of several lines, none of which begins like a line of an observation."""
    lines = (
        line if line.isprintable() and line.isascii() else _kept_indent(line)
        for line in text.split("\n")
    )
    return _LIKE_LINE.sub("\\\\", "\n".join(lines))


def begins_like_line(text: str) -> bool:
    """Whether a text begins like a line of an observation."""
    return _LIKE_LINE.match(text) is not None


def verbatim(text: str) -> str:
    """Return page text with its white space, without invisible characters."""
    if text.isprintable():
        return text
    kept = (
        character if character in "\n\t" else _shown(text, at, character)
        for at, character in enumerate(text)
    )
    return "".join(kept)


def _kept_indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))] + visible(line)


def _in_double_quotes(text: str) -> str:
    return '"' + text.replace('"', "\N{RIGHT DOUBLE QUOTATION MARK}") + '"'
