"""`python -m ck_main.view`: show runs in the browser. See `--help` and docs/viewer.md."""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ck_pro.command_line import AnyPath, ExitCode, run_command
from ck_pro.local_page import require_flask
from ck_pro.local_page.opening import can_open, open_in_browser
from ck_pro.local_page.security import is_loopback
from ck_pro.trajectory.reading.sources import require_not_input

EPILOG = """
\b
Exit codes:
  0    ended with Ctrl-C
  2    the command line, an input or the address cannot be used
  6    an internal error; the message names the full log
"""


@click.command(
    epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.argument("runs", type=AnyPath(), nargs=-1, required=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 picks a free one.")
@click.option("--host", default="127.0.0.1", help="Address to bind to.")
@click.option(
    "--open/--no-open",
    "opens",
    default=None,
    show_default="open on a terminal with a display",
    help="Open the page in your browser.",
)
@click.option("--labels", type=AnyPath(), metavar="FILE", help="The file of labels.")
def cli(
    runs: tuple[Path, ...], port: int, host: str, opens: bool | None, labels: Path | None
) -> ExitCode:
    """Show RUNS in the browser: outputs (runs/a.jsonl), and folders of journals.

    An output and its folder of journals are one input. Runs in progress appear and grow.
    """
    require_flask("the viewer")
    from ck_main.viewer.app import create_app
    from ck_main.viewer.runs.library import Library
    from ck_main.viewer.runs.sources import sources_of

    sources = sources_of(runs)
    if labels is not None:
        require_not_input("--labels", labels, [one.path for one in sources])
    library = Library(sources)
    app = create_app(library, host=host, port=port, labels=labels)
    if not is_loopback(host):
        click.echo(
            f"warning: {host} is reachable from other machines; the address is the only key, and "
            "it is sent unencrypted",
            err=True,
        )

    def ready() -> None:
        click.echo(app.url)
        sys.stdout.flush()
        if can_open() if opens is None else opens:
            open_in_browser(app.url)

    app.run(ready)
    return ExitCode.DONE


def main(args: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command(cli, args)


if __name__ == "__main__":
    sys.exit(main())
