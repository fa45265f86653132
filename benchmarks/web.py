"""How fast, lean and complete the browser server is, beside others and two floors, in one run.

    python benchmarks/web.py [--rounds 15] [--sessions 8] [--peers all] [--json FILE]

Pages are generated. Measured are one click with the new observation ready, a new session with its
first page, the tokens of what a model reads, how many of the interactive elements it can use by
id, and memory as sessions are added. Contenders take turns, so that a noisy machine is noisy for
all; ratios are what to read.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import sync_playwright
from web_pages import PAGES, Site
from web_peers import PEERS, PeerMissing, peers
from web_report import table, usable
from web_ways import Contender, Failed, Floor, Ours

from web_server.chromium.memory import tree_bytes

Record = dict[str, Any]


def token_counter() -> Callable[[str], int] | None:
    """How to count tokens of o200k; None if no package with that vocabulary is there."""
    try:
        import bpe_openai  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    encoding = bpe_openai.get_encoding("o200k_base")
    # by lines: it refuses texts of more than 200,000 tokens, and some contenders have such pages
    return lambda text: sum(len(encoding.encode(line)) for line in text.splitlines(True))


def measure_page(contenders: list[Contender], site: Site, page: str, rounds: int) -> Record:
    """Times in ms, texts and failures of all contenders on one page."""
    sessions: dict[str, Any] = {}
    record: Record = {"click": defaultdict(list), "text": {}, "in_sight": [], "failures": {}}
    failures: dict[str, list[str]] = defaultdict(list)
    try:
        for contender in contenders:
            click.echo(f"{page}: opening with {contender.name}", err=True)
            try:
                sessions[contender.name], text = contender.open(site.url(page))
            except Failed as e:
                failures[contender.name].append(str(e))
                continue
            if isinstance(contender, Floor):
                record["in_sight"] = contender.in_sight(sessions[contender.name])
            else:
                record["text"][contender.name] = text
        for turn in range(rounds + 1):
            click.echo(f"{page}: round {turn} of {rounds}", err=True)
            for contender in contenders:
                if contender.name not in sessions:
                    continue
                begun = time.perf_counter()
                try:
                    contender.click(sessions[contender.name])
                except Failed as e:
                    failures[contender.name].append(str(e))
                    continue
                if turn:  # the first one warms up
                    took = (time.perf_counter() - begun) * 1000
                    record["click"][contender.name].append(took)
    finally:
        for contender in contenders:
            if contender.name in sessions:
                contender.close(sessions[contender.name])
    record["failures"] = failures
    return record


def measure_opening(contenders: list[Contender], site: Site, rounds: int) -> dict[str, list[float]]:
    """Times in ms from nothing to the first page of a new session, everything else warm."""
    times: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds):
        click.echo(f"opening: round {turn + 1} of {rounds}", err=True)
        for contender in contenders:
            begun = time.perf_counter()
            try:
                session, _text = contender.open(site.url("tiny"))
            except Failed:
                continue
            times[contender.name].append((time.perf_counter() - begun) * 1000)
            contender.close(session)
    return times


def measure_memory(contender: Contender, site: Site, counts: list[int]) -> dict[int, float]:
    """Number of sessions -> megabytes of the contender's processes, shared memory counted once."""
    click.echo(f"memory of {contender.name}", err=True)
    sessions: list[Any] = []
    found: dict[int, float] = {}
    try:
        for count in counts:
            while len(sessions) < count:
                sessions.append(contender.open(site.url("article"))[0])
            found[count] = sum(tree_bytes(pid) for pid in contender.pids()) / 1e6
    except Failed as e:
        click.echo(f"memory of {contender.name}: {str(e)[:200]}", err=True)
    finally:
        for session in sessions:
            contender.close(session)
    return found


def run(
    contenders: list[Contender],
    site: Site,
    pages: list[str],
    rounds: int,
    sessions: int,
    keep: Callable[[Record], None],
) -> Record:
    """Everything measured, as data that can be kept; `keep` is called after each part of it."""
    record: Record = {"rounds": rounds, "pages": {}, "opening": {}, "memory": {}}
    counter = token_counter()
    for page in pages:
        seen = measure_page(contenders, site, page, rounds)
        record["pages"][page] = {
            "click": seen["click"],
            "failures": seen["failures"],
            "tokens": {n: counter(t) if counter else None for n, t in seen["text"].items()},
            "usable": {n: usable(n, t, page, seen["in_sight"]) for n, t in seen["text"].items()},
        }
        keep(record)
    record["opening"] = measure_opening(contenders, site, max(2, rounds // 3))
    keep(record)
    counts = sorted({1, min(4, sessions), sessions})
    for contender in contenders:
        if not contender.floor and "," not in contender.name and "+" not in contender.name:
            record["memory"][contender.name] = measure_memory(contender, site, counts)
            keep(record)
    return record


@click.command()
@click.option("--rounds", default=15, show_default=True, help="Clicks per page and contender.")
@click.option("--sessions", default=8, show_default=True, help="Most sessions at once, for memory.")
@click.option("--pages", default=",".join(PAGES), show_default=True)
@click.option("--peers", "named", default="", help=f"all, or some of: {', '.join(PEERS)}.")
@click.option("--peer-python", default=sys.executable, help="A Python that has the Python peers.")
@click.option("--mcp", default="peers", show_default=True, help="Folder with its node_modules.")
@click.option(
    "--json", "json_file", type=click.Path(), help="Keep what was measured, for the plot."
)
def main(
    rounds: int,
    sessions: int,
    pages: str,
    named: str,
    peer_python: str,
    mcp: str,
    json_file: str | None,
) -> None:
    """Print medians, ratios to ours, tokens, recall and memory."""
    wanted = list(PEERS) if named == "all" else [n.strip() for n in named.split(",") if n.strip()]
    if unknown := sorted(set(wanted) - set(PEERS)):
        raise click.ClickException(
            f"no peer is called {unknown[0]!r}; there are {', '.join(PEERS)}"
        )
    chosen = [page.strip() for page in pages.split(",") if page.strip()]
    if unknown := sorted(set(chosen) - set(PAGES)):
        raise click.ClickException(
            f"no page is called {unknown[0]!r}; there are {', '.join(PAGES)}"
        )
    # so that what was started is ended, also when a time limit ends this
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))

    def keep(record: Record) -> None:
        if json_file:
            Path(json_file).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    contenders: list[Contender] = []
    with Site() as site, sync_playwright() as playwright:
        try:
            contenders += peers(wanted, peer_python, mcp)  # first, as one may be missing
            for mouse in (True, False):
                contenders.insert(0, Floor(playwright, mouse=mouse))
            jpeg = {"screenshot": "plain", "imageFormat": "jpeg"}
            for name, further in (("ours + jpeg", jpeg), ("ours", {})):
                contenders.insert(2, Ours(site.host, sessions + 1, name, **further))
            record = run(contenders, site, chosen, rounds, sessions, keep)
        except PeerMissing as e:
            raise click.ClickException(str(e)) from None
        finally:
            with ExitStack() as endings:  # each is ended, also where another's end fails
                for contender in contenders:
                    endings.callback(contender.end)
    print(table(record))


if __name__ == "__main__":
    main()
