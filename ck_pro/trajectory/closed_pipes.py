"""Run a command to its exit code, also after Ctrl-C or with a closed standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import click

from ck_pro.interrupts import interruptible

_STOPPED = 130
"""Exit code after Ctrl-C."""


class SteadyStream:
    """Wrap a stream; after a write fails (closed pipe, full disk), discard all further output.

    Args:
        stream: the stream to write to.

    Attributes:
        lost: the first error; None while the stream works.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        self.lost: OSError | None = None

    def write(self, text: str) -> int:
        """See `TextIO.write`."""
        try:
            return self._stream.write(text)
        except OSError as e:
            self._lose(e)
            return len(text)

    def flush(self) -> None:
        """See `TextIO.flush`."""
        try:
            self._stream.flush()
        except OSError as e:
            self._lose(e)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def failure(self) -> str | None:
        """The error to report to the user; None if there is none, or only a closed pipe."""
        if self.lost is None or isinstance(self.lost, BrokenPipeError):
            return None
        return self.lost.strerror or str(self.lost)

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or error
        # Python flushes the buffers at exit, which would fail again
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


def run_steadily(run: Callable[[], int], lost: int) -> int:
    """Run a command that survives a closed pipe, and report Ctrl-C on one line.

    Args:
        run: the command; returns its exit code.
        lost: the exit code if the command succeeds but its output cannot be written.

    Returns:
        The exit code.
    """
    with steady_streams() as out:
        try:
            with interruptible():
                code = run()
        except (KeyboardInterrupt, click.Abort):
            click.echo("stopped", err=True)
            code = _STOPPED
        out.flush()
        if out.failure is None:
            return code
        click.echo(f"error: cannot write to standard output: {out.failure}", err=True)
        return code or lost


@contextmanager
def steady_streams() -> Iterator[SteadyStream]:
    """Make standard output and error survive a closed pipe; yield standard output."""
    _open_closed()
    if not os.environ.get("COLUMNS", "").strip(" 0"):
        os.environ.pop("COLUMNS", None)  # with a width of 0, tables and lines would be empty
    before = sys.stdout, sys.stderr
    out, err = SteadyStream(sys.stdout), SteadyStream(sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield out
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def _open_closed() -> None:
    """Open standard streams that the shell closed (`>&-`).

    Otherwise the next file that the process opens would get their number, and the output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - it stays open
