"""Run two runners on one task file and one output; each task must be done once.

    python tests/fault/race.py [--tasks 24]

Both start together. The second race kills one of them half-way; the same command then finishes its
tasks. Prints a JSON report; exit code 1 if there are problems.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from campaign import CALLS_OF_KIND, RUN_SECONDS, Campaign, become_subreaper  # noqa: E402
from campaign_model import answer  # noqa: E402
from campaign_tasks import KINDS, make_tasks  # noqa: E402

from ck_main.demo_site import DemoSite  # noqa: E402
from ck_pro.testing import ChatCall, FakeChatServer  # noqa: E402


def race(folder: Path, count: int, *, kill: bool) -> Campaign:
    """Run the tasks with two runners and check what they wrote; `kill` one of them half-way."""
    calls = 0
    half = threading.Event()
    lock = threading.Lock()

    def reply(call: ChatCall) -> str:
        nonlocal calls
        with lock:
            calls += 1
            if calls >= count * CALLS_OF_KIND["compute"] // 2:
                half.set()
        return answer(call.messages)

    site = DemoSite()
    with FakeChatServer(reply) as model:
        # computations only: a race needs no browser
        tasks = make_tasks(count * len(KINDS), "http://127.0.0.1:9", site.data)[:: len(KINDS)]
        run = Campaign(folder, tasks, {"max_steps": 20}, model.url, 3)
        runners = [run.start(), run.start()]
        if kill:
            half.wait(RUN_SECONDS)
            runners[0].kill()
        codes = [runner.wait(RUN_SECONDS) for runner in runners]
        if kill:
            codes.append(run.start().wait(RUN_SECONDS))
        run.report.exit_codes = codes
        run.report.calls = calls
        if codes[1:] != [0] * len(codes[1:]):
            run.report.problems.append(f"exit codes {codes}: {run.last_line()}")
        expected = count * CALLS_OF_KIND["compute"]
        if not kill and calls != expected:
            run.report.problems.append(f"{calls} calls of the model instead of {expected}")
        run.check()
        run.close()
    return run


def main() -> int:
    """Run both races."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--folder", type=Path, help="keep everything here; must not exist")
    given = parser.parse_args()
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="race-") as made:
        folder = given.folder or Path(made)
        reports = {
            "race": race(folder / "race", given.tasks, kill=False).report,
            "killed": race(folder / "killed", given.tasks, kill=True).report,
        }
    print(json.dumps({name: asdict(report) for name, report in reports.items()}, indent=1))
    return 1 if any(r.problems for r in reports.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
