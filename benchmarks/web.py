"""Compare the browser server with peers and two floors in one run.

    python benchmarks/web.py [--rounds 15] [--sessions 8] [--peers all] [--json FILE]

Measures on generated pages: a click with the next observation, a new session with its first page,
the tokens of an observation, the interactive elements that are usable by id, and memory by number
of sessions. Contenders take turns, so that noise affects all of them: compare ratios.
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
from web_contenders import BrowserServer, Contender, ContenderFailed, Floor
from web_pages import PAGES, Site
from web_peers import PEERS, PeerMissing, peers
from web_report import table, usable

from web_server.chromium.memory import tree_bytes

Record = dict[str, Any]


def token_counter() -> Callable[[str], int] | None:
    """Return a counter of o200k tokens; None if bpe-openai is not installed."""
    try:
        import bpe_openai  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    encoding = bpe_openai.get_encoding("o200k_base")
    # line by line, because it refuses texts of more than 200,000 tokens
    return lambda text: sum(len(encoding.encode(line)) for line in text.splitlines(True))


def measure_page(contenders: list[Contender], site: Site, page: str, rounds: int) -> Record:
    """Measure times in ms, texts and failures of all contenders on a page."""
    sessions: dict[str, Any] = {}
    record: Record = {"click": defaultdict(list), "text": {}, "in_view": [], "failures": {}}
    failures: dict[str, list[str]] = defaultdict(list)
    try:
        for contender in contenders:
            click.echo(f"{page}: opening with {contender.name}", err=True)
            try:
                sessions[contender.name], text = contender.open(site.url(page))
            except ContenderFailed as e:
                failures[contender.name].append(str(e))
                continue
            if isinstance(contender, Floor):
                record["in_view"] = contender.in_view(sessions[contender.name])
            else:
                record["text"][contender.name] = text
        for turn in range(rounds + 1):
            click.echo(f"{page}: round {turn} of {rounds}", err=True)
            for contender in contenders:
                if contender.name not in sessions:
                    continue
                start = time.perf_counter()
                try:
                    contender.click(sessions[contender.name])
                except ContenderFailed as e:
                    failures[contender.name].append(str(e))
                    continue
                if turn:  # the first round warms up
                    milliseconds = (time.perf_counter() - start) * 1000
                    record["click"][contender.name].append(milliseconds)
    finally:
        for contender in contenders:
            if contender.name in sessions:
                contender.close(sessions[contender.name])
    record["failures"] = failures
    return record


def measure_opening(contenders: list[Contender], site: Site, rounds: int) -> dict[str, list[float]]:
    """Measure the times in ms of a new session with its first page, everything else warm."""
    times: dict[str, list[float]] = defaultdict(list)
    for turn in range(rounds):
        click.echo(f"opening: round {turn + 1} of {rounds}", err=True)
        for contender in contenders:
            start = time.perf_counter()
            try:
                session, _text = contender.open(site.url("tiny"))
            except ContenderFailed:
                continue
            times[contender.name].append((time.perf_counter() - start) * 1000)
            contender.close(session)
    return times


def measure_memory(contender: Contender, site: Site, counts: list[int]) -> dict[int, float]:
    """Measure megabytes by number of sessions, shared memory counted once."""
    click.echo(f"memory of {contender.name}", err=True)
    sessions: list[Any] = []
    found: dict[int, float] = {}
    try:
        for count in counts:
            while len(sessions) < count:
                sessions.append(contender.open(site.url("article"))[0])
            found[count] = sum(tree_bytes(pid) for pid in contender.pids()) / 1e6
    except ContenderFailed as e:
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
    save: Callable[[Record], None],
) -> Record:
    """Measure everything; calls `save` after each part."""
    record: Record = {"rounds": rounds, "pages": {}, "opening": {}, "memory": {}}
    counter = token_counter()
    for page in pages:
        measured = measure_page(contenders, site, page, rounds)
        record["pages"][page] = {
            "click": measured["click"],
            "failures": measured["failures"],
            "tokens": {n: counter(t) if counter else None for n, t in measured["text"].items()},
            "usable": {
                n: usable(n, t, page, measured["in_view"]) for n, t in measured["text"].items()
            },
        }
        save(record)
    record["opening"] = measure_opening(contenders, site, max(2, rounds // 3))
    save(record)
    counts = sorted({1, min(4, sessions), sessions})
    for contender in contenders:
        if not contender.floor and "," not in contender.name and "+" not in contender.name:
            record["memory"][contender.name] = measure_memory(contender, site, counts)
            save(record)
    return record


@click.command()
@click.option("--rounds", default=15, show_default=True, help="Clicks per page and contender.")
@click.option(
    "--sessions", default=8, show_default=True, help="Largest number of sessions for the memory."
)
@click.option("--pages", default=",".join(PAGES), show_default=True)
@click.option("--peers", "named", default="", help=f"all, or some of {', '.join(PEERS)}.")
@click.option(
    "--peer-python", default=sys.executable, help="Python in which the Python peers are installed."
)
@click.option(
    "--mcp", default="peers", show_default=True, help="Folder with node_modules/@playwright/mcp."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(),
    help="Write the measurements to this file, for the plot.",
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
    """Print medians, ratios, tokens, recall and memory."""
    chosen_peers = (
        list(PEERS) if named == "all" else [n.strip() for n in named.split(",") if n.strip()]
    )
    if unknown := sorted(set(chosen_peers) - set(PEERS)):
        raise click.ClickException(f"unknown peer {unknown[0]!r}; known: {', '.join(PEERS)}")
    chosen = [page.strip() for page in pages.split(",") if page.strip()]
    if unknown := sorted(set(chosen) - set(PAGES)):
        raise click.ClickException(f"unknown page {unknown[0]!r}; known: {', '.join(PAGES)}")
    # run the cleanup below also if a time limit ends this process
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))

    def save(record: Record) -> None:
        if json_file:
            Path(json_file).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    contenders: list[Contender] = []
    with Site() as site, sync_playwright() as playwright:
        try:
            contenders += peers(chosen_peers, peer_python, mcp)  # first: one may be missing
            for mouse in (True, False):
                contenders.insert(0, Floor(playwright, mouse=mouse))
            jpeg = {"screenshot": "plain", "imageFormat": "jpeg"}
            for name, further in (("web_server + jpeg", jpeg), ("web_server", {})):
                contenders.insert(2, BrowserServer(site.host, sessions + 1, name, **further))
            record = run(contenders, site, chosen, rounds, sessions, save)
        except PeerMissing as e:
            raise click.ClickException(str(e)) from None
        finally:
            with ExitStack() as cleanup:  # stops each, even if another fails
                for contender in contenders:
                    cleanup.callback(contender.stop)
    print(table(record))


if __name__ == "__main__":
    main()
