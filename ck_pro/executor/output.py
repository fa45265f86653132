"""Collects what a step printed from the bytes of its pipe (`worker/printing.py` has the format)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .worker.printing import LENGTHS, MARK_SIZE

_MOST_HANDLES = 1000
_LONGEST_HEADER = 1 << 20


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
        if self._inside and not self._waiting:
            taken = data[: self._inside]
            self._text(taken)
            self._inside -= len(taken)
            data = data[len(taken) :]
        if data:
            self._waiting += data
            self._scan()

    def _scan(self) -> None:
        waiting = self._waiting
        while waiting:
            if self._inside:
                taken = bytes(waiting[: self._inside])
                del waiting[: len(taken)]
                self._inside -= len(taken)
                self._text(taken)
                continue
            at = waiting.find(self._mark)
            if at < 0:
                keep = self._tail(waiting)
                self._text(bytes(waiting[: len(waiting) - keep]))
                del waiting[: len(waiting) - keep]
                return
            if at:
                self._text(bytes(waiting[:at]))
                del waiting[:at]
            if not self._begin_print():
                return

    def _tail(self, waiting: bytearray) -> int:
        # the last bytes may be the beginning of a mark
        for size in range(min(MARK_SIZE - 1, len(waiting)), 0, -1):
            if waiting.endswith(self._mark[:size]):
                return size
        return 0

    def _begin_print(self) -> bool:
        """Take a mark and its header off the front; False: more bytes are needed."""
        waiting = self._waiting
        if len(waiting) < MARK_SIZE + LENGTHS.size:
            return False
        header_size, text_size = LENGTHS.unpack_from(waiting, MARK_SIZE)
        begin = MARK_SIZE + LENGTHS.size
        if header_size > _LONGEST_HEADER:
            self._text(bytes(waiting[:MARK_SIZE]))
            del waiting[:MARK_SIZE]
            return True
        if len(waiting) < begin + header_size:
            return False
        self._note(bytes(waiting[begin : begin + header_size]), text_size)
        del waiting[: begin + header_size]
        self._inside = text_size
        return True

    def _note(self, header: bytes, text_size: int) -> None:
        if self._total >= self._limit and b'"' not in header:
            return  # a flood: nothing of this is kept, and it has no object
        try:
            spans = json.loads(header)
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
        except (ValueError, TypeError, RecursionError):
            return

    def _text(self, data: bytes) -> None:
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += data[:room]
        self._total += len(data)

    def finish(self) -> tuple[str, list[Any]]:
        """Give the output and the printed entries of the step."""
        self._text(bytes(self._waiting))
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
