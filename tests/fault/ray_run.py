"""Run tasks of the kill campaign on a local Ray cluster.

    python tests/fault/ray_run.py [--tasks 5] [--workers 2] [--kill task] [--kill server] [--stop]

The output is checked as in the campaign. `--kill` kills a Ray task or a browser server during the
run. `--stop` stops the run before its end, and the command without Ray finishes it. Prints a JSON
report; exit code 1 if there are problems.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from campaign import CALLS_OF_KIND, RUN_SECONDS, Campaign, become_subreaper  # noqa: E402
from campaign_kills import below  # noqa: E402
from campaign_model import answer  # noqa: E402
from campaign_tasks import make_tasks  # noqa: E402

from ck_main.agent import CKAgent  # noqa: E402
from ck_main.cluster.scale import RayRunner  # noqa: E402
from ck_main.demo_site import DemoSite  # noqa: E402
from ck_main.output.row import Outcome  # noqa: E402
from ck_main.output.row_file import RowFile  # noqa: E402
from ck_main.runner.model_settings import settings_of_models  # noqa: E402
from ck_main.runner.run_options import RunOptions  # noqa: E402
from ck_main.tasks.dataset import Task, read_tasks  # noqa: E402
from ck_pro.settings import merge_settings  # noqa: E402
from ck_pro.testing import ChatCall, FakeChatServer  # noqa: E402

TARGETS = {"task": "ray::work_on", "server": "server_child.py"}


class DisplayRecorder:
    """Records the runner's display events."""

    def __init__(self) -> None:
        self.started_ids: list[str] = []
        self.ends: list[str] = []
        self.notes: list[str] = []

    def started(self, task: Task) -> None:
        self.started_ids.append(task.id)

    def event(self, task_id: str, event: dict[str, Any]) -> None:
        pass

    def ended(self, outcome: Outcome) -> None:
        self.ends.append(outcome.id)

    def note(self, text: str) -> None:
        self.notes.append(text)


def kill_one(kind: str) -> int | None:
    """Kill the process of a running Ray task, or a browser server; return its id."""
    for process in below(os.getpid()):
        if TARGETS[kind] in process.command:
            os.kill(process.pid, signal.SIGKILL)
            return process.pid
    return None


def main() -> int:
    """Run the tasks and check the output."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill", action="append", choices=TARGETS, default=[])
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    become_subreaper()
    calls = 0
    third, late, ended = threading.Event(), threading.Event(), threading.Event()

    def reply(call: ChatCall) -> str:
        nonlocal calls
        calls += 1
        expected = given.tasks * min(CALLS_OF_KIND.values())
        if calls >= expected // 3:
            third.set()
        if calls >= expected * 2 // 3:
            late.set()
        return answer(call.messages)

    def killer() -> None:
        third.wait()
        for kind in given.kill:
            while (pid := kill_one(kind)) is None and not ended.wait(0.05):
                pass
            run.report.kills.append({"kind": kind, "at_call": calls, "pid": pid})

    with (
        tempfile.TemporaryDirectory(prefix="ray-run-") as made,
        DemoSite() as site,
        FakeChatServer(reply) as model,
    ):
        tasks = make_tasks(given.tasks, site.origin, site.data)
        host = site.origin.partition("://")[2]
        settings = {"max_steps": 20, "web_agent": {"max_steps": 20, "web_env": {"allow": [host]}}}
        run = Campaign(
            given.folder or Path(made) / "run", tasks, settings, model.url, given.workers
        )
        if given.kill:
            threading.Thread(target=killer, daemon=True).start()
        everywhere = settings_of_models(CKAgent(**settings), {"call_target": f"{model.url}/v1"})
        agent = CKAgent(**merge_settings(settings, everywhere))
        events = DisplayRecorder()
        with RowFile(run.output) as rows:
            options = RunOptions(workers=given.workers)
            runner = RayRunner(agent, rows, options, events, address="local")
            if given.stop:
                threading.Thread(
                    target=lambda: late.wait() and runner.stop.set(), daemon=True
                ).start()
            runner.run(t for t in read_tasks(run.folder / "tasks.jsonl") if isinstance(t, Task))
        ended.set()
        run.report.calls, run.report.said = calls, events.notes
        if given.stop:
            if len(run.rows()) == given.tasks:
                run.report.problems.append("it was not stopped")
            run.check_processes()
            run.report.exit_codes.append(run.start().wait(RUN_SECONDS))
        run.check()
        names = [t["id"] for t in tasks]
        if not given.stop and (sorted(events.ends) != sorted(names) or events.started_ids != names):
            run.report.problems.append(f"events: {events.started_ids} began, {events.ends} ended")
        if any(kill["pid"] is None for kill in run.report.kills):
            run.report.problems.append("there was nothing to kill")
        if not given.stop:
            run.report.exit_codes.append(0)
        run.check_again()  # with the local runner: both write the same rows
        run.close()
    print(json.dumps({"ray": asdict(run.report)}, indent=1))
    return 1 if run.report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
