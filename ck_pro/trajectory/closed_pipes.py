"""Standard output and error of a command that nobody reads any more: no reason to end its work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

import click


class SteadyStream:
    """A stream that takes what is written to it also when that cannot be passed on any more (its
    reader has gone, its disk is full): the rest then goes nowhere.

    Args:
        stream: where to write as long as that is possible.

    Attributes:
        lost: why it is not, since when it is not.
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
        """What a person must know of it; None if all is well, or a reader has seen enough."""
        if self.lost is None or isinstance(self.lost, BrokenPipeError):
            return None
        return self.lost.strerror or str(self.lost)

    def _lose(self, error: OSError) -> None:
        self.lost = self.lost or error
        # what its buffers hold would fail again, at the latest when Python ends
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def run_steadily(run: Callable[[], int], lost: int) -> int:
    """Run a command within `steady_streams`.

    Args:
        run: the command; returns its exit code.
        lost: the exit code if all was well, but standard output found no room for what was printed.

    Returns:
        The exit code.
    """
    with steady_streams() as out:
        code = run()
        out.flush()
        if out.failure is None:
            return code
        click.echo(f"error: cannot write to standard output: {out.failure}", err=True)
        return code or lost


@contextmanager
def steady_streams() -> Iterator[SteadyStream]:
    """Within it, standard output and error may be lost or closed; gives standard output."""
    _open_closed()
    if not os.environ.get("COLUMNS", "").strip(" 0"):
        os.environ.pop("COLUMNS", None)  # a terminal of no width: tables and lines would be empty
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
    """Open what a shell closed (`>&-`): a file of ours would get its number, and all that is
    printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - it stays open
