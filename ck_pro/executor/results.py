"""The result of a step of code, and its output as collected from the worker's pipe."""

from __future__ import annotations

import codecs
import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ck_pro.executor.worker.code.names import MAX_LINE, MAX_LINES, MAX_VALUES
from ck_pro.executor.worker.code.printing import LENGTHS, MARK_SIZE, MAX_BLOCK, SPAN
from ck_pro.executor.worker.wire import WireError

_MAX_OBJECTS = 1000
_MAX_LINES = 1000


@dataclass(frozen=True)
class CodeError:
    """The error of a step.

    Attributes:
        type: name of the exception's class. A step that was killed has "TimeoutError" (a time
            limit), "MemoryError", "OSError" (disk), "Cancelled", or "WorkerDied" (a crash,
            `os._exit`, a malformed frame).
        message: the text for the model.
        line: line number in the step's source, from 1; None if unknown.
        traceback: as Python prints it, without the executor's frames.
    """

    type: str
    message: str
    line: int | None = None
    traceback: str = ""

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line is not None else ""
        return f"{self.type}: {self.message}{where}"


class CallLine(str):
    """A line that a function of the parent added to the output; see `CallFlag.report`."""


@dataclass
class CodeResult:
    """The result of a step.

    Attributes:
        output: everything that the step wrote to standard output and standard error, in order.
            Long output has only its beginning and its end, with a notice between them.
        pieces: the output as a list of texts, objects and `CallLine`s. Where `print` printed an
            object with `to_worker` that a function returned, the object replaces its text.
        output_cut: number of omitted bytes.
        printed: one entry per printed argument in the output: such an object, or a text.
        value: `repr` of the last statement if it is an expression other than None; shortened.
        ended_by: name of the terminal function that ended the step, if any.
        ended_with: its arguments by name.
        error: the error, if any.
        duration: seconds of the code's own time.
        call_duration: seconds in which at least one function was running in the parent.
        state_lost: whether the worker was replaced; the next step starts without variables.
        commands_lost: whether background commands ended with the worker.
    """

    output: str = ""
    pieces: list[Any] = field(default_factory=list)
    output_cut: int = 0
    printed: list[Any] = field(default_factory=list)
    value: str | None = None
    ended_by: str | None = None
    ended_with: dict[str, Any] | None = None
    error: CodeError | None = None
    duration: float = 0.0
    call_duration: float = 0.0
    state_lost: bool = False
    commands_lost: bool = False


@dataclass(frozen=True)
class LocalCall:
    """A return value that makes the worker run the call itself, inside the sandbox.

    The code gets the result of the worker's function with this name: one of `worker/workspace.py`,
    or one that a package from `CodeExecutor(packages=...)` defines.

    Attributes:
        name: of the worker's function.
        kwargs: its arguments, plain data.
        stays: whether it starts something that keeps running until the worker ends.
        package: folder of the package with the function; "" for one of the worker.
    """

    name: str
    kwargs: dict[str, Any]
    stays: bool = False
    package: str = ""

    def __str__(self) -> str:
        return "(done in the workspace)"


def read_done(
    message: list[Any], step: int, longest: int
) -> tuple[str | None, CodeError | None, bool]:
    """Check and read the message that ends a step.

    Args:
        message: `["done", step, value, error, threads_left]`.
        step: number of the running step.
        longest: maximum length of the value.

    Returns:
        The value, the error, and whether threads of the step are still running.

    Raises:
        WireError: the message is malformed, or belongs to another step.
    """
    if len(message) != 5 or type(message[1]) is not int or message[1] != step:
        raise WireError("the end of another step")
    _, _, value, error, threads_left = message
    if not (value is None or type(value) is str):
        raise WireError("a value that is not text")
    shown = None if value is None else clean_text(value[:longest])
    return shown, None if error is None else read_error(error), bool(threads_left)


def read_names(message: list[Any]) -> list[str]:
    """Check and read the description of names: `["names", number, lines]`.

    Raises:
        WireError: it is malformed.
    """
    lines = message[2] if len(message) == 3 else None
    if type(lines) is not list or not all(type(line) is str for line in lines):
        raise WireError("a malformed description of names")
    shown = [clean_text(" ".join(line.split())) for line in lines[: MAX_LINES + 1]]
    return [line[:MAX_LINE] for line in shown]


def read_values(message: list[Any]) -> dict[str, Any]:
    """Check and read the values of variables: `["values", number, json]`.

    Raises:
        WireError: it is malformed.
    """
    text = message[2] if len(message) == 3 else None
    if type(text) is not str or len(text) > MAX_VALUES:
        raise WireError("malformed values of variables")
    try:
        values = json.loads(text)
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise WireError("malformed values of variables") from None
    if not isinstance(values, dict):
        raise WireError("malformed values of variables")
    return values


def read_error(frame: Any) -> CodeError:
    """Check and read an error: `[type, message, line, traceback]`.

    Raises:
        WireError: it is malformed.
    """
    if not (isinstance(frame, list) and len(frame) == 4):
        raise WireError("a malformed error")
    kind, message, line, trace = frame
    if not (type(kind) is type(message) is type(trace) is str):
        raise WireError("a malformed error")
    if line is not None and type(line) is not int:
        raise WireError("a malformed error")
    return CodeError(
        clean_text(kind[:200]), clean_text(message[:20_000]), line, clean_text(trace[:40_000])
    )


def clean_text(text: str) -> str:
    """Escape the characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


# --- collecting the output, in the format of `worker/printing.py` --------------------------------


class _Printed:
    """A printed argument: the parts of the output with its text, and its object, if it has one."""

    __slots__ = ("object", "parts")

    def __init__(self, start: int, length: int, found: Any):
        self.parts = [(start, length)]
        self.object = found

    def extend(self, start: int, length: int) -> bool:
        """Append text that follows directly; return False if other output is in between."""
        first, size = self.parts[-1]
        if first + size == start:
            self.parts[-1] = (first, size + length)
        return first + size == start


class OutputCollector:
    """Keeps the beginning and the end of the output, and counts the bytes in between.

    The bytes may be forged by the code. A malformed block of `print` counts as text.

    Args:
        mark: the session's mark, which precedes each block of `print`.
        limit: bytes of text to keep, half from the beginning and half from the end.
        handles: objects by handle, to which a block may refer.
    """

    def __init__(self, mark: bytes, limit: int, handles: Mapping[str, Any]):
        self._mark = mark
        self._limit = limit
        self._handles = handles
        self._pending = bytearray()
        self._head = bytearray()
        self._tail = bytearray()
        self._head_size = limit // 2
        self._tail_size = limit - limit // 2
        self._total = 0
        self._text_left = 0  # bytes of the current block's text that have not arrived
        self._first: list[_Printed] = []  # arguments that are objects, or in the head
        self._last: deque[_Printed] = deque(maxlen=self._tail_size)  # later arguments
        self._objects: dict[int, _Printed] = {}  # the latest argument of each handle
        self._object_count = 0
        self._latest: _Printed | None = None
        self._recorded = 0
        self._lines: deque[tuple[int, str]] = deque(maxlen=_MAX_LINES)

    def add_line(self, line: str) -> None:
        """Add a line of a function after the output so far; only the pieces contain it."""
        self._lines.append((self._total, line))

    def feed(self, data: bytes) -> None:
        """Add bytes from the pipe."""
        if not data:
            return
        pending = self._pending
        if not pending:  # the usual case, without a copy
            pending += data[self._scan(data) :]
        else:
            pending += data
            del pending[: self._scan(pending)]

    def _scan(self, data: bytes | bytearray) -> int:
        """Process the complete parts; return the index of the first byte that is left."""
        at, end = 0, len(data)
        while at < end:
            if self._text_left:
                start, at = at, min(end, at + self._text_left)
                self._text_left -= at - start
                self._add_text(data[start:at])
                continue
            found = data.find(self._mark, at)
            start, at = at, found if found >= 0 else end - self._partial_mark(data, at)
            if at > start:
                self._add_text(data[start:at])
            if found < 0:
                break
            start, at = at, self._read_header(data, at)
            if at == start:
                break
        return at

    def _partial_mark(self, data: bytes | bytearray, at: int) -> int:
        """Return how many of the last bytes may be the beginning of a mark."""
        longest = min(MARK_SIZE - 1, len(data) - at)
        if data.find(self._mark[:1], len(data) - longest) < 0:
            return 0
        for size in range(longest, 0, -1):
            if data.endswith(self._mark[:size]):
                return size
        return 0

    def _read_header(self, data: bytes | bytearray, at: int) -> int:
        """Read the mark and spans of a block; return their end, or `at` if bytes are missing."""
        spans = at + MARK_SIZE + LENGTHS.size
        if len(data) < spans:
            return at
        count, text_size = LENGTHS.unpack_from(data, at + MARK_SIZE)
        end: int = spans + count * SPAN.size
        if end - at + text_size > MAX_BLOCK:
            self._add_text(data[at : at + MARK_SIZE])
            return at + MARK_SIZE
        if len(data) < end:
            return at
        for start, length, number, continues in SPAN.iter_unpack(data[spans:end]):
            if start + length <= text_size:
                self._record(self._total + start, length, number, continues)
        self._text_left = text_size
        return end

    def _record(self, start: int, length: int, number: int, continues: int) -> None:
        """Record the place of an argument. The cost of a flood of arguments is limited."""
        found = self._handles.get(f"r{number}") if number else None
        known = self._latest if found is None else self._objects.get(number)
        if continues and known is not None and known.extend(start, length):
            return
        is_early = found is not None or start < self._head_size
        self._recorded += is_early
        if self._recorded > self._limit + _MAX_OBJECTS:
            return
        if continues and known is not None and is_early:
            known.parts.append((start, length))
            return
        if found is not None:
            self._object_count += 1
            if self._object_count > _MAX_OBJECTS:
                return
        printed = _Printed(start, length, found)
        if found is None:
            self._latest = printed
        else:
            self._objects[number] = printed
        (self._first if is_early else self._last).append(printed)

    def _add_text(self, data: bytes | bytearray) -> None:
        self._total += len(data)
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._limit:
            del self._tail[: -self._tail_size]

    def finish(self) -> tuple[str, list[Any], list[Any], int]:
        """Return the output, its printed arguments, its pieces, and the number of omitted bytes.

        See `CodeResult` for these.
        """
        self._add_text(self._pending)
        self._pending.clear()
        del self._tail[: -self._tail_size]
        while self._omitted() and self._tail and self._tail[0] & 0xC0 == 0x80:  # half a character
            del self._tail[0]
        output = "".join(self._kept(0, self._total))
        return output, self._arguments(), self._pieces(), self._omitted()

    def _omitted(self) -> int:
        return self._total - len(self._head) - len(self._tail)

    def _kept(self, start: int, end: int) -> Iterator[str]:
        """Yield the kept text of a part of the output, with a notice for omitted bytes."""
        head_end, tail_start = len(self._head), self._total - len(self._tail)
        if start < head_end and end > head_end == tail_start:  # nothing is omitted
            yield _decoded(self._head[start:] + self._tail[: end - tail_start])
            return
        if start < head_end:
            yield _decoded(self._head[start:end], whole=end <= head_end)
        if start < tail_start and end > head_end and tail_start > head_end:
            omitted = min(end, tail_start) - max(start, head_end)
            yield f"\n[... {omitted} bytes of output omitted ...]\n"
        if end > tail_start:
            yield _decoded(self._tail[max(0, start - tail_start) : end - tail_start])

    def _is_kept(self, start: int, length: int) -> bool:
        """Return whether any text of a part is kept; if it has none, whether its place is kept."""
        return start < len(self._head) or start + length > self._total - len(self._tail)

    def _place(self, at: int) -> int:
        """Return the place of a line: the end of the omitted bytes, if it is among them."""
        return at if at <= len(self._head) else max(at, self._total - len(self._tail))

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
        replaced += [(self._place(at), 0, [CallLine(line)]) for at, line in self._lines]
        pieces: list[Any] = []
        at = 0
        for start, length, found in sorted(replaced, key=_order):
            if start >= at:  # overlapping spans are forged
                pieces += [*self._kept(at, start), *found]
                at = start + length
            elif not length:
                pieces += found
        pieces += self._kept(at, self._total)
        return _joined(pieces)


def _order(part: tuple[int, int, list[Any]]) -> tuple[int, bool]:
    """A sort key: a line stands before the text that was printed after it."""
    start, _, found = part
    return start, not any(isinstance(one, CallLine) for one in found)


def _decoded(data: bytes | bytearray, whole: bool = True) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(data, final=whole)


def _joined(pieces: list[Any]) -> list[Any]:
    """Join adjacent texts, and drop empty ones."""
    joined: list[Any] = []
    for piece in pieces:
        if type(piece) is str and joined and type(joined[-1]) is str:
            joined[-1] += piece
        elif type(piece) is not str or piece:
            joined.append(piece)
    return joined
