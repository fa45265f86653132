"""Collects what a step printed from the bytes of its pipe (`worker/printing.py` has the format)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .worker.printing import LENGTHS, MARK_SIZE

_MOST_HANDLES = 1000
_LONGEST_HEADER = 1 << 20
_SCAN = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class OutputCollector:
    """Takes bytes in any pieces; keeps at most `limit` bytes of text, and counts the rest.

    The bytes are hostile: whatever looks like a mark but is none counts as text.

    Args:
        mark: the session's mark before each `print`.
        limit: bytes of text to keep.
        handles: the objects that a print may refer to.
    """

    def __init__(self, mark: bytes, limit: int, handles: Mapping[str, Any]):
        self._mark = mark
        self._limit = limit
        self._handles = handles
        self._waiting = bytearray()
        self._kept = bytearray()
        self._total = 0
        self._inside = 0  # bytes of the current print's text that are still to come
        self._spans: list[tuple[int, int, Any]] = []  # start, length, object or None
        self._objects = 0

    def feed(self, data: bytes) -> None:
        """Add bytes from the pipe."""
        if not data:
            return
        waiting = self._waiting
        if not waiting:  # as a rule: then nothing needs to be copied
            waiting += data[self._scan(data) :]
        else:
            waiting += data
            del waiting[: self._scan(waiting)]

    def _scan(self, data: bytes | bytearray) -> int:
        """Take what is whole; gives where that ends."""
        at, end = 0, len(data)
        while at < end:
            if self._inside:
                begun, at = at, min(end, at + self._inside)
                self._inside -= at - begun
                self._text(data[begun:at])
                continue
            found = data.find(self._mark, at)
            begun, at = at, found if found >= 0 else end - self._tail(data, at)
            if at > begun:
                self._text(data[begun:at])
            if found < 0:
                break
            begun, at = at, self._begin_print(data, at)
            if at == begun:
                break
        return at

    def _tail(self, data: bytes | bytearray, at: int) -> int:
        # the last bytes may be the beginning of a mark
        longest = min(MARK_SIZE - 1, len(data) - at)
        if data.find(self._mark[:1], len(data) - longest) < 0:
            return 0
        for size in range(longest, 0, -1):
            if data.endswith(self._mark[:size]):
                return size
        return 0

    def _begin_print(self, data: bytes | bytearray, at: int) -> int:
        """Take a mark and its header; gives where they end, or `at` if more bytes are needed."""
        begin = at + MARK_SIZE + LENGTHS.size
        if len(data) < begin:
            return at
        header_size, text_size = LENGTHS.unpack_from(data, at + MARK_SIZE)
        if header_size > _LONGEST_HEADER:
            self._text(data[at : at + MARK_SIZE])
            return at + MARK_SIZE
        if len(data) < begin + header_size:
            return at
        self._note(data[begin : begin + header_size], text_size)
        self._inside = text_size
        return begin + header_size  # type: ignore[no-any-return]

    def _note(self, header: bytes | bytearray, text_size: int) -> None:
        if self._total >= self._limit and b'"' not in header:
            return  # a flood: nothing of this is kept, and it has no object
        try:
            spans, _ = _SCAN(header.decode("ascii"), 0)
            for start, length, *handle in spans:
                if not 0 <= start <= start + length <= text_size:
                    return
                if len(self._spans) >= self._limit + _MOST_HANDLES:
                    return
                found = self._handles.get(handle[0]) if handle else None
                if found is not None and self._objects < _MOST_HANDLES:
                    self._objects += 1
                elif self._total + start >= self._limit:
                    continue
                else:
                    found = None
                self._spans.append((self._total + start, length, found))
        except (ValueError, TypeError, RecursionError, StopIteration):
            return

    def _text(self, data: bytes | bytearray) -> None:
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += data[:room]
        self._total += len(data)

    def finish(self) -> tuple[str, list[Any]]:
        """Give the output and the printed entries of the step."""
        self._text(self._waiting)
        self._waiting.clear()
        kept = bytes(self._kept)
        output = kept.decode("utf-8", "replace")
        if self._total > len(kept):
            output += f"\n[... {self._total - len(kept)} more bytes of output were cut ...]\n"
        printed = [
            kept[start : start + length].decode("utf-8", "replace") if found is None else found
            for start, length, found in self._spans
        ]
        return output, printed
