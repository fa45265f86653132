"""`ck-pro COMMAND ...`: all commands of this project under one name. See `ck-pro --help`.

`ck-pro COMMAND` runs the same module as `python -m MODULE`. Only that module is imported, so that
`ck-pro export` needs neither a browser nor the packages of an extra.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ck_pro.interrupts import quit_on_interrupt
from ck_pro.version import __version__

COMMANDS = {
    "run": ("ck_main.main", "Run tasks with the main agent."),
    "web": ("ck_web.main", "Run tasks with the web agent alone."),
    "agents": ("ck_main.agents", "List the agents that --agent NAME selects."),
    "mcp": ("ck_main.mcp", "Serve the agents and the browser as MCP tools."),
    "demo": ("ck_main.demo", "Run the demo: ten tasks, without a key or a network."),
    "analyze": ("ck_main.analyze", "Analyse an output, or compare two."),
    "score": ("ck_main.score", "Score the rows of an output again."),
    "view": ("ck_main.view", "Show runs in the browser, also while they are running."),
    "share": ("ck_main.share", "Write one run as a web page, as pictures or as Markdown."),
    "export": ("ck_pro.trajectory.export", "Write runs as training data."),
    "preview": ("ck_pro.trajectory.preview", "Show what an export would train on."),
    "diff": ("ck_pro.trajectory.diff", "Compare two sets of runs."),
    "fork": ("ck_pro.trajectory.fork", "Start a new run from the first steps of another."),
    "spans": ("ck_pro.trajectory.spans", "Write or send runs as OpenTelemetry spans."),
    "compress": ("ck_pro.trajectory.compress", "Compress the journals of runs."),
    "serve": ("web_server", "Start the browser server."),
    "site": ("ck_main.demo_site", "Serve the demo's web site."),
    "install-chromium": ("web_server.install_chromium", "Find a Chromium, or install one."),
}
"""Module and summary of each command."""
_USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names.

    Args:
        arguments: the command line without the program; default: that of the process.

    Returns:
        The exit code for a request that names no command. A command ends the process itself.
    """
    if arguments is None:
        quit_on_interrupt()
        arguments = sys.argv[1:]
    name, *rest = [*arguments] or [""]
    if name not in COMMANDS:
        from ck_pro.command_line import run_steadily

        return run_steadily(lambda: _answer(name))
    import runpy

    sys.argv = [f"ck-pro {name}", *rest]
    runpy.run_module(COMMANDS[name][0], run_name="__main__")
    return 0


def _answer(name: str) -> int:
    """Handle a first argument that is not a command."""
    if name in ("-h", "--help"):
        sys.stdout.write(help_text())
        return 0
    if name == "--version":
        sys.stdout.write(f"ck-pro {__version__}\n")
        return 0
    sys.stderr.write(f"error: {_mistake(name)} (see --help)\n")
    return _USAGE_ERROR


def help_text() -> str:
    """Return the list of commands."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return (
        "Usage: ck-pro COMMAND [OPTIONS]\n\n"
        "Agents that solve tasks by writing Python, with a real browser.\n\n"
        "Commands:\n" + "\n".join(lines) + "\n\n"
        "Options:\n  --version   Print the version.\n  -h, --help  Print this text.\n\n"
        "`ck-pro COMMAND --help` lists the options of a command. Each command is also a\n"
        "module: `ck-pro run` is `python -m ck_main.main`.\n"
    )


def _mistake(name: str) -> str:
    if not name:
        return "no command given"
    import difflib

    similar = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"there is no command {name!r}" + (f"; did you mean {similar[0]!r}?" if similar else "")
