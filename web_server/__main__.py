"""`python -m web_server`: start the browser server."""

from __future__ import annotations

if __name__ == "__main__":
    from web_server.command_line import quit_on_interrupt

    quit_on_interrupt()

import ipaddress
import sys
from pathlib import Path

import click

from web_server.api.logs import FORMATS, set_up
from web_server.chromium.chromium import ChromiumNotFound, find_chromium
from web_server.chromium.process import allow_many_files, keep_memory_together
from web_server.command_line import run_command
from web_server.network.policy import Policy, RuleError

_MISSING = 'the browser server needs more packages: pip install "ck-pro[web]" (missing: {})'


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option(
    "--host",
    default="127.0.0.1",
    help="Address to bind to; addresses other than loopback need --token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=3000,
    envvar="LISTEN_PORT",
    show_envvar=True,
    help="Port to bind to; 0 picks a free one.",
)
@click.option(
    "--max-browsers",
    type=click.IntRange(1, 500),
    default=16,
    envvar="MAX_BROWSERS",
    show_envvar=True,
    help="Limit of sessions that are leased at the same time.",
)
@click.option(
    "--chromiums",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of Chromium processes that share the sessions; each needs about 200 MB.",
)
@click.option(
    "--token",
    default="",
    envvar="CK_WEB_TOKEN",
    show_envvar=True,
    help="Bearer token that every request needs.",
)
@click.option(
    "--known-host",
    "known_hosts",
    multiple=True,
    metavar="NAME",
    help="Further name of this server in Host headers, for use without a token. Repeatable.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Allow a host, address or range; required for private and loopback ones. Repeatable.",
)
@click.option(
    "--block",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Block a host with its subdomains, an address, a range or '*'. Repeatable.",
)
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="CK_WEB_POLICY",
    show_envvar=True,
    help="File with lines `allow RULE` and `block RULE`; # starts a comment.",
)
@click.option("--chromium", default="", metavar="PATH", help="Chromium executable.")
@click.option(
    "--idle-seconds",
    type=click.FloatRange(min=1),
    default=1800.0,
    help="End a lease after so many seconds without a request.",
)
@click.option(
    "--queue-seconds",
    type=click.FloatRange(min=0),
    default=300.0,
    help="Limit for waiting for a free browser.",
)
@click.option(
    "--max-download-mb",
    type=click.FloatRange(min=0.001),
    default=200.0,
    help="Limit for the size of a download.",
)
@click.option("--verbose", is_flag=True, help="Log every request to standard error.")
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    help="Lines of text, or one JSON object per line.",
)
def main(
    host: str,
    port: int,
    max_browsers: int,
    chromiums: int,
    token: str,
    known_hosts: tuple[str, ...],
    allow: tuple[str, ...],
    block: tuple[str, ...],
    policy_file: Path | None,
    chromium: str,
    idle_seconds: float,
    queue_seconds: float,
    max_download_mb: float,
    verbose: bool,
    log_format: str,
) -> None:
    """Start the browser server: separate browser sessions for agents over HTTP.

    Pages may reach public addresses over http and https. The most specific rule of --allow and
    --block decides, so "--block '*' --allow example.com" makes an allow-list.
    """
    keep_memory_together()
    set_up(log_format, verbose=verbose)
    allow_many_files()
    if not token and not _is_loopback(host):
        raise click.UsageError(
            f"binding to {host} gives other machines access: set --token or CK_WEB_TOKEN"
        )
    try:
        policy = Policy.read(policy_file, allow, block) if policy_file else Policy.of(allow, block)
        executable = find_chromium(chromium)
    except (RuleError, ChromiumNotFound) as error:
        raise click.ClickException(str(error)) from None
    try:
        from web_server.api.server import Server
        from web_server.errors import ServerError
        from web_server.pool.options import PoolOptions
    except ImportError as error:
        raise click.ClickException(_MISSING.format(error.name)) from None
    options = PoolOptions(
        chromium=executable,
        policy=policy,
        max_browsers=max_browsers,
        chromiums=chromiums,
        max_waiting=4 * max_browsers,
        queue_seconds=queue_seconds,
        idle_seconds=idle_seconds,
        max_download=int(max_download_mb * 1_000_000),
    )
    try:
        server = Server(options, host, port, token, known_hosts)
    except (OSError, ValueError) as error:  # ValueError: the name does not resolve
        reason = getattr(error, "strerror", None) or str(error)
        raise click.ClickException(f"cannot listen on {host}:{port}: {reason}") from None
    except ServerError as error:
        raise click.ClickException(error.message) from None
    server.stop_on_signals()
    click.echo(f"listening on {server.url}")
    sys.stdout.flush()
    server.run()


if __name__ == "__main__":
    sys.exit(run_command(main))
