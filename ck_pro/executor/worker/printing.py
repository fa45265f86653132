"""Output: `print` and the standard streams of a worker.

File descriptors 1 and 2 are one pipe to the parent, so whatever writes to them, in whatever
process, stays in order. Nothing is buffered here: what was printed before a kill has arrived.
`print` writes blocks: a mark, `LENGTHS` (number of spans, bytes of text), spans, text. A `SPAN`
says where in the text an argument is (start, length), which object of the parent's it is (its
handle's number, or 0), and whether it continues an argument of the block before. A block has at
most `MAX_BLOCK` bytes, which a pipe accepts at once: no other process can write into it.
"""

from __future__ import annotations

import builtins
import io
import os
import select
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

LENGTHS = struct.Struct(">HH")
SPAN = struct.Struct(">HHIB")
MARK_SIZE = 18
MAX_BLOCK = 4096
_BLOCK = min(MAX_BLOCK, select.PIPE_BUF)
_MOST_SPANS = _BLOCK // 4 // SPAN.size
_MOST_TEXT = _BLOCK - MARK_SIZE - LENGTHS.size - _MOST_SPANS * SPAN.size

Span = tuple[int, int, int]
"""Start, length, number of the handle."""


def make_mark(nonce: str) -> bytes:
    """Give the mark of a session: unlikely in any text, and no secret (nothing depends on it)."""
    return b"\x00\x1e" + nonce.encode("ascii")


class Streams:
    """The standard streams of a worker.

    Args:
        handle_of: gives the handle of an object of the parent's, else None.
    """

    def __init__(self, handle_of: Callable[[Any], str | None]):
        self._pipe = -1
        self._pipe_place = (-1, -1)
        self._mark = b""
        self._handle_of = handle_of
        self._lock = threading.Lock()
        self._print = builtins.print
        self.muted = False
        reader, writer = os.pipe()  # a stream remembers of what kind its descriptor was
        for descriptor in (1, 2):
            os.dup2(writer, descriptor)
        self.stdout, self.stderr = _open(1), _open(2)
        os.close(reader)
        os.close(writer)

    def begin(self, pipe: int, mark: bytes) -> None:
        """Write to this pipe from now on.

        Args:
            pipe: descriptor of the pipe to the parent; kept open beside 1 and 2, to mend those.
            mark: from `make_mark`.
        """
        self._pipe, self._mark = pipe, mark
        self._pipe_place = _place(pipe)
        self.mend()

    def mend(self) -> None:
        """Make the streams whole again: the code may have closed or replaced them."""
        for descriptor in (1, 2):
            try:
                os.dup2(self._pipe, descriptor)
            except OSError:  # the code gave itself a limit below that: it keeps what it has
                pass
        os.set_blocking(self._pipe, True)
        if self.stdout.closed or self.stderr.closed:
            self.stdout, self.stderr = _open(1), _open(2)
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.stderr  # type: ignore[misc]

    def after_fork(self) -> None:
        """In a child that the code forked: another thread may have held the lock."""
        self._lock = threading.Lock()

    def make_print(self) -> Callable[..., None]:
        """Give the `print` of the code: as the built-in one, but noted on the way."""

        def print(  # noqa: A001
            *args: Any,
            sep: str | None = " ",
            end: str | None = "\n",
            file: Any = None,
            flush: bool = False,
        ) -> None:
            target = sys.stdout if file is None else file
            if target is not self.stdout:
                return self._print(*args, sep=sep, end=end, file=file, flush=flush)
            for name, text in (("sep", sep), ("end", end)):
                if text is not None and not isinstance(text, str):
                    kind = type(text).__name__
                    raise TypeError(f"{name} must be None or a string, not {kind}")
            self._write(args, " " if sep is None else sep, "\n" if end is None else end)

        print.__doc__ = builtins.print.__doc__
        print.__module__ = "builtins"
        print.__qualname__ = "print"
        return print

    def _write(self, args: tuple[Any, ...], sep: str, end: str) -> None:
        between = sep.encode()
        spans: list[Span] = []
        text = bytearray()
        try:
            for index, arg in enumerate(args):
                if index:
                    text += between
                piece = (arg if type(arg) is str else str(arg)).encode()
                handle = self._handle_of(arg)
                spans.append((len(text), len(piece), 0 if handle is None else int(handle[1:])))
                text += piece
            text += end.encode()
        finally:  # as the built-in: what came before an argument that cannot be printed is out
            if text:
                self._send(text, spans)

    def _send(self, text: bytearray, spans: list[Span]) -> None:
        if self.muted:
            return
        with self._lock:  # the blocks of one print follow each other
            # the code may have put a file of its own in place of descriptor 1
            is_ours = _place(1) == self._pipe_place
            blocks = print_blocks(self._mark, text, spans) if is_ours else [text]
            for block in blocks:
                written = os.write(1, block)
                while written < len(block):
                    written += os.write(1, memoryview(block)[written:])


def print_blocks(mark: bytes, text: bytes | bytearray, spans: list[Span]) -> Iterator[bytes]:
    """Give the blocks of one `print`.

    Args:
        mark: from `make_mark`.
        text: all of it, in UTF-8.
        spans: of its arguments, in order.
    """
    if len(text) <= _MOST_TEXT and len(spans) <= _MOST_SPANS:
        yield _block(mark, text, [(*span, 0) for span in spans])
        return
    at = index = 0
    while at < len(text) or index < len(spans):
        end = min(len(text), at + _MOST_TEXT)
        while end < len(text) and text[end] & 0xC0 == 0x80:  # inside of a character
            end -= 1
        chosen: list[tuple[int, int, int, int]] = []
        for start, length, number in spans[index : index + _MOST_SPANS + 1]:
            if start >= end and end < len(text):
                break
            if len(chosen) == _MOST_SPANS:
                end = min(end, max(at, start))
                break
            begin, stop = max(start, at), min(start + length, end)
            chosen.append((begin - at, stop - begin, number, int(start < at)))
            if start + length > end:
                break
            index += 1
        yield _block(mark, text[at:end], chosen)
        at = end


def _block(mark: bytes, text: bytes | bytearray, spans: list[tuple[int, int, int, int]]) -> bytes:
    packed = b"".join([SPAN.pack(*span) for span in spans])
    return mark + LENGTHS.pack(len(spans), len(text)) + packed + text


def _place(descriptor: int) -> tuple[int, int]:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino


def _open(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    raw.name = "<stdout>" if descriptor == 1 else "<stderr>"
    errors = "strict" if descriptor == 1 else "backslashreplace"
    # as `python -u` does it: raw below, nothing is held back
    stream = io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)
    stream.mode = "w"  # type: ignore[misc]
    return stream


def no_input(prompt: object = "", /) -> str:
    """Stand in for `input`: nobody is there to answer."""
    if prompt:
        sys.stdout.write(str(prompt))
    raise EOFError("input() is not available here: there is nobody to answer, and no input")


def leave(code: object = None, /) -> None:
    """End the code of this step (not the agent)."""
    raise SystemExit(code)
