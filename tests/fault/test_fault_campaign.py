"""Runs under faults: kill -9, stop signals, two runners at once, a full disk, Ray, a lost Ray
node, and browser sessions whose Chromium is killed.

`CK_CAMPAIGN="TASKS,KILLS,STOPS,WORKERS,SEED"` scales the campaign up; the full form is
`python tests/fault/campaign.py --twice`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.worker,
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # generous, for a busy machine
    pytest.mark.skipif(sys.platform != "linux", reason="finds what to kill by /proc"),
]
HERE = Path(__file__).parent
CANNOT = 77
SMALL = "6,4,1,3,21"


def run_script(name: str, *words: str, before: Sequence[str] = ()) -> dict[str, dict[str, object]]:
    """Run a script of this folder, in a process that adopts all its descendants.

    Args:
        name: the script.
        words: its arguments.
        before: command prefix, such as `unshare --mount`.
    """
    command = [*before, sys.executable, str(HERE / name), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == CANNOT or (before and not done.stdout):
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()[-200:]}")
    assert done.stdout, done.stderr
    # Ray's lines may precede the report
    report = done.stdout[("\n" + done.stdout).index("\n{\n") :]
    found: dict[str, dict[str, object]] = json.loads(report)
    return found


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_nothing_is_lost_doubled_or_left_behind(tmp_path: Path) -> None:
    names = ("--tasks", "--kills", "--stops", "--workers", "--seed")
    numbers = os.environ.get("CK_CAMPAIGN", SMALL).split(",")
    words = [word for pair in zip(names, numbers, strict=True) for word in pair]
    report = run_script("campaign.py", *words, "--folder", str(tmp_path / "campaign"))["disturbed"]
    assert report["problems"] == [], report


def test_two_runners_on_one_output_share_the_tasks(tmp_path: Path) -> None:
    words = ["--tasks", "6", "--folder", str(tmp_path / "races")]
    reports = run_script("race.py", *words)
    for name in ("race", "killed"):
        assert reports[name]["problems"] == [], reports[name]


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, of util-linux")
def test_a_full_disk_ends_the_run_and_the_same_command_continues(tmp_path: Path) -> None:
    report = run_script("full_disk.py", str(tmp_path / "full"), before=["unshare", "--mount"])
    assert report["disk"]["problems"] == [], report


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the package ray")
def test_ray_runs_the_tasks_and_what_it_began_the_command_finishes(tmp_path: Path) -> None:
    words = ["--tasks", "5", "--kill", "task", "--stop", "--folder", str(tmp_path / "ray")]
    report = run_script("ray_run.py", *words)["ray"]
    assert report["problems"] == [], report


@pytest.mark.long
def test_runners_that_are_stopped_and_continued_lose_and_double_nothing(tmp_path: Path) -> None:
    reports = run_script("stops.py", "--tasks", "4", "--folder", str(tmp_path / "stops"))
    assert {name: r["problems"] for name, r in reports.items() if r["problems"]} == {}, reports


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("lost", ["node", "raylet"])
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the package ray")
def test_a_lost_node_of_a_cluster_loses_and_doubles_no_row(tmp_path: Path, lost: str) -> None:
    words = ["--tasks", "10", "--kill", lost, "--folder", str(tmp_path / "nodes")]
    report = run_script("ray_nodes.py", *words)["ray"]
    assert report["problems"] == [], report


def test_browser_sessions_outlive_their_chromium() -> None:
    report = run_script("browser_kills.py", "--kills", "2", "--callers", "2", "--seed", "3")
    assert report["problems"] == [], report
