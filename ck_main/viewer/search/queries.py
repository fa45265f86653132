"""Translate what the user types into a query of SQLite's full-text search."""

from __future__ import annotations

import re

MAX_CHARS = 500
MAX_TERMS = 20
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')
_WORD = re.compile(r"\w")


def match_expression(text: str) -> str:
    """Return the FTS5 expression for a search; "" if it has no word to find.

    All words must occur, as beginnings of words. `"..."` finds a phrase. `-word` excludes.
    """
    found, excluded = list[str](), list[str]()
    for sign, phrase, word in _TERM.findall(text[:MAX_CHARS].replace("\0", " ")):
        term = phrase or word.replace('"', " ")
        if not _WORD.search(term):
            continue
        quoted = '"' + term.replace('"', '""') + '"' + ("" if phrase else "*")
        (excluded if sign else found).append(quoted)
    if not found:
        return ""
    expression = " AND ".join(found[:MAX_TERMS])
    return f"({expression}) NOT ({' OR '.join(excluded[:MAX_TERMS])})" if excluded else expression
