"""Thousands of sessions in a row against one browser server: does its memory stay where it is?

    python benchmarks/soak.py [--sessions 1000] [--minutes 30] [--json FILE]

A session leases a browser, opens a page, clicks, observes and gives the browser back. Between the
sessions the memory of the server and of its Chromium is sampled, shared pages counted once (PSS).
The slope is the median of the slopes between all pairs of samples (Theil and Sen), which single
spikes do not move. The first fifth, 50 sessions at least, is left out: caches fill then.
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

from web_pages import Site
from web_ways import Ours

from web_server.chromium.memory import process_tree

_PAGES = ("form", "article", "tiny", "table")
_LIMIT = 20.0
_LEAST = 200  # sessions that a slope is told from: fewer are all noise


@dataclass
class Sample:
    """What was there after a number of sessions, all of them closed.

    Attributes:
        sessions: done so far.
        seconds: since the first one began.
        server: megabytes of the server's own process.
        rest: megabytes of its children: Chromium, and the driver of the browser library.
        processes: of the whole tree.
    """

    sessions: int
    seconds: float
    server: float
    rest: float
    processes: int

    @property
    def total(self) -> float:
        """Megabytes of the whole tree."""
        return self.server + self.rest


@dataclass
class Soak:
    """All samples of a run.

    Attributes:
        samples: in order.
        cut: whether its time limit ended it early.
    """

    samples: list[Sample] = field(default_factory=list)
    cut: bool = False

    def settled(self) -> list[Sample]:
        """The samples after the warming up: a fifth of the run, and 50 sessions at least."""
        after = max(50, self.samples[-1].sessions // 5) if self.samples else 0
        return [seen for seen in self.samples if seen.sessions >= after]

    def growth(self) -> float | None:
        """Megabytes per 1,000 sessions; None if there are too few samples to tell."""
        settled = self.settled()
        if len(settled) < 5 or settled[-1].sessions - settled[0].sessions < _LEAST:
            return None
        slopes = [
            (b.total - a.total) / (b.sessions - a.sessions) for a, b in combinations(settled, 2)
        ]
        return 1000 * statistics.median(slopes)

    def verdict(self, limit: float = _LIMIT) -> str:
        """One line for a person, which begins with `flat`, `GROWS` or `too short`."""
        first, last, grown = self.samples[0], self.samples[-1], self.growth()
        done = f"{last.sessions} sessions in {last.seconds:.0f} s"
        done += " (cut by its time limit)" if self.cut else ""
        memory = f"{first.total:.0f} -> {last.total:.0f} MB"
        memory += f", {first.processes} -> {last.processes} processes"
        if grown is None:
            return f"too short to tell: {done}, {memory}"
        word = "flat" if grown <= limit else "GROWS"
        return f"{word}: {done}, {grown:+.1f} MB per 1,000 sessions (limit {limit:g}), {memory}"


def sample(pid: int, sessions: int, begun: float) -> Sample:
    """Memory and processes of a server now."""
    tree = process_tree(pid)
    sizes = {each: _pss(each) for each in tree}
    return Sample(
        sessions,
        round(time.monotonic() - begun, 1),
        round(sizes.pop(pid) / 1e6, 1),
        round(sum(sizes.values()) / 1e6, 1),
        len(tree),
    )


def _pss(pid: int) -> int:
    """Memory of one process in bytes, what it shares with others counted by its part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def one_session(server: Ours, url: str) -> None:
    """Lease, open, click, observe, close.

    Raises:
        AssertionError: the page does not show the click.
        requests.RequestException: a request failed.
    """
    session, _text = server.open(url)
    try:
        seen = server.click(session)
        if "StaticText '1'" not in seen:
            raise AssertionError(f"the click is not seen in {seen[:200]!r}")
        server.post("getAccessibilityTree", browserId=session["browserId"], pageId="0")
    finally:
        server.close(session)


def soak(
    server: Ours,
    site: Site,
    sessions: int,
    *,
    every: int = 20,
    seconds: float = 3600.0,
    say: Callable[[Sample], None] = lambda seen: None,
) -> Soak:
    """Run sessions one after the other, and sample memory after every so many.

    Args:
        server: the server that is tried.
        site: where the pages are.
        sessions: how many.
        every: how many sessions between two samples; a multiple of the four pages compares like
            with like.
        seconds: it ends by itself then, with what it has.
        say: is given each sample.
    """
    begun = time.monotonic()
    run = Soak()
    pid = server.pids()[0]
    for number in range(1, sessions + 1):
        one_session(server, site.url(_PAGES[number % len(_PAGES)]))
        late = time.monotonic() - begun > seconds
        if number % every == 0 or number == sessions or late:
            run.samples.append(sample(pid, number, begun))
            say(run.samples[-1])
        if late:
            run.cut = True
            break
    return run


@click.command()
@click.option("--sessions", default=1000, show_default=True)
@click.option("--every", default=20, show_default=True, help="Sessions between two samples.")
@click.option("--minutes", default=30.0, show_default=True, help="End after this long.")
@click.option("--limit", default=_LIMIT, show_default=True, help="MB per 1,000 sessions.")
@click.option("--json", "json_file", type=click.Path(), help="Keep all samples in this file.")
def main(sessions: int, every: int, minutes: float, limit: float, json_file: str | None) -> None:
    """Run the sessions; exit code 1 if memory grows."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))

    def say(seen: Sample) -> None:
        if seen.sessions % (10 * every) == 0 or seen.sessions == sessions:
            print(
                f"{seen.sessions:6} sessions {seen.seconds:7.0f} s   server {seen.server:6.1f} MB"
                f"   chromium and driver {seen.rest:7.1f} MB   {seen.processes} processes",
                flush=True,
            )

    with Site() as site:
        server = Ours(site.host, 2)
        try:
            run = soak(server, site, sessions, every=every, seconds=minutes * 60, say=say)
        finally:
            server.end()
    print(run.verdict(limit))
    if json_file:
        rows = [asdict(seen) for seen in run.samples]
        Path(json_file).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if run.verdict(limit).startswith("GROWS"):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
