"""The runner as a process that is stopped or killed: what is written stays, and it continues."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from main_command import PLAN, code_reply, reply, write_lines
from paths import ROOT

pytestmark = [pytest.mark.worker, pytest.mark.slow]
PATIENCE = 900.0  # seconds; only a hang takes so long

HANGS = "open('started', 'w').close()\nimport time\ntime.sleep(600)"


def command(folder: Path, hangs: str) -> list[str]:
    """The command that runs tasks a, b, c; the one named `hangs` never ends."""
    names = ("a", "b", "c")
    write_lines(folder / "tasks.jsonl", [{"id": n, "question": f"Task {n}"} for n in names])
    replies = []
    for name in names:
        code = HANGS if name == hangs else f"stop({name!r})"
        # two steps each: the first of a resumed task reports the interruption, the next one stops
        for step in (0, 1):
            replies.append({**reply(f"Task {name}", "plan", PLAN), "step": step})
            replies.append({**code_reply(f"Task {name}", code), "step": step})
    model = f"replay:{write_lines(folder / 'replies.jsonl', replies)}?check=off"
    files = ["-i", str(folder / "tasks.jsonl"), "-o", str(folder / "out.jsonl")]
    return [sys.executable, "-m", "ck_main.main", *files, "-m", model]


def ids(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / "out.jsonl").read_text().splitlines()]


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGINT, "1"), (signal.SIGTERM, "2"), (signal.SIGKILL, "1"), (signal.SIGHUP, "2")],
)
def test_repeating_the_command_resumes_the_run(
    tmp_path: Path, number: signal.Signals, workers: str
) -> None:
    first = [*command(tmp_path, hangs="b"), "--workers", workers]
    process = subprocess.Popen(first, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "out" / "b" / "work" / "started", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in err
    if number is not signal.SIGKILL:
        assert process.returncode == 130, err
        assert "b: stopped before it ended" in err and " tasks, " in out
    assert "b" not in ids(tmp_path)
    again = subprocess.run(
        command(tmp_path, hangs=""), capture_output=True, text=True, timeout=PATIENCE
    )
    assert again.returncode == 0, again.stderr
    assert sorted(ids(tmp_path)) == ["a", "b", "c"]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    session = next(r["session"] for r in rows if r["id"] == "b")
    seen = [s["action"]["observation"] for s in session["steps"]]
    assert len(seen) == 2 and "interrupted during this step" in seen[0]
    assert session["info"]["resumed"] == 1
    assert (tmp_path / "out" / "b" / "work" / "started").exists()


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*command(tmp_path, hangs="a"), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(tmp_path / "out" / "a" / "work" / "started", process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err, err


@pytest.mark.parametrize("module", ["ck_main.main", "ck_web.main"])
def test_an_interrupt_while_modules_are_imported_shows_no_traceback(
    tmp_path: Path, module: str
) -> None:
    (tmp_path / "click.py").write_text("import os\nos.kill(os.getpid(), 2)\n")
    root = str(ROOT)
    run = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), root))},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, "", "")
