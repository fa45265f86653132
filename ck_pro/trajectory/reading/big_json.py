"""Read and write JSON that is too large for memory.

`open_json` does not parse a large document. It finds the position of each part of an object or a
list in the file, and parses a part on access; a large part is opened in the same way. The results
are ordinary `Mapping` and `Sequence` objects, so callers need not know. `json_pieces` writes such
values, and values that are generated during writing.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from ck_pro.exceptions import InputError
from ck_pro.journal import LazyList

LARGE = 2**20
"""Size in bytes from which a value is opened instead of parsed."""
_WINDOW = 2**20
_NESTED = re.compile(rb'[\[\]{}"]')
_OWN = re.compile(rb'[\[\]{}",]')
_IN_TEXT = re.compile(rb'(?:[^"\\]+|\\.)*', re.DOTALL)
_BLANK = b" \t\r\n"


class NotJsonError(InputError):
    """A large document is not JSON; raised on access to the invalid part."""


class Pairs:
    """An object that is generated during writing, as an iterator of `(name, value)`."""

    def __init__(self, pairs: Iterator[tuple[str, Any]]):
        self.pairs = pairs


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a JSON list, in memory or on disk."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def plain(value: Any) -> Any:
    """Load a value into memory as dicts and lists."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if is_list(value) else value


# --- reading ---------------------------------------------------------------------------------


class JsonFile:
    """A file that stays open while any of its values is in use.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path):
        self._fd = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._fd)

    def read(self, at: int, length: int) -> bytes:
        """Read `length` bytes at a position; fewer at the end of the file."""
        return os.pread(self._fd, length, at)


def open_json(file: JsonFile, at: int, length: int) -> Any:
    """Parse the JSON value in a part of a file; open it if it is large.

    Args:
        file: the file.
        at, length: position of the value in bytes, with surrounding blanks.

    Raises:
        NotJsonError: the bytes read so far are not JSON.
    """
    head = file.read(at, min(length, 64)).lstrip(_BLANK)[:1]
    if length >= LARGE and head == b"{":
        return LargeObject(file, at, length)
    if length >= LARGE and head == b"[":
        return LargeList(file, at, length)
    try:
        return json.loads(file.read(at, length))
    except (ValueError, RecursionError) as e:
        raise NotJsonError(f"not JSON: {e} (in the value at byte {at})") from None


class LargeObject(Mapping[str, Any]):
    """An object in a file, parsed member by member."""

    def __init__(self, file: JsonFile, at: int, length: int):
        self._file = file
        self._places: dict[str, tuple[int, int]] = {}
        for start, end in _parts(file, at, length, b"}"):
            name, value_at = _name(file, start, end)
            self._places[name] = value_at, end - value_at
        self._opened: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._opened:
            at, length = self._places[name]
            value = open_json(self._file, at, length)
            if not isinstance(value, LargeObject | LargeList):
                return value
            self._opened[name] = value  # holds positions only, not the values
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class LargeList(LazyList):
    """A list in a file, parsed entry by entry."""

    def __init__(self, file: JsonFile, at: int, length: int):
        parts = list(_parts(file, at, length, b"]"))
        super().__init__(parts, lambda part: open_json(file, part[0], part[1] - part[0]))


def _name(file: JsonFile, start: int, end: int) -> tuple[str, int]:
    """Return the name of an object's member, and the position of its value."""
    for size in (256, end - start):
        head = file.read(start, min(size, end - start))
        blank = len(head) - len(head.lstrip(_BLANK))
        found = _IN_TEXT.match(head, blank + 1)
        assert found is not None  # it matches nothing, too
        colon = head.find(b":", found.end())
        if head[blank : blank + 1] == b'"' and colon >= 0:
            break
    else:
        raise NotJsonError(f"not JSON: a member without a name at byte {start}")
    if head[found.end() : colon].strip(_BLANK) != b'"':
        raise NotJsonError(f"not JSON: a member without a colon at byte {start}")
    try:
        return json.loads(head[blank : found.end() + 1]), start + colon + 1
    except ValueError as e:
        raise NotJsonError(f"not JSON: {e} (in the name at byte {start})") from None


def _parts(file: JsonFile, at: int, length: int, closing: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of an object or a list."""
    start, depth, several = -1, 0, False
    for kind, place in _marks(file, at, length):
        if kind in b"[{":
            depth += 1
            if depth == 1:
                start = place + 1
        elif kind in b"]}":
            depth -= 1
            if depth == 0:
                if kind != closing:
                    raise NotJsonError(f"not JSON: {kind.decode()} at byte {place}")
                if several or not _is_blank(file, start, place):
                    yield start, place
                if not _is_blank(file, place + 1, at + length):
                    raise NotJsonError(f"not JSON: more after the value's end at byte {place}")
                return
        else:  # a comma between its parts
            yield start, place
            start, several = place + 1, True
    raise NotJsonError("not JSON: it ends too early (a torn last line?)")


def _is_blank(file: JsonFile, start: int, end: int) -> bool:
    return not file.read(start, min(end - start, 4096)).strip(_BLANK)


def _marks(file: JsonFile, at: int, length: int) -> Iterator[tuple[bytes, int]]:
    """Yield all brackets outside of texts and all top-level commas, with their positions."""
    depth, in_text, done = 0, False, 0
    while done < length:
        window = file.read(at + done, min(_WINDOW, length - done))
        if not window:
            return
        i = 0
        while i < len(window):
            if in_text:
                found = _IN_TEXT.match(window, i)
                assert found is not None
                i = found.end()
                if i < len(window) and window[i] == ord('"'):
                    in_text, i = False, i + 1
                    continue
                break  # end of the window, perhaps between a backslash and its letter
            mark = (_OWN if depth == 1 else _NESTED).search(window, i)
            if mark is None:
                i = len(window)
                break
            i = mark.end()
            kind = mark[0]
            if kind == b'"':
                in_text = True
                continue
            depth += (kind in b"[{") - (kind in b"]}")
            yield kind, at + done + mark.start()
        if i == 0:
            return  # a backslash at the end of the value
        done += i


# --- writing ---------------------------------------------------------------------------------


def json_pieces(value: Any) -> Iterator[bytes]:
    """Encode a value as JSON in pieces; equals the output of `json.dumps` for plain values.

    Args:
        value: JSON data, `Pairs`, any `Mapping` or `Sequence`, or an iterator, which becomes a
            list.
    """
    try:
        yield _encoded(value)
        return
    except _NotInMemoryError:
        pass
    if isinstance(value, Pairs | Mapping):
        pairs = value.pairs if isinstance(value, Pairs) else iter(value.items())
        opening: bytes = b"{"
        for name, member in pairs:
            yield opening + _encoded(name) + b": "
            yield from json_pieces(member)
            opening = b", "
        yield b"}" if opening == b", " else b"{}"
    else:
        opening = b"["
        for entry in value:
            yield opening
            yield from json_pieces(entry)
            opening = b", "
        yield b"]" if opening == b", " else b"[]"


class _NotInMemoryError(Exception):
    """A value contains a part that is read or generated during writing."""


def _encoded(value: Any) -> bytes:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_refuse)
    except ValueError:  # JSON has no NaN and no infinity
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, default=_refuse)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair needs an escape
        return json.dumps(json.loads(text)).encode()


def _refuse(value: Any) -> Any:
    if isinstance(value, Pairs | Mapping | Sequence | Iterator):
        raise _NotInMemoryError
    raise TypeError(f"{type(value).__name__} is not JSON")


def _finite(value: Any) -> Any:
    """Replace NaN and infinity with null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list) else value
