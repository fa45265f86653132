"""`python -m ck_web.main`: run tasks with the web agent alone. See `--help`.

This entry point may import upward: it uses the runner of `ck_main`.
"""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys
from pathlib import Path
from typing import Any

import click

from ck_main.cli.command import HELP, run_agent, run_command
from ck_main.cli.options import TaskCommand, task_options
from ck_pro.command_line import ExitCode
from ck_pro.exceptions import ConfigError
from ck_web.agent import WebAgent
from ck_web.computer import ComputerAgent
from ck_web.desktop import missing_programs

DEFAULT_OUTPUT = Path("runs/web.jsonl")
EPILOG = """
\b
Examples:
  python -m ck_web.main -t "What is the newest post?" --target-url https://blog.example
  python -m ck_web.main -i tasks.jsonl -o runs/web.jsonl -m gpt:gpt-4.1 --workers 4
  python -m ck_web.main -t "..." -m manual -u web_env.server_url=127.0.0.1:3000
  python -m ck_web.main --computer -t "..." -m gpt:NAME -u language=computer
  python -m ck_web.main --computer desktop -u desktop.programs=xterm -t "..." -m gpt:NAME

\b
A line of the task file may set its own start page as "target_url".

"""


@click.command(
    cls=TaskCommand,
    epilog=EPILOG + HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@task_options
@click.option(
    "--target-url", "--start-url", "target_url", metavar="URL", help="Start page.  [about:blank]"
)
@click.option(
    "--computer",
    type=click.Choice(["browser", "desktop"]),
    is_flag=False,
    flag_value="browser",
    help="Use the computer agent: screenshots, mouse and keyboard. desktop: programs on a private "
    "X display, such as -u desktop.programs=xterm.  [without a value: browser]",
)
@click.option("--show", is_flag=True, help="With --computer: show each screen.")
@click.option("--debug", is_flag=True, help="With --computer: print the items of each step.")
def cli(computer: str | None, show: bool, debug: bool, **options: Any) -> ExitCode:
    """Run tasks with the web agent: those of a file, one --task, or tasks that you type.

    Each task has its own browser, or its own desktop.
    """
    if computer is not None and options["agent"] is not None:
        raise click.UsageError("give --computer or --agent, not both")
    if computer is None:
        if show or debug:
            raise click.UsageError("--show and --debug need --computer")
        return run_agent(WebAgent, default_output=DEFAULT_OUTPUT, **options)
    if computer == "desktop":
        _check_desktop(options)
    flags = {"computer": computer, "show_images": show, "debug": debug}
    given = tuple(f"{name}={value}" for name, value in flags.items() if value)
    options["updates"] = (*given, *options["updates"])
    return run_agent(ComputerAgent, default_output=DEFAULT_OUTPUT, **options)


def _check_desktop(options: dict[str, Any]) -> None:
    """Raise an error for a desktop that cannot start, or for an option that it does not have."""
    if options["target_url"]:
        raise click.UsageError(
            "--start-url is for a browser; name programs with -u desktop.programs="
        )
    if problem := missing_programs():
        raise ConfigError(problem)


if __name__ == "__main__":
    sys.exit(run_command(cli))
