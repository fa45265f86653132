"""The facts about output rows that the table shows, without parsing the rows.

A row of an output begins with the facts about its task and its session, and ends with its score.
The steps between them, most of the row, are not read.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_CHUNK = 4 * 2**20
_HEADS = (2**14, 2**16, 2**18, 2**21)
_TAILS = (2**12, 2**16)
_MARK_BYTES = 4096
_MEMBER = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:\s*')
_NEXT = re.compile(r"\s*([,}])")
_EVAL = re.compile(r'(?<=[\s,])"eval"\s*:\s*')
_DECODER = json.JSONDecoder()
_LARGE = 1000
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class LinePlace:
    """A line of a file: its number from 1, and its position in bytes without the line break."""

    number: int
    at: int
    length: int
    complete: bool = True


def line_places(fd: int, at: int = 0, number: int = 1) -> Iterator[LinePlace]:
    """Yield the non-blank lines of a file from a position; the last may be incomplete.

    Args:
        fd: of the file.
        at: where a line begins.
        number: of that line.
    """
    start = position = at
    blank = True
    while chunk := os.pread(fd, _CHUNK, position):
        offset = 0
        while (end := chunk.find(b"\n", offset)) >= 0:
            blank = blank and not chunk[offset:end].strip()
            if not blank:
                yield LinePlace(number, start, position + end - start)
            number, offset, blank = number + 1, end + 1, True
            start = position + offset
        if offset < len(chunk):
            blank = blank and not chunk[offset:].strip()
        position += len(chunk)
    if not blank:
        yield LinePlace(number, start, position - start, complete=False)


def row_head(fd: int, place: LinePlace) -> dict[str, Any] | None:
    """Return the members of a row before its steps, with those of `session` under `session`.

    The result also has `eval` if it is at the end. None if the row has another order, or is not
    JSON: parse it as a whole.
    """
    for size in _HEADS:
        text = _text(os.pread(fd, min(size, place.length), place.at))
        head = _members(text, 0)
        if head is not None:
            scored = _eval_at_end(fd, place)
            if scored is not None:
                head["eval"] = scored
            return head
        if size >= place.length:
            return None
    return None


def _text(data: bytes) -> str:
    # a cut inside a character, or invalid bytes: the values around them are still readable
    return data.removeprefix(_BOM).decode("utf-8", "replace")


def _members(text: str, at: int) -> dict[str, Any] | None:
    """Parse the members of an object up to `steps`; None if they do not fit in the text."""
    at = _skip(text, at, "{")
    found: dict[str, Any] = {}
    while at >= 0:
        name = _MEMBER.match(text, at)
        if name is None:
            return None
        at = name.end()
        if name[1] == "steps" and text[at : at + 1] == "[":
            return found
        if name[1] == "session" and text[at : at + 1] == "{":
            inside = _members(text, at)
            if inside is None:
                return None
            return {**found, "session": inside}
        try:
            decoded = _members_of_info if name[1] == "info" else _decoded
            found[_unescaped(name[1])], at = decoded(text, at)
        except (ValueError, RecursionError):
            return None
        at = _skip(text, at, ",")
    return None


_last_large = ("", object())
"""Text and value of the last large value: the settings, which are the same in each row."""


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """Parse the value at a position; return it, and the position after it."""
    global _last_large
    known, value = _last_large
    if known and text.startswith(known, at):
        return value, at + len(known)
    value, end = _DECODER.raw_decode(text, at)
    if end - at > _LARGE and text[at] in '{["':
        _last_large = (text[at:end], value)
    return value, end


def _unescaped(name: str) -> str:
    return str(json.loads(f'"{name}"')) if "\\" in name else name


def _members_of_info(text: str, at: int) -> tuple[Any, int]:
    """Parse an object member by member; return it, and the position after it."""
    found: dict[str, Any] = {}
    inside = _skip(text, at, "{")
    while inside >= 0 and (name := _MEMBER.match(text, inside)) is not None:
        found[_unescaped(name[1])], end = _decoded(text, name.end())
        inside = _skip(text, end, ",")
        if inside < 0:
            after = _skip(text, end, "}")
            if after < 0:
                raise ValueError("the object does not end")
            return found, after
    return _decoded(text, at)


def _skip(text: str, at: int, mark: str) -> int:
    """Return the position after a mark and blanks before it; -1 if it is not there."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at + 1 if text[at : at + 1] == mark else -1


def line_mark(fd: int, place: LinePlace) -> int:
    """Return a checksum of the start and the end of a line."""
    size = min(_MARK_BYTES, place.length)
    start = os.pread(fd, size, place.at)
    return zlib.crc32(os.pread(fd, size, place.at + place.length - size), zlib.crc32(start))


def _eval_at_end(fd: int, place: LinePlace) -> Mapping[str, Any] | None:
    """Return the member `eval` of a row if it is among its last members."""
    for size in _TAILS:
        size = min(size, place.length)
        text = _text(os.pread(fd, size, place.at + place.length - size))
        found = _eval_in(text)
        if found is not None or size == place.length:
            return found
    return None


def _eval_in(text: str) -> Mapping[str, Any] | None:
    """Return the member `eval` at the end of the text of a row."""
    last = text.rfind('"eval"')
    found = _EVAL.match(text, last) if last >= 0 else None
    if found is None:
        return None
    try:
        value, at = _DECODER.raw_decode(text, found.end())
        while (mark := _NEXT.match(text, at)) is not None:
            if mark[1] == "}":  # of the row: its line ends here
                good = not text[mark.end() :].strip() and isinstance(value, dict)
                return value if good else None
            name = _MEMBER.match(text, mark.end())
            if name is None:
                return None
            _, at = _DECODER.raw_decode(text, name.end())
    except (ValueError, RecursionError):
        pass
    return None
