"""`python -m ck_main.main`: run tasks with the main agent. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys
from pathlib import Path
from typing import Any

import click

from ck_main.agent import CKAgent
from ck_main.cli.command import HELP, run_agent, run_command
from ck_main.cli.options import TaskCommand, task_options
from ck_pro.command_line import ExitCode

DEFAULT_OUTPUT = Path("runs/main.jsonl")
EPILOG = """
\b
Examples:
  python -m ck_main.main -i tasks.jsonl -o runs/a.jsonl --model gpt:gpt-4.1 --workers 4
  python -m ck_main.main -i tasks.jsonl -o runs/a.jsonl -c agent.yaml -u max_steps=20
  python -m ck_main.main --task "What is 17 * 23?" --model http://localhost:8000/v1
  python -m ck_main.main --model manual:web       (you are the model, in the browser)
  ... --workers 8 --run-max-money 20          (stops at 20 USD; repeat to resume)
  ... --tries 3 --until llm_judge --reflect   (try again, with advice)
  ... --tries 5 --seeds 1,2,3,4,5 --choose vote
  ... -u web_agent.model.call_target=gpt:x -u "{'recent_steps': 5}"

"""


@click.command(
    cls=TaskCommand,
    epilog=EPILOG + HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@task_options
def cli(**options: Any) -> ExitCode:
    """Run the tasks of a file, one --task, or (without both) tasks that you type."""
    return run_agent(CKAgent, default_output=DEFAULT_OUTPUT, **options)


if __name__ == "__main__":
    sys.exit(run_command(cli))
