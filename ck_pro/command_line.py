"""What all commands share: exit codes, one-line errors, steady output, types of options."""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, TextIO, cast

import click

from ck_pro.exceptions import (
    CKError,
    EnvironmentFailure,
    JournalError,
    ModelError,
    OutputError,
)
from ck_pro.interrupts import interruptible
from ck_pro.journal.masking import Secrets, secrets_of_environment

IDS_HELP = "Only these tasks; @FILE has one id per line."
IDS_METAVAR = "ID,..."
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class ExitCode(IntEnum):
    """Exit codes of the commands."""

    DONE = 0
    PROBLEM = 1
    EMPTY = 1
    DIFFERENT = 1
    USAGE = 2
    LINES = 3
    OUTPUT = 4
    UNREACHABLE = 5
    INTERNAL = 6
    LIMIT = 7
    STOPPED = 130


def exit_code_of(error: CKError) -> ExitCode:
    """Return the exit code for an error that ended a command."""
    if isinstance(error, OutputError | JournalError):
        return ExitCode.OUTPUT
    if isinstance(error, ModelError | EnvironmentFailure):
        return ExitCode.UNREACHABLE
    return ExitCode.USAGE


# --- running a command ---------------------------------------------------------------------------


def run_command(command: click.Command, args: Sequence[str] | None = None) -> int:
    """Run a command; report an error as one line on standard error and an exit code.

    Args:
        command: returns an `ExitCode`, or None for 0.
        args: arguments of the command line; None means those of the process.
    """
    return run_steadily(lambda: _run(command, args))


def _run(command: click.Command, args: Sequence[str] | None) -> int:
    try:
        code = command.main(args, standalone_mode=False)
        return int(code) if isinstance(code, int) else 0
    except click.ClickException as e:
        return _failed(f"{e.format_message()} (see --help)", ExitCode.USAGE)
    except CKError as e:
        return _failed(str(e), exit_code_of(e))
    except click.Abort:  # Ctrl-C, which `run_steadily` reports
        raise
    except Exception as e:  # noqa: BLE001 - the process's outermost boundary
        log = write_crash(e)
        return _failed(f"internal error: {type(e).__name__}: {e}; {log}", ExitCode.INTERNAL)


def _failed(message: str, code: ExitCode) -> ExitCode:
    """Print an error on one line of standard error; return the exit code."""
    line = without_controls(" ".join(message.split()))  # click lists choices on lines with tabs
    click.echo(f"error: {line}", err=True)
    return code


def write_crash(error: BaseException) -> str:
    """Write an unexpected error with its traceback to a new file; say where the file is."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="ck-pro-error-", suffix=".log", delete=False, encoding="utf-8"
        ) as file:
            file.write(Secrets(secrets_of_environment()).masked(text))
    except OSError as e:
        return f"the full log cannot be written: {e.strerror}"
    return f"the full log is in {file.name}"


def without_controls(text: str) -> str:
    """Replace control characters in a line of text from models or pages."""
    return _CONTROLS.sub("\ufffd", text)


# --- standard output -----------------------------------------------------------------------------


def run_steadily(run: Callable[[], int]) -> int:
    """Run a command that survives a closed pipe, and report Ctrl-C on one line.

    Args:
        run: the command; returns its exit code.

    Returns:
        The exit code; `ExitCode.OUTPUT` if the command succeeds but its output cannot be written.
    """
    with steady_streams() as out:
        try:
            with interruptible():
                code = run()
        except (KeyboardInterrupt, click.Abort):
            click.echo("stopped", err=True)
            code = ExitCode.STOPPED
        out.flush()
        if out.failure is None:
            return code
        click.echo(f"error: cannot write to standard output: {out.failure}", err=True)
        return code or ExitCode.OUTPUT


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


# --- types of options ----------------------------------------------------------------------------


class AnyPath(click.Path):
    """A path argument that need not exist; the command checks it later."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.Path.convert`."""
        path = super().convert(value, param, ctx)
        try:
            os.lstat(path)
        except OSError as e:
            if e.errno == errno.ENAMETOOLONG:
                self.fail(f"{str(path)[:40]}...: {e.strerror}.", param, ctx)
        return path


def ids_of(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Parse `a,b`, `"with, comma",b` (as in CSV), or `@FILE` with one id per line (click callback).

    Returns:
        The ids; empty if the option is not given, which means all tasks.

    Raises:
        click.BadParameter: the list is empty (such as from an empty shell variable), or the file
            cannot be read.
    """
    if text is None:
        return ()
    try:
        ids = _of_file(Path(text[1:])) if text.startswith("@") else _listed(text)
    except OSError as e:
        raise click.BadParameter(f"cannot read {text[1:]}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise click.BadParameter(f"cannot read {text[1:]}: it is not UTF-8 text") from None
    except csv.Error as e:
        raise click.BadParameter(f"{text!r}: {e}") from None
    if not ids:
        raise click.BadParameter("no task ids; omit the option to select all tasks")
    return ids


def id_text(task_id: str) -> str:
    """Quote an id for `--ids`."""
    if task_id.startswith("@"):
        return f'"{task_id}"'
    out = io.StringIO()
    csv.writer(out).writerow([task_id])
    return out.getvalue().rstrip("\r\n")


def _listed(text: str) -> tuple[str, ...]:
    rows = csv.reader([text], skipinitialspace=True)
    return tuple(i.strip() for row in rows for i in row if i.strip())


def _of_file(path: Path) -> tuple[str, ...]:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return tuple(line.strip() for line in lines if line.strip())
