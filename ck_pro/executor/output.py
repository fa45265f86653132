"""Collect what a step printed from the bytes of its pipe (`worker/printing.py` has the format)."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from ck_pro.executor.worker.printing import LENGTHS, MARK_SIZE, MAX_BLOCK, SPAN

_MOST_OBJECTS = 1000


class _Printed:
    """A printed argument: where its text is, and the object of the parent that it is, if any."""

    __slots__ = ("object", "parts")

    def __init__(self, start: int, length: int, found: Any):
        self.parts = [(start, length)]
        self.object = found

    def extend(self, start: int, length: int) -> bool:
        """Take text that follows directly. False: it does not, other output is in between."""
        first, size = self.parts[-1]
        if first + size == start:
            self.parts[-1] = (first, size + length)
        return first + size == start


class OutputCollector:
    """Takes bytes in any pieces; keeps the first and the last of the text, and counts the rest.

    The bytes are hostile: what looks like a block of `print` but is not one counts as text.

    Args:
        mark: the session's mark before each block of `print`.
        limit: bytes of text to keep: one half from the beginning, one from the end.
        handles: the objects that a print may refer to.
    """

    def __init__(self, mark: bytes, limit: int, handles: Mapping[str, Any]):
        self._mark = mark
        self._limit = limit
        self._handles = handles
        self._waiting = bytearray()
        self._head = bytearray()
        self._tail = bytearray()
        self._head_size = limit // 2
        self._tail_size = limit - limit // 2
        self._total = 0
        self._inside = 0  # bytes of the current block's text that are still to come
        self._first: list[_Printed] = []  # arguments that are objects, or in the head
        self._last: deque[_Printed] = deque(maxlen=self._tail_size)  # later ones
        self._objects: dict[int, _Printed] = {}  # the latest of each handle
        self._object_count = 0
        self._latest: _Printed | None = None
        self._noted = 0

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
        """Take what is complete; return where that ends."""
        at, end = 0, len(data)
        while at < end:
            if self._inside:
                begun, at = at, min(end, at + self._inside)
                self._inside -= at - begun
                self._text(data[begun:at])
                continue
            found = data.find(self._mark, at)
            begun, at = at, found if found >= 0 else end - self._partial_mark(data, at)
            if at > begun:
                self._text(data[begun:at])
            if found < 0:
                break
            begun, at = at, self._begin_block(data, at)
            if at == begun:
                break
        return at

    def _partial_mark(self, data: bytes | bytearray, at: int) -> int:
        # the last bytes may be the beginning of a mark
        longest = min(MARK_SIZE - 1, len(data) - at)
        if data.find(self._mark[:1], len(data) - longest) < 0:
            return 0
        for size in range(longest, 0, -1):
            if data.endswith(self._mark[:size]):
                return size
        return 0

    def _begin_block(self, data: bytes | bytearray, at: int) -> int:
        """Take a mark and its spans; return where they end, or `at` if more bytes are needed."""
        begin = at + MARK_SIZE + LENGTHS.size
        if len(data) < begin:
            return at
        count, text_size = LENGTHS.unpack_from(data, at + MARK_SIZE)
        end: int = begin + count * SPAN.size
        if end - at + text_size > MAX_BLOCK:
            self._text(data[at : at + MARK_SIZE])
            return at + MARK_SIZE
        if len(data) < end:
            return at
        for start, length, number, continues in SPAN.iter_unpack(data[begin:end]):
            if start + length <= text_size:
                self._note(self._total + start, length, number, continues)
        self._inside = text_size
        return end

    def _note(self, start: int, length: int, number: int, continues: int) -> None:
        """Note where an argument is. The cost of a flood of them is bounded."""
        found = self._handles.get(f"r{number}") if number else None
        known = self._latest if found is None else self._objects.get(number)
        if continues and known is not None and known.extend(start, length):
            return
        is_early = found is not None or start < self._head_size
        self._noted += is_early
        if self._noted > self._limit + _MOST_OBJECTS:
            return
        if continues and known is not None and is_early:
            known.parts.append((start, length))
            return
        if found is not None:
            self._object_count += 1
            if self._object_count > _MOST_OBJECTS:
                return
        printed = _Printed(start, length, found)
        if found is None:
            self._latest = printed
        else:
            self._objects[number] = printed
        (self._first if is_early else self._last).append(printed)

    def _text(self, data: bytes | bytearray) -> None:
        self._total += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._tail_size]

    def finish(self) -> tuple[str, list[Any], list[Any], int]:
        """End the step.

        Returns:
            The output; its printed arguments; its pieces (texts, and in place of their texts the
            objects that were printed); the bytes that were cut out of its middle.
        """
        self._text(self._waiting)
        self._waiting.clear()
        del self._tail[: -self._tail_size]
        while self._cut() and self._tail and self._tail[0] & 0xC0 == 0x80:  # inside a character
            del self._tail[0]
        output = "".join(self._kept(0, self._total))
        return output, self._arguments(), self._pieces(), self._cut()

    def _cut(self) -> int:
        return self._total - len(self._head) - len(self._tail)

    def _kept(self, start: int, end: int) -> Iterator[str]:
        """Give what is kept of a part of the output, with a notice in place of what is not."""
        cut_at, cut_to = len(self._head), self._total - len(self._tail)
        if start < cut_at and end > cut_at == cut_to:  # nothing is cut: no seam
            yield _decoded(self._head[start:] + self._tail[: end - cut_to])
            return
        if start < cut_at:
            yield _decoded(self._head[start:end], whole=end <= cut_at)
        if start < cut_to and end > cut_at and cut_to > cut_at:
            cut = min(end, cut_to) - max(start, cut_at)
            yield f"\n[... {cut} bytes of output were cut here ...]\n"
        if end > cut_to:
            yield _decoded(self._tail[max(0, start - cut_to) : end - cut_to])

    def _is_kept(self, start: int, length: int) -> bool:
        """Whether any of a part is kept; of one without a text, whether its place is."""
        return start < len(self._head) or start + length > self._total - len(self._tail)

    def _arguments(self) -> list[Any]:
        printed: list[Any] = []
        for one in (*self._first, *self._last):
            if one.object is not None:
                printed.append(one.object)
            elif any(self._is_kept(*part) for part in one.parts):
                texts = [text for at, size in one.parts for text in self._kept(at, at + size)]
                printed.append("".join(texts))
        return printed

    def _pieces(self) -> list[Any]:
        replaced: list[tuple[int, int, list[Any]]] = []
        for one in self._first:
            if one.object is not None:
                kept = [part for part in one.parts if self._is_kept(*part)]
                replaced += [(*part, []) for part in kept]
                if kept:
                    replaced[-len(kept)][2].append(one.object)
        pieces: list[Any] = []
        at = 0
        for start, length, found in sorted(replaced, key=lambda part: part[0]):
            if start >= at:  # else made up: arguments do not overlap
                pieces += [*self._kept(at, start), *found]
                at = start + length
        pieces += self._kept(at, self._total)
        return _joined(pieces)


def _decoded(data: bytes | bytearray, whole: bool = True) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(data, final=whole)


def _joined(pieces: list[Any]) -> list[Any]:
    """Put texts beside each other into one, and leave out empty ones."""
    joined: list[Any] = []
    for piece in pieces:
        if type(piece) is str and joined and type(joined[-1]) is str:
            joined[-1] += piece
        elif type(piece) is not str or piece:
            joined.append(piece)
    return joined
