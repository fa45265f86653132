"""`python -m ck_main.agents`: list the agents that `--agent NAME` selects. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys

import click

from ck_main.cli.agent_names import BUILTIN
from ck_pro.agent.hub import GROUP, list_agents, summary_of
from ck_pro.command_line import ExitCode, run_command


@click.command(
    epilog=f"Packages add agents by entry points in the group {GROUP}; see docs/extending.md.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
def cli() -> ExitCode:
    """List the agents by name: class, package, summary."""
    entries = list_agents(BUILTIN)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        click.echo(f"{entry.name:<{width}}  {entry.target} ({entry.source or 'this process'})")
        click.echo(f"{'':<{width}}  {summary_of(entry)}")
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(run_command(cli))
