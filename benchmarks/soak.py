"""Check that the memory of a browser server does not grow over many sessions.

    python benchmarks/soak.py [--sessions 1000] [--minutes 30] [--json FILE]

A session leases a browser, opens a page, clicks, observes and closes the browser. Between sessions
the memory of the server and its Chromium is sampled, shared pages counted once (PSS). The slope is
the median of the slopes between all pairs of samples (Theil-Sen), which is robust against spikes.
The first fifth of the run, at least 50 sessions, is ignored, because caches fill then.
"""

from __future__ import annotations

import json
import signal
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from web_contenders import BrowserServer
from web_pages import Site

from web_server.chromium.memory import process_bytes, process_tree

_PAGES = ("form", "article", "tiny", "table")
_LIMIT = 20.0
_MIN_SESSIONS = 200  # for a slope; with fewer it is noise


@dataclass
class Sample:
    """A sample after some sessions, all of them closed.

    Attributes:
        sessions: number of sessions so far.
        seconds: since the start.
        server: megabytes of the server's process.
        rest: megabytes of its child processes: Chromium and Playwright.
        processes: number of all processes.
    """

    sessions: int
    seconds: float
    server: float
    rest: float
    processes: int

    @property
    def total(self) -> float:
        """Megabytes of all processes."""
        return self.server + self.rest


@dataclass
class Soak:
    """The samples of a run.

    Attributes:
        samples: in order.
        cut: whether the time limit ended the run.
    """

    samples: list[Sample] = field(default_factory=list)
    cut: bool = False

    def settled(self) -> list[Sample]:
        """Return the samples after the warm-up: a fifth of the run, at least 50 sessions."""
        after = max(50, self.samples[-1].sessions // 5) if self.samples else 0
        return [seen for seen in self.samples if seen.sessions >= after]

    def growth(self) -> float | None:
        """Return the growth in megabytes per 1,000 sessions; None with too few samples."""
        settled = self.settled()
        if len(settled) < 5 or settled[-1].sessions - settled[0].sessions < _MIN_SESSIONS:
            return None
        slopes = [
            (b.total - a.total) / (b.sessions - a.sessions) for a, b in combinations(settled, 2)
        ]
        return 1000 * statistics.median(slopes)

    def verdict(self, limit: float = _LIMIT) -> str:
        """Return one line that begins with `flat`, `GROWS` or `too short`."""
        first, last, grown = self.samples[0], self.samples[-1], self.growth()
        done = f"{last.sessions} sessions in {last.seconds:.0f} s"
        done += " (ended by the time limit)" if self.cut else ""
        memory = f"{first.total:.0f} -> {last.total:.0f} MB"
        memory += f", {first.processes} -> {last.processes} processes"
        if grown is None:
            return f"too short to judge: {done}, {memory}"
        word = "flat" if grown <= limit else "GROWS"
        return f"{word}: {done}, {grown:+.1f} MB per 1,000 sessions (limit {limit:g}), {memory}"


def sample(pid: int, sessions: int, start: float) -> Sample:
    """Measure memory and processes of a server."""
    tree = process_tree(pid)
    sizes = {each: process_bytes(each) for each in tree}
    return Sample(
        sessions,
        round(time.monotonic() - start, 1),
        round(sizes.pop(pid) / 1e6, 1),
        round(sum(sizes.values()) / 1e6, 1),
        len(tree),
    )


def one_session(server: BrowserServer, url: str) -> None:
    """Lease a browser, open a page, click, observe and close.

    Raises:
        AssertionError: the observation does not show the click.
        requests.RequestException: a request failed.
    """
    session, _text = server.open(url)
    try:
        text = server.click(session)
        if "StaticText '1'" not in text:
            raise AssertionError(f"the click had no effect: {text[:200]!r}")
        server.post("getAccessibilityTree", browserId=session["browserId"], pageId="0")
    finally:
        server.close(session)


def soak(
    server: BrowserServer,
    site: Site,
    sessions: int,
    *,
    every: int = 20,
    seconds: float = 3600.0,
    report: Callable[[Sample], None] = lambda seen: None,
) -> Soak:
    """Run sessions one after another and sample the memory.

    Args:
        server: the server.
        site: the pages.
        sessions: number of sessions.
        every: number of sessions between samples, a multiple of the number of pages.
        seconds: time limit.
        report: receives each sample.
    """
    start = time.monotonic()
    run = Soak()
    pid = server.pids()[0]
    for number in range(1, sessions + 1):
        one_session(server, site.url(_PAGES[number % len(_PAGES)]))
        late = time.monotonic() - start > seconds
        if number % every == 0 or number == sessions or late:
            run.samples.append(sample(pid, number, start))
            report(run.samples[-1])
        if late:
            run.cut = True
            break
    return run


@click.command()
@click.option("--sessions", default=1000, show_default=True)
@click.option("--every", default=20, show_default=True, help="Number of sessions between samples.")
@click.option("--minutes", default=30.0, show_default=True, help="Time limit.")
@click.option("--limit", default=_LIMIT, show_default=True, help="Limit in MB per 1,000 sessions.")
@click.option("--json", "json_file", type=click.Path(), help="Write all samples to this file.")
def main(sessions: int, every: int, minutes: float, limit: float, json_file: str | None) -> None:
    """Run the sessions. The exit code is 1 if the memory grows."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))

    def report(seen: Sample) -> None:
        if seen.sessions % (10 * every) == 0 or seen.sessions == sessions:
            print(
                f"{seen.sessions:6} sessions {seen.seconds:7.0f} s   server {seen.server:6.1f} MB"
                f"   chromium and driver {seen.rest:7.1f} MB   {seen.processes} processes",
                flush=True,
            )

    with Site() as site:
        server = BrowserServer(site.host, 2)
        try:
            run = soak(server, site, sessions, every=every, seconds=minutes * 60, report=report)
        finally:
            server.stop()
    print(run.verdict(limit))
    if json_file:
        rows = [asdict(seen) for seen in run.samples]
        Path(json_file).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if run.verdict(limit).startswith("GROWS"):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
