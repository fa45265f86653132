"""Measure step pictures: milliseconds and bytes of a picture on several pages.

    python benchmarks/pictures.py [--rounds 15] [--trac]

Also measures a click with the next observation, to compare. A journal adds one line per picture.
"""

from __future__ import annotations

import base64
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from web_pages import PAGES, Site

from benchmarks.scenarios.apps import APPS
from ck_pro.events import BrowserAction
from ck_web import WebEnv


def milliseconds(act: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000


def measure(name: str, url: str, rounds: int, folder: Path) -> str:
    """Return a row of the table for a page."""
    env = WebEnv({"allow": ["127.0.0.1", "localhost"]}, workdir=folder, target_url=url)
    try:
        lines = env.observe().text.splitlines()
        first = next(line for line in lines if "] button '" in line or "] link '" in line)
        action = BrowserAction(name="click", target=first.strip().partition("]")[0][1:])
        picture = env.picture(action)
        assert picture is not None
        taken = [milliseconds(lambda: env.picture(action)) for _ in range(rounds)]
        size = len(base64.b64decode(picture["image"].partition(",")[2]))
        line = len(json.dumps({**picture, "image": "blob:" + 69 * "0"}, separators=(",", ":")))
        acted = [milliseconds(lambda: env.execute(action)) for _ in range(rounds)]
    finally:
        env.close()
    times = [f"{statistics.median(each):.0f} ({min(each):.0f})" for each in (taken, acted)]
    return f"| {name} | {' | '.join(times)} | {size:,} | {line:,} |"


@click.command()
@click.option("--rounds", default=15, show_default=True)
@click.option("--trac", is_flag=True, help="Also measure a page of Trac.")
def cli(rounds: int, trac: bool) -> None:
    """Print a table: median (minimum) of the times."""
    click.echo("| page | picture, ms | click, ms | bytes of a picture | bytes of its line |")
    click.echo("|---|---|---|---|---|")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site = stack.enter_context(Site())
        pages = {name: site.url(name) for name in PAGES}
        if trac:
            pages["Trac"] = stack.enter_context(APPS["trac"].serving(folder / "trac"))
        for name, url in pages.items():
            click.echo(measure(name, url, rounds, folder))


if __name__ == "__main__":
    cli()
