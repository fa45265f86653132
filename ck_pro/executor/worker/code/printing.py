"""Output: `print` and the standard streams of a worker.

File descriptors 1 and 2 are one pipe to the parent, so the output of all processes stays in order.
Nothing is buffered, so a kill loses no output.

`print` writes blocks: a mark, `LENGTHS` (number of spans, bytes of text), spans, text. A `SPAN`
describes one argument: its start and length in the text, the number of its handle (0 for text), and
whether it continues an argument of the previous block. A block has at most `MAX_BLOCK` bytes, so
that the kernel writes it into the pipe in one piece.
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

_write, _Lock = os.write, threading.Lock  # the code may replace them in their modules
LENGTHS = struct.Struct(">HH")
SPAN = struct.Struct(">HHIB")
MARK_SIZE = 18
MAX_BLOCK = 4096
_BLOCK = min(MAX_BLOCK, select.PIPE_BUF)
_MAX_SPANS = _BLOCK // 4 // SPAN.size
_MAX_TEXT = _BLOCK - MARK_SIZE - LENGTHS.size - _MAX_SPANS * SPAN.size

Span = tuple[int, int, int]
"""Start, length, number of the handle (0 for text)."""


def make_mark(nonce: str) -> bytes:
    """Return the mark of a session. It is unlikely in any text, and need not be secret."""
    return b"\x00\x1e" + nonce.encode("ascii")


class Streams:
    """The standard streams of a worker.

    Args:
        handle_of: returns the handle of an object that stands for one in the parent, else None.
    """

    def __init__(self, handle_of: Callable[[Any], str | None]):
        self._pipe = -1
        self._pipe_id = (-1, -1)
        self._mark = b""
        self._handle_of = handle_of
        self._lock = _Lock()
        self._print = builtins.print
        self.muted = False
        reader, writer = os.pipe()  # a stream checks the type of its descriptor when it is created
        for descriptor in (1, 2):
            os.dup2(writer, descriptor)
        self.stdout, self.stderr = _open(1), _open(2)
        os.close(reader)
        os.close(writer)

    def open(self, pipe: int, mark: bytes) -> None:
        """Write to this pipe from now on.

        Args:
            pipe: descriptor of the pipe to the parent; stays open, for `repair`.
            mark: from `make_mark`.
        """
        self._pipe, self._mark = pipe, mark
        self._pipe_id = _file_id(pipe)
        self.repair()

    def repair(self) -> None:
        """Restore the streams, which the code may have closed or replaced."""
        for descriptor in (1, 2):
            try:
                os.dup2(self._pipe, descriptor)
            except OSError:  # the code has set a lower limit of open files
                pass
        os.set_blocking(self._pipe, True)
        if self.stdout.closed or self.stderr.closed:
            self.stdout, self.stderr = _open(1), _open(2)
        sys.stdout = sys.__stdout__ = self.stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self.stderr  # type: ignore[misc]

    def after_fork(self) -> None:
        """Replace the lock in a forked child, where a thread that no longer exists may hold it."""
        self._lock = _Lock()

    def make_print(self) -> Callable[..., None]:
        """Return the `print` of the code: like the built-in one, but it records the arguments."""

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
        finally:  # like the built-in one: print the arguments before one that raises
            if text:
                self._send(text, spans)

    def _send(self, text: bytearray, spans: list[Span]) -> None:
        if self.muted:
            return
        with self._lock:  # keep the blocks of one print together
            is_replaced = _file_id(1) != self._pipe_id  # by a file that the code opened
            for block in [text] if is_replaced else print_blocks(self._mark, text, spans):
                written = _write(1, block)
                while written < len(block):
                    written += _write(1, memoryview(block)[written:])


def print_blocks(mark: bytes, text: bytes | bytearray, spans: list[Span]) -> Iterator[bytes]:
    """Yield the blocks of one `print`.

    Args:
        mark: from `make_mark`.
        text: the whole text in UTF-8.
        spans: of the arguments, in order.
    """
    if len(text) <= _MAX_TEXT and len(spans) <= _MAX_SPANS:
        yield _block(mark, text, [(*span, 0) for span in spans])
        return
    at = index = 0
    while at < len(text) or index < len(spans):
        end = min(len(text), at + _MAX_TEXT)
        while end < len(text) and text[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        chosen: list[tuple[int, int, int, int]] = []
        for start, length, number in spans[index : index + _MAX_SPANS + 1]:
            if start >= end and end < len(text):
                break
            if len(chosen) == _MAX_SPANS:
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


def _file_id(descriptor: int) -> tuple[int, int]:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino


def _open(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    raw.name = "<stdout>" if descriptor == 1 else "<stderr>"
    errors = "strict" if descriptor == 1 else "backslashreplace"
    # unbuffered, like `python -u`
    stream = io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)
    stream.mode = "w"  # type: ignore[misc]
    return stream


def no_input(prompt: object = "", /) -> str:
    """Replace `input`, which is not available."""
    if prompt:
        sys.stdout.write(str(prompt))
    raise EOFError("input() is not available: the code has no standard input")


def exit_step(code: object = None, /) -> None:
    """Replace `exit` and `quit`: end the code of this step, not the agent."""
    raise SystemExit(code)
