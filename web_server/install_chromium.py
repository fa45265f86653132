"""`python -m web_server.install_chromium`: make sure that there is a Chromium, with what is there.

In this order: one that is found already (CK_CHROMIUM, PATH, Playwright's cache), Playwright's own
download, the system's package manager (as root, with `sudo` that asks for no password, or brew).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

import click

from web_server.chromium.chromium import ChromiumNotFound, find_chromium

_VERSION_SECONDS = 60
_INSTALL_SECONDS = 900
Runner = Callable[[Sequence[str], float], bool]


def working_chromium() -> str:
    """The Chromium that will be used, asked for its version; an empty text if none answers.

    Raises:
        ChromiumNotFound: CK_CHROMIUM names something that is not there.
    """
    if os.environ.get("CK_CHROMIUM"):
        return find_chromium()
    try:
        path = find_chromium()
    except ChromiumNotFound:
        return ""
    # Playwright's download may lack system libraries, and some packages are mere signposts
    return path if run_quietly([path, "--version"], _VERSION_SECONDS) else ""


def install_commands() -> Iterator[list[str]]:
    """The commands that may bring a Chromium, the best first."""
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
    """What to put before a command to run it as root; None if that is not possible."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and run_quietly([sudo, "-n", "true"], 10):
        return [sudo, "-n"]
    return None


def install(run: Runner, say: Callable[[str], None]) -> str:
    """Find a Chromium, or try each way to get one until one works.

    Args:
        run: runs a command within some seconds; whether it succeeded.
        say: is told what happens.

    Returns:
        The path of the Chromium.

    Raises:
        ChromiumNotFound: none could be had; the message says what to do.
    """
    path = working_chromium()
    for command in () if path else install_commands():
        say(f"Chromium: {' '.join(command)}")
        run(command, _INSTALL_SECONDS)
        path = working_chromium()
        if path:
            break
    if not path:
        raise ChromiumNotFound(
            "no Chromium could be installed here: install the package `chromium` (or Google "
            "Chrome) yourself, or name one with CK_CHROMIUM=/path/to/chromium"
        )
    return path


def run_quietly(command: Sequence[str], seconds: float) -> bool:
    """Run a command without its output; whether it ended with success in time."""
    return _run(command, seconds, subprocess.DEVNULL)


def run_aloud(command: Sequence[str], seconds: float) -> bool:
    """Run a command with its output on standard error; whether it ended with success in time."""
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
    """Print the path of a usable Chromium; install one if there is none."""
    sys.exit(main())


def main() -> int:
    """Run the command; return its exit code."""
    try:
        path = install(run_aloud, lambda text: _write(sys.stderr, text))
    except ChromiumNotFound as e:
        _write(sys.stderr, f"error: {e}")
        return 1
    _write(sys.stdout, path)
    return 0


def _write(stream: TextIO, text: str) -> None:
    stream.write(text + "\n")
    stream.flush()


if __name__ == "__main__":
    cli()
