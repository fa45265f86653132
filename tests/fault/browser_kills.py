"""Kill processes of the browser server's Chromium at random while sessions are in use.

    python tests/fault/browser_kills.py [--kills 20] [--callers 3] [--chromiums 1] [--seed 1]

The server is real, with a small site on loopback. Each caller leases browsers, opens pages and
tabs, acts on them and returns the browsers. Meanwhile renderers, Chromium, its helpers (graphics,
network, the process that forks renderers) and Playwright's driver get kill -9. Each response must
be that of the action: 200, or 404 or 409 for an element whose page closed or an interrupted action.
No session may lose a page. Prints a JSON report; exit code 1 if there are problems. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support" / "web")]

from server_process import Process  # noqa: E402
from server_site import PAGES, Site  # noqa: E402

KINDS = ("renderer", "renderer", "chromium", "gpu-process", "utility", "zygote", "run-driver")
PAUSE = (2.0, 6.0)
"""Seconds between two kills."""
PATIENCE = 200.0
"""Seconds for one answer; only a hang takes so long."""
ITEMS = ("link", "button", "textbox", "combobox")
MAX_PAGES = 5
PAGES["/kept-form"] = """<title>Form</title><input aria-label=Name><select aria-label=Which>
    <option>a<option>b</select><button onclick="document.title = 'Done'">Go</button>
    <a href=/two target=_blank>New</a><a href=/two>Same</a>"""


@dataclass
class Report:
    """The actions done, and the problems found."""

    kills: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class Caller:
    """Leases and uses one browser after the other until `stop` is set.

    Args:
        server, site: addresses.
        report: collects problems.
        stop: ends the caller.
        seed: for its choices.
    """

    def __init__(self, server: str, site: str, report: Report, stop: threading.Event, seed: int):
        self._server, self._site, self._report, self._stop = server, site, report, stop
        self._random = random.Random(seed)
        self._browser = ""
        self._pages: set[str] = set()

    def run(self) -> None:
        """Work until `stop` is set."""
        while not self._stop.is_set():
            tabs = self._random.random() < 0.6
            leased = self._ask("getBrowser", tabs=tabs)
            if leased is None:
                continue
            self._browser, self._pages = leased["browserId"], set()
            for _ in range(self._random.randint(8, 25)):
                if self._stop.is_set():
                    break
                self._work(tabs)
            self._ask("closeBrowser")

    def _ask(self, route: str, **body: Any) -> dict[str, Any] | None:
        """Return the response; None unless it is a success."""
        named = {"browserId": self._browser, **body}
        reply = requests.post(f"{self._server}/{route}", json=named, timeout=PATIENCE)
        self._report.answers[f"{route} {reply.status_code}"] += 1
        if reply.status_code == 200:
            answer: dict[str, Any] = reply.json()
            return answer
        if route != "performAction" or reply.status_code not in (404, 409):
            self._report.problems.append(f"{route} {body}: {reply.status_code} {reply.text[:300]}")
        return None

    def _work(self, tabs: bool) -> None:
        """Open a page, or act on the current page."""
        path = self._random.choice(("/kept-form", "/two", "/"))
        if not self._pages or (len(self._pages) < MAX_PAGES and self._random.random() < 0.15):
            opened = self._ask("openPage", url=self._site + path)
            if opened is not None:
                self._pages.add(opened["pageId"])
            return
        page = self._random.choice(sorted(self._pages))
        lean = {"screenshot": "none", "html": False}
        seen = self._ask("getAccessibilityTree", pageId=page, **lean)
        if seen is None:
            return
        self._take_stock(seen, gone=set())
        acts = [("goto", self._site + path), ("goback", ""), ("wait", "")]
        if tabs and len(self._pages) > 1:
            acts.append(("close_tab", ""))
        if tabs and len(self._pages) < MAX_PAGES:
            acts.append(("new_tab", self._site + path))
        action, value = self._random.choice(acts)
        target = ""
        if self._random.random() < 0.5 and (items := _items(seen["yaml"])):
            target, role = self._random.choice(items)
            action = {"textbox": "type", "combobox": "select"}.get(role, "click")
            value = "b"
        act = {"actionName": action, "actionValue": value, "targetId": target, "timeout": 50}
        done = self._ask("performAction", pageId=page, observe=True, **act, **lean)
        if done is not None:  # "Close me" and going back from a pop-up close pages
            closing = {page} if action in ("close_tab", "click", "goback") else set()
            self._take_stock(done["observation"], gone=closing)

    def _take_stock(self, seen: dict[str, Any], gone: set[str]) -> None:
        """Compare the tabs of an observation with the known tabs."""
        found = {tab["pageId"] for tab in seen["tabs"]}
        if lost := self._pages - found - gone:
            self._report.problems.append(f"lost {sorted(lost)} of {sorted(self._pages)}: {seen}")
        self._pages = found


def _items(tree: str) -> list[tuple[str, str]]:
    """Return the ids and roles of the elements that accept actions."""
    lines = [line.strip().split(" ", 2) for line in tree.split("\n")]
    found = [(each[0].strip("[]"), each[1]) for each in lines if len(each) > 1]
    return [(number, role) for number, role in found if role in ITEMS]


def kill_at_random(server: Process, count: int, chance: random.Random, report: Report) -> None:
    """Kill `kills` processes, one by one."""
    while report.kills.total() < count:
        threading.Event().wait(chance.uniform(*PAUSE))
        kind = chance.choice(KINDS)
        if kind == "chromium":
            found = server.chromiums()
        else:
            found = server.processes(kind if kind == "run-driver" else f"--type={kind}")
        for pid in found and [chance.choice(found)]:
            try:
                os.kill(pid, signal.SIGKILL)
                report.kills[kind] += 1
            except ProcessLookupError:
                pass  # it ended with another one


def campaign(kills: int, callers: int, chromiums: int, seed: int) -> Report:
    """Run callers and kills; return the report."""
    report, stop = Report(), threading.Event()
    site = Site()
    options = ("--max-browsers", str(callers + 1), "--chromiums", str(chromiums))
    with Process(*options, site=site) as server:
        runs: list[Callable[[], None]] = [
            Caller(server.url, site.url, report, stop, seed + number).run
            for number in range(callers)
        ]
        threads = [threading.Thread(target=_guarded, args=(run, report)) for run in runs]
        for thread in threads:
            thread.start()
        try:
            kill_at_random(server, kills, random.Random(seed), report)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        _, found, traceback = server.log().partition("Traceback")
        if found and report.problems:
            report.problems.append(traceback[:3000])
    site.shutdown()
    site.server_close()
    return report


def _guarded(run: Callable[[], None], report: Report) -> None:
    try:
        run()
    except requests.RequestException as e:
        report.problems.append(f"no answer: {e}")


def main() -> int:
    """Parse the command line and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--callers", type=int, default=3)
    parser.add_argument("--chromiums", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    report = campaign(given.kills, given.callers, given.chromiums, given.seed)
    print(json.dumps(vars(report), indent=1))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
