"""Errors and exit codes of the commands in this package."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

USAGE = 2
STOPPED = 130


def quit_on_interrupt() -> None:
    """Let Ctrl-C end this process without a traceback; entry points call it before they import.

    No effect if the program that started this process ignores Ctrl-C.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_command(command: click.Command) -> int:
    """Run a command; print an error as one line on standard error.

    Returns:
        The exit code: that of the command, or 2 after a `click.ClickException`, 130 after Ctrl-C.
    """
    import click

    try:
        code = command.main(standalone_mode=False)
        return int(code) if isinstance(code, int) else 0
    except click.UsageError as error:
        return _failed(f"{error.format_message()} (see --help)")
    except click.ClickException as error:
        return _failed(error.format_message())
    except click.Abort:
        sys.stderr.write("stopped\n")
        return STOPPED


def _failed(message: str) -> int:
    line = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(message.split()))
    sys.stderr.write(f"error: {line}\n")
    return USAGE
