"""`python -m web_server.install_chromium`: find a Chromium or install one.

Tries in this order: an installed one (CK_CHROMIUM, PATH, Playwright's cache), Playwright's
download, the system's package manager (as root, by `sudo` without a password, or brew).
"""

from __future__ import annotations

if __name__ == "__main__":
    from web_server.command_line import quit_on_interrupt

    quit_on_interrupt()

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from web_server.chromium.chromium import ChromiumNotFound, find_chromium
from web_server.command_line import run_command

_VERSION_SECONDS = 60
_INSTALL_SECONDS = 900
Runner = Callable[[Sequence[str], float], bool]


def working_chromium() -> str:
    """Return the path of a Chromium that starts, or an empty string.

    Raises:
        ChromiumNotFound: CK_CHROMIUM names a missing file.
    """
    if os.environ.get("CK_CHROMIUM"):
        return find_chromium()
    try:
        path = find_chromium()
    except ChromiumNotFound:
        return ""
    # Playwright's download may lack system libraries, and some packages contain no Chromium
    return path if run_quietly([path, "--version"], _VERSION_SECONDS) else ""


def install_commands() -> Iterator[list[str]]:
    """Yield commands that may install a Chromium, the best first."""
    yield [sys.executable, "-m", "playwright", "install", "chromium"]
    prefix = root_prefix()
    if prefix is not None and shutil.which("apt-get"):
        yield [*prefix, "apt-get", "update", "-q"]
        apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q"]
        yield [*prefix, *apt, "--no-install-recommends", "chromium"]
    if prefix is not None and shutil.which("dnf"):
        yield [*prefix, "dnf", "install", "-y", "-q", "chromium"]
    if shutil.which("brew"):
        yield ["brew", "install", "--quiet", "--cask", "chromium"]


def root_prefix() -> list[str] | None:
    """Return the prefix that runs a command as root; None if that is not possible."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and run_quietly([sudo, "-n", "true"], 10):
        return [sudo, "-n"]
    return None


def install(run: Runner, report: Callable[[str], None]) -> str:
    """Find a Chromium, or run each installation command until one works.

    Args:
        run: runs a command with a timeout in seconds; returns whether it succeeded.
        report: receives a line for each command.

    Returns:
        the path of the Chromium.

    Raises:
        ChromiumNotFound: no command worked; the message says what to do.
    """
    path = working_chromium()
    for command in () if path else install_commands():
        report(f"Chromium: {' '.join(command)}")
        run(command, _INSTALL_SECONDS)
        path = working_chromium()
        if path:
            break
    if not path:
        raise ChromiumNotFound(
            "Chromium could not be installed: install the package `chromium` or Google Chrome, "
            "or set CK_CHROMIUM=/path/to/chromium"
        )
    return path


def run_quietly(command: Sequence[str], seconds: float) -> bool:
    """Run a command without output; returns whether it succeeded in time."""
    return _run(command, seconds, subprocess.DEVNULL)


def run_verbosely(command: Sequence[str], seconds: float) -> bool:
    """Run a command with its output on standard error; returns whether it succeeded in time."""
    return _run(command, seconds, sys.stderr.fileno())


def _run(command: Sequence[str], seconds: float, output: int) -> bool:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Print the path of a usable Chromium; install one if necessary.

    The exit code is 2 if there is none and none can be installed.
    """
    try:
        path = install(run_verbosely, lambda text: click.echo(text, err=True))
    except ChromiumNotFound as e:
        raise click.ClickException(str(e)) from None
    click.echo(path)


if __name__ == "__main__":
    sys.exit(run_command(cli))
