"""Output: `print` and the standard streams of a worker.

File descriptors 1 and 2 are one pipe to the parent, so whatever writes to them, in whatever
process, stays in order. Nothing is buffered here: what was printed before a kill has arrived.
`print` puts a mark before its text that says where each argument begins and ends, so that the
parent can tell arguments apart and knows which of them is an object of its own: mark, length of
header, length of text (4 bytes each), header (JSON: `[[start, length, handle], ...]` in bytes of
the text), text.
"""

from __future__ import annotations

import builtins
import io
import os
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

__builtins__ = vars(builtins).copy()  # type: ignore[assignment]  # the code may replace them

LENGTHS = struct.Struct(">II")
MARK_SIZE = 18


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
        spans: list[str] = []
        text = bytearray()
        try:
            for index, arg in enumerate(args):
                if index:
                    text += between
                piece = (arg if type(arg) is str else str(arg)).encode()
                handle = self._handle_of(arg)
                span = f"{len(text)},{len(piece)}"
                spans.append(f"[{span}]" if handle is None else f'[{span},"{handle}"]')
                text += piece
            text += end.encode()
        finally:  # as the built-in: what came before an argument that cannot be printed is out
            if text:
                header = f"[{','.join(spans)}]".encode()
                lengths = LENGTHS.pack(len(header), len(text))
                self._send(self._mark + lengths + header + text)

    def _send(self, data: bytes) -> None:
        if self.muted:
            return
        with self._lock:
            written = os.write(1, data)
            while written < len(data):
                written += os.write(1, memoryview(data)[written:])


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
