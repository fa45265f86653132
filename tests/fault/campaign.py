"""Run a task file while its processes are killed again and again.

    python tests/fault/campaign.py [--tasks 200] [--kills 30] [--stops 4] [--workers 8] [--seed 1]

A rule-based model answers over HTTP, the pages come from the demo's site, and the runner, its
workers, its Chromium, its browser server, Playwright's driver in that and the server's janitor are
real. They get SIGKILL at random moments, and the runner gets one or two stop signals. The same
command restarts a runner that ended. Checks at the end: one row per task, right answers (with
`--twice` also those of an undisturbed run), rows equal to those rebuilt from the journals, no
process and no temporary file left, and nothing to do for the same command. Prints a JSON report;
exit code 1 if there are problems.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from campaign_kills import below, choose, kill_one  # noqa: E402
from campaign_model import answer  # noqa: E402
from campaign_tasks import KINDS, make_tasks  # noqa: E402

from ck_main.demo_site import DemoSite  # noqa: E402
from ck_main.output.row import row_from_events, row_line  # noqa: E402
from ck_pro.exceptions import CKError  # noqa: E402
from ck_pro.journal import read_events  # noqa: E402
from ck_pro.testing import ChatCall, FakeChatServer  # noqa: E402

CALLS_OF_KIND = dict(zip(KINDS, (3, 4, 5, 4, 5), strict=True))
"""Model calls of an undisturbed task."""
PR_SET_CHILD_SUBREAPER = 36
GONE_SECONDS = 60.0
RUN_SECONDS = 4 * 3600.0
"""For one runner: on a busy machine 200 tasks take long."""
LONGEST_DELAY = 0.4
"""Seconds between the model call that a kill waits for, and the kill, at most."""


@dataclass
class Report:
    """What happened. The campaign succeeded if `problems` is empty."""

    tasks: int
    seconds: float = 0.0
    calls: int = 0
    kills: list[dict[str, Any]] = field(default_factory=list)
    exit_codes: list[int] = field(default_factory=list)
    killed: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    said: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Campaign:
    """One task file, one output, and the runners that work on it one after the other.

    Args:
        folder: for all files.
        tasks: lines of the task file.
        config: the agent's settings.
        url: address of the model.
        workers: tasks at once.
        output: the output file; inside `folder` if None.
        more: options of the command.
    """

    def __init__(
        self,
        folder: Path,
        tasks: list[dict[str, Any]],
        config: dict[str, Any],
        url: str,
        workers: int,
        output: Path | None = None,
        more: Sequence[str] = (),
    ):
        self.folder, self.tasks = folder, tasks
        self.output = output or folder / "out.jsonl"
        folder.mkdir(parents=True)
        # a short path: Chromium has a socket there, and its name has 107 bytes at most
        self.temporary = Path(tempfile.mkdtemp(prefix="campaign-"))
        (folder / "tasks.jsonl").write_text("".join(json.dumps(t) + "\n" for t in tasks))
        (folder / "config.json").write_text(json.dumps(config))
        options = {
            "-i": folder / "tasks.jsonl",
            "-o": self.output,
            "-c": folder / "config.json",
            "-m": f"{url}/v1",
            "-w": workers,
        }
        words = [str(word) for pair in options.items() for word in pair]
        self.command = [sys.executable, "-m", "ck_main.main", *words, "--plain", *more]
        self.report = Report(len(tasks))
        self.runner: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()

    def start(self) -> subprocess.Popen[bytes]:
        """Start a runner; its processes put temporary files into the campaign's folder."""
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.temporary)}
        with (self.folder / "log.txt").open("ab") as log:
            self.runner = subprocess.Popen(
                self.command, cwd=self.folder, env=environ, stdout=log, stderr=log
            )
        return self.runner

    def run(self, kills: int) -> None:
        """Run to the end, restarting as often as needed."""
        began = time.monotonic()
        failures = 0
        while True:
            code = self.start().wait(RUN_SECONDS)
            self.report.exit_codes.append(code)
            if code == 0:
                break
            if code == -signal.SIGKILL:
                continue
            if code == 130:
                self.check_processes()  # the next server removes the files of a killed one
                continue
            failures += 1  # it ended without a kill: correct after a lost service
            self.report.said.append(self.last_line())
            if code not in (1, 5) or failures > kills + 3:
                self.report.problems.append(f"the runner ended with {code}: {self.last_line()}")
                break
            if code == 1 and len(self.rows()) == len(self.tasks):
                break
        self.ended.set()
        self.report.seconds = round(time.monotonic() - began, 1)

    def last_line(self) -> str:
        """Return the last error that a runner printed."""
        lines = (self.folder / "log.txt").read_text(errors="replace").splitlines()
        return next((line for line in reversed(lines) if line.startswith("error")), lines[-1])

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the output."""
        return [json.loads(line) for line in self.output.read_bytes().splitlines()]

    # --- checks ------------------------------------------------------------------------------

    def check(self) -> None:
        """Check the output, the journals and the leftovers."""
        self.check_rows()
        self.check_left()
        self.check_folders()

    def check_rows(self) -> None:
        """Check that each task has one row with the right answer."""
        problems = self.report.problems
        rows = self.rows()
        count = Counter(r["id"] for r in rows)
        problems += [f"{name}: {n} rows" for name, n in count.items() if n > 1]
        problems += [f"{t['id']}: no row" for t in self.tasks if t["id"] not in count]
        gold = {t["id"]: t["answer"] for t in self.tasks}
        for row in rows:
            said, info = row["eval"]["pred"], row["session"]["info"]
            if said != gold.get(row["id"]):
                why = f"{info['status']}, {info.get('stop_reason')}: {info.get('message', '')}"
                problems.append(f"{row['id']}: {said!r} instead of {gold.get(row['id'])!r} ({why})")

    def check_left(self) -> None:
        """Check that no process and no temporary file outlives its runner."""
        self.check_processes()
        paths = (p.relative_to(self.temporary) for p in self.temporary.rglob("*"))
        left = sorted(p.as_posix() for p in paths if p.parts[0] != "ray")  # Ray keeps its logs
        if left:
            self.report.problems.append(f"temporary files left: {left[:5]} ({len(left)} in all)")

    def close(self) -> None:
        """Remove the folder of temporary files; Ray may still write its last log lines."""
        deadline = time.monotonic() + GONE_SECONDS
        while self.temporary.exists() and time.monotonic() < deadline:
            shutil.rmtree(self.temporary, ignore_errors=True)

    def check_processes(self) -> None:
        """Check that every descendant of a runner ends soon after it."""
        deadline = time.monotonic() + GONE_SECONDS
        while True:
            left = below(os.getpid())
            if not left:
                break
            if time.monotonic() > deadline:
                self.report.problems += [f"left: {p.pid} {p.command[:120]}" for p in left]
                break
            threading.Event().wait(0.1)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:  # this process is the subreaper of orphans
                pass
        except ChildProcessError:
            pass

    def check_folders(self) -> None:
        """Check that locks are free, journals readable, and rows equal to their journals."""
        lines = dict(zip((r["id"] for r in self.rows()), self.output.open("rb"), strict=True))
        for name, line in lines.items():
            folder = self.output.with_suffix("") / name
            self.report.attempts += 1 + len(list(folder.glob("attempt-*")))
            for path in (folder / "lock", *folder.glob("events.*")):
                with path.open("rb") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError:
                        self.report.problems.append(f"{path} is still locked")
            try:
                again = row_line(row_from_events(read_events(folder)))
            except CKError as e:
                self.report.problems.append(f"{name}: the journal cannot be read: {e}")
                continue
            if again != line:
                self.report.problems.append(f"{name}: the journal gives another row")

    def check_again(self) -> None:
        """Check that the same command has nothing to run."""
        before = self.output.read_bytes()
        code = self.start().wait(RUN_SECONDS)
        if code != self.report.exit_codes[-1]:
            self.report.problems.append(f"once more: exit code {code}: {self.last_line()}")
        if self.output.read_bytes() != before:
            self.report.problems.append("once more: the output has changed")


class Killer(threading.Thread):
    """Kills a process after certain numbers of model calls.

    The kills are spread over the whole run. Each kill causes more calls, so the number of
    remaining calls is estimated again after it.

    Args:
        campaign: its current runner is the target.
        kinds: what to kill, in order.
        expected: how many calls an undisturbed run makes.
        workers: tasks at once.
    """

    def __init__(
        self, campaign: Campaign, kinds: list[str], expected: int, workers: int, seed: int
    ):
        super().__init__(name="killer", daemon=True)
        self.campaign, self.random = campaign, random.Random(seed)
        self.kinds, self.expected, self.workers = kinds, expected, workers
        self.calls = 0
        self._called = threading.Condition()

    def called(self) -> None:
        """Count a call of the model."""
        with self._called:
            self.calls += 1
            self._called.notify_all()

    def run(self) -> None:
        """Kill according to the plan; skip processes that never appear."""
        for n, kind in enumerate(self.kinds):
            share = self._calls_left() / (len(self.kinds) - n)
            after = self.calls + round(share * self.random.uniform(0.4, 1.2))
            with self._called:
                while self.calls < after and not self.campaign.ended.is_set():
                    self._called.wait(0.1)
            self.campaign.ended.wait(self.random.uniform(0, LONGEST_DELAY))
            self._kill(kind, after)

    def _calls_left(self) -> float:
        """Estimate the remaining calls; tasks in progress count as half done."""
        tasks = len(self.campaign.tasks)
        done = self.campaign.output.read_bytes().count(b"\n") if self.calls else 0
        return max(0.0, self.expected * (tasks - done - min(self.workers, tasks) / 2) / tasks)

    def _kill(self, kind: str, after: int) -> None:
        while not self.campaign.ended.is_set():
            runner = self.campaign.runner
            if runner is not None and runner.poll() is None:
                pid = kill_one(kind, runner.pid, self.random)
                if pid is not None:
                    kill = {"kind": kind, "planned": after, "at_call": self.calls, "pid": pid}
                    self.campaign.report.kills.append(kill)
                    return
            self.campaign.ended.wait(0.01)


def campaign(given: argparse.Namespace, folder: Path, kills: int) -> Report:
    """Run one campaign and check it; `kills` 0 is an undisturbed run."""
    site = DemoSite()
    model = FakeChatServer(lambda call: reply(call))
    killers: list[Killer] = []

    def reply(call: ChatCall) -> str:
        model.calls.clear()  # without this it would keep gigabytes of prompts
        for each in killers:
            each.called()
        return answer(call.messages)

    with site, model:
        tasks = make_tasks(given.tasks, site.origin, site.data)
        host = site.origin.partition("://")[2]
        config = {"max_steps": 20, "web_agent": {"max_steps": 20, "web_env": {"allow": [host]}}}
        more = ["--ray", "local"] if given.ray else []
        run = Campaign(folder, tasks, config, model.url, given.workers, more=more)
        expected = sum(CALLS_OF_KIND[t["id"].partition("-")[0]] for t in tasks)
        kinds = choose(kills, given.stops if kills else 0, random.Random(given.seed))
        if given.only and kills:
            kinds = given.only.split(",")
        killers.append(Killer(run, kinds, expected, given.workers, given.seed))
        killers[0].start()
        run.run(kills)
        killers[0].join()
        run.report.calls = killers[0].calls
        run.report.killed = dict(Counter(kill["kind"] for kill in run.report.kills))
        made = len(run.report.kills)
        if made < len(kinds):
            run.report.problems.append(f"only {made} of {len(kinds)} kills and stops were made")
        run.check()
        run.check_again()
        run.check_left()
        run.close()
    return run.report


def become_subreaper() -> None:
    """Adopt the orphans of a killed runner, so that all are found (Linux)."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> int:
    """Parse the command line and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--stops", type=int, default=4, help="signals to stop, besides the kills")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep everything here; must not exist")
    parser.add_argument("--twice", action="store_true", help="also undisturbed, and compare")
    parser.add_argument("--only", metavar="KIND,...", help="kill these, once each, in this order")
    parser.add_argument("--ray", action="store_true", help="the command starts a local Ray cluster")
    given = parser.parse_args()
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="campaign-") as made:
        folder = given.folder or Path(made)
        reports = {"disturbed": campaign(given, folder / "disturbed", given.kills)}
        if given.twice:
            reports["undisturbed"] = campaign(given, folder / "undisturbed", 0)
            one, two = (answers(folder / name / "out.jsonl") for name in reports)
            different = [n for n in sorted({*one, *two}) if one.get(n) != two.get(n)]
            reports["disturbed"].problems += [f"{n}: not as undisturbed" for n in different]
    print(json.dumps({name: asdict(report) for name, report in reports.items()}, indent=1))
    return 1 if any(r.problems for r in reports.values()) else 0


def answers(output: Path) -> dict[str, str]:
    """Return the answers by task, without the site's address, whose port varies."""
    rows = (json.loads(line) for line in output.read_bytes().splitlines())
    return {row["id"]: row["eval"]["pred"] for row in rows}


if __name__ == "__main__":
    sys.exit(main())
