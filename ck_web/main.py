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
from ck_web.agent import WebAgent
from ck_web.computer import ComputerAgent

DEFAULT_OUTPUT = Path("runs/web.jsonl")
EPILOG = """
\b
Examples:
  python -m ck_web.main -t "What is the newest post?" --target-url https://blog.example
  python -m ck_web.main -i tasks.jsonl -o runs/web.jsonl -m gpt:gpt-4.1 --workers 4
  python -m ck_web.main -t "..." -m manual -u web_env.server_url=127.0.0.1:3000
  python -m ck_web.main --computer -t "..." -m gpt:NAME -u language=computer

\b
A line of the task file may set its own start page as "target_url".

"""


@click.command(
    cls=TaskCommand,
    epilog=EPILOG + HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@task_options
@click.option("--target-url", metavar="URL", help="Start page.  [about:blank]")
@click.option(
    "--computer", is_flag=True, help="Use the computer agent: screenshots, mouse and keyboard."
)
def cli(computer: bool, **options: Any) -> ExitCode:
    """Run tasks with the web agent: those of a file, one --task, or tasks that you type.

    Each task has its own browser.
    """
    kind = ComputerAgent if computer else WebAgent
    return run_agent(kind, default_output=DEFAULT_OUTPUT, **options)


if __name__ == "__main__":
    sys.exit(run_command(cli))
