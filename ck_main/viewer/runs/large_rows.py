"""Open a large row fast: find the places of its steps, and parse each step on access.

`ck_pro.trajectory.reading.big_json` opens any large JSON, but passes over it several times. The
rows of this project have one large part, the steps of the session, so one pass finds all places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ck_pro.journal import LazyList
from ck_pro.trajectory.reading.big_json import JsonFile, open_json

_DECODER = json.JSONDecoder()
_CUT = 2  # characters of a cut number that the decoder leaves: "1.", "1e", "1e+"
_WINDOW = 4 * 2**20
_MAX_WINDOW = 64 * 2**20
_BLANK = " \t\r\n"


class UnexpectedForm(ValueError):
    """The line is not a row in the usual form, or not JSON."""


def open_row(file: JsonFile, at: int, length: int) -> Mapping[str, Any]:
    """Open a row without its steps in memory.

    Args:
        file: the file.
        at, length: position of the row in bytes.

    Raises:
        UnexpectedForm: it has another form; `open_json` can open it if it is JSON.
    """
    walk = _Walk(file, at, at + length)
    row = walk.members()
    walk.expect_end()
    return row


class _Walk:
    """Goes through a row once. It reads bytes as Latin-1, so that positions are those of bytes."""

    def __init__(self, file: JsonFile, at: int, end: int) -> None:
        self._file, self._at, self._end = file, at, end
        self._text, self._base = "", at

    def members(self) -> dict[str, Any]:
        """Read an object; the lists `steps` in it and in `session` stay on the disk."""
        found: dict[str, Any] = {}
        self._take("{")
        while True:
            name = self._value()
            self._take(":")
            mark = self._peek()
            if name == "session" and mark == "{":
                found[name] = self.members()
            elif name == "steps" and mark == "[":
                found[name] = self._list()
            else:
                found[str(name)] = self._value()
            if self._take(",}") == "}":
                return found

    def expect_end(self) -> None:
        """Check that only blanks follow."""
        rest = self._file.read(self._at, min(self._end - self._at, 4096))
        if rest.strip():
            raise UnexpectedForm("more after the row's end")

    def _list(self) -> LazyList:
        file, places = self._file, list[tuple[int, int]]()
        self._take("[")
        if self._peek() == "]":
            self._take("]")
            return LazyList([], lambda place: None)
        while True:
            self._peek()
            places.append((self._at, self._skip()))
            if self._take(",]") == "]":
                return LazyList(places, lambda place: open_json(file, place[0], place[1]))

    def _value(self) -> Any:
        """Read a value; a large one is opened on the disk."""
        self._peek()
        at = self._at
        return open_json(self._file, at, self._skip())

    def _skip(self) -> int:
        """Go to the end of the value at the position; return its length."""
        at, size = self._at, _WINDOW
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, at - self._base)
                left = self._text[end : end + _CUT + 1]
                more = self._base + len(self._text) < self._end
                if more and len(left) <= _CUT and not left.strip(".eE+-"):
                    raise ValueError("a number may go on")
                self._at = self._base + end
                return self._at - at
            except (ValueError, RecursionError) as e:
                whole = self._base == at and self._base + len(self._text) >= self._end
                if whole or size > _MAX_WINDOW or isinstance(e, RecursionError):
                    raise UnexpectedForm(str(e)) from None
            self._load(at, size)
            size *= 2

    def _load(self, at: int, size: int) -> None:
        self._base = at
        self._text = self._file.read(at, min(size, self._end - at)).decode("latin-1")

    def _peek(self) -> str:
        """Return the next character that is not blank, and go to it."""
        while True:
            offset = self._at - self._base
            if offset >= len(self._text):
                if self._at >= self._end:
                    raise UnexpectedForm("the row ends too early")
                self._load(self._at, _WINDOW)
                offset = 0
            if self._text[offset] not in _BLANK:
                return self._text[offset]
            self._at += 1

    def _take(self, marks: str) -> str:
        """Return the next character, which must be one of the marks."""
        mark = self._peek()
        if mark not in marks:
            raise UnexpectedForm(f"{mark!r} instead of {marks!r} at byte {self._at}")
        self._at += 1
        return mark
