"""Exit codes and one-line errors of the commands in this package."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import traceback
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import click

from ck_pro.exceptions import CKError, InputError, OutputError
from ck_pro.trajectory.closed_pipes import run_steadily

WORK_FOLDER = "work"
"""Name of the folder, in a task's folder, where the agents' code works."""
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str) -> str:
    """Replace control characters in a line of text from models or pages."""
    return _CONTROLS.sub("\ufffd", text)


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


def require_folder(path: Path) -> None:
    """Check that a path is a folder, which may contain journals.

    Raises:
        InputError: it is not a folder.
    """
    if not path.exists():
        raise InputError(f"cannot read {path}: No such file or directory")
    if not path.is_dir():
        raise InputError(f"{path} is a file: name the folder of a run or of a task, with journals")


class ExitCode(IntEnum):
    """Exit codes of the commands; `ck_main` uses the same numbers."""

    DONE = 0
    EMPTY = 1
    DIFFERENT = 1
    USAGE = 2
    LINES = 3
    OUTPUT = 4
    INTERNAL = 6
    STOPPED = 130


def run_command(command: click.Command, args: Sequence[str] | None, name: str) -> int:
    """Run a command; print an error as one line on standard error.

    Args:
        command: returns an `ExitCode`.
        args: arguments of the command line; None means those of the process.
        name: prefix of the log file for the traceback of an internal error.
    """
    return run_steadily(lambda: _run(command, args, name), ExitCode.OUTPUT)


def _run(command: click.Command, args: Sequence[str] | None, name: str) -> int:
    try:
        code = command.main(args, standalone_mode=False)
        return int(code) if isinstance(code, int) else 0
    except click.ClickException as e:
        return _failed(f"{e.format_message()} (see --help)", ExitCode.USAGE)
    except OutputError as e:
        return _failed(str(e), ExitCode.OUTPUT)
    except InputError as e:
        return _failed(str(e), ExitCode.USAGE)
    except CKError as e:
        return _failed(str(e), ExitCode.INTERNAL)
    except click.Abort:  # Ctrl-C, which `run_steadily` reports
        raise
    except Exception as e:  # noqa: BLE001 - the process's outermost boundary
        return _failed(
            f"{type(e).__name__}: {e}; an internal error, {_write_log(name)}", ExitCode.INTERNAL
        )


def _write_log(name: str) -> str:
    """Write the traceback of the current error to a file; say where the file is."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"ck-{name}-", suffix=".log", delete=False
        ) as f:
            traceback.print_exc(file=f)
    except OSError as e:
        return f"the full log cannot be written: {e.strerror}"
    return f"the full log is in {f.name}"


def _failed(message: str, code: ExitCode) -> int:
    line = without_controls(" ".join(message.split()))  # click lists choices on lines with tabs
    click.echo(f"error: {line}", err=True)
    return code
