"""`python -m ck_main.mcp`: serve the agents and the browser as MCP tools. See `--help`."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import logging
import sys
from pathlib import Path
from typing import Any

import click

from ck_main.agent import CKAgent
from ck_main.cli.building import build_agent
from ck_main.cli.options import LIMITS, RUN_LIMITS, some_task_options
from ck_main.runner.limits import RunLimits
from ck_main.runner.run_options import RunOptions
from ck_main.runner.service_checks import check_services
from ck_pro.command_line import ExitCode, run_command
from ck_pro.exceptions import ConfigError

DEFAULT_OUTPUT = Path("runs/mcp.jsonl")
_AGENT = ("config", "updates", "model", "planning", "allow", "language", "profile")
EPILOG = """
\b
Tools:
  run_task        the main agent: plans, writes Python, delegates
  run_web_task    the web agent alone
  resume_task     resume a task that stopped for a person, or was cancelled
  browser_...     the browser, one tool per action

\b
Example entry in the settings of an MCP client:
  {"mcpServers": {"ck-pro": {"command": "python",
    "args": ["-m", "ck_main.mcp", "--model", "gpt:gpt-4.1", "--max-steps", "60"]}}}

\b
Each run has a journal beside OUTPUT and a row in it, as with ck_main.main.
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@some_task_options(*_AGENT, *LIMITS, *RUN_LIMITS)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=DEFAULT_OUTPUT,
    show_default=True,
    help="File to append rows to.",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve http://127.0.0.1:PORT/mcp (Streamable HTTP) instead of standard input and output.",
)
@click.option("--no-browser", is_flag=True, help="Do not offer the browser_... tools.")
def cli(output: Path, port: int | None, no_browser: bool, **options: Any) -> ExitCode:
    """Serve the agents and the browser as tools of an MCP client."""
    try:
        from ck_main.mcp_server.serving import serve
    except ImportError:
        raise ConfigError('the package mcp is missing: pip install "ck-pro[mcp]"') from None
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    agent = build_agent(CKAgent, **{name: options[name] for name in _AGENT})
    limits = RunOptions(
        run=RunLimits(**{name: options[f"run_{name}"] for name in LIMITS}),
        **{name: options[name] for name in LIMITS},
    )
    if any(options[name] for name in _AGENT):
        check_services(agent, money_limit=limits.limits_money, judge=None)
    serve(agent, output, limits, port=port, with_browser=not no_browser)
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(run_command(cli))
