"""A full disk ends a run with one line and loses nothing; with free space, the run resumes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT, SUPPORT

SCRIPT = SUPPORT / "runs" / "full_disk_run.py"
pytestmark = pytest.mark.integration


def _mount(folder: Path, command: list[str]) -> list[str]:
    """Return the command inside a new namespace, with the folder as a file system of 4 MB."""
    script = 'mount -t tmpfs -o size=4m tmpfs "$1" || exit 77; shift; exec "$@"'
    return ["unshare", "-rm", "sh", "-c", script, "sh", str(folder), *command]


@pytest.mark.parametrize("mode", ["tmpfs", "limit"])
def test_a_full_disk_ends_a_run_with_one_line_and_the_run_resumes(
    tmp_path: Path, mode: str
) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path), mode]
    if mode == "tmpfs":
        if shutil.which("unshare") is None:
            pytest.skip("no unshare here")
        command = _mount(tmp_path, command)
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)
    if mode == "tmpfs" and (done.returncode == 77 or "unshare" in done.stderr):
        pytest.skip(f"no file systems can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    reason = {"tmpfs": "No space left on device", "limit": "File too large"}[mode]
    assert found["said"].startswith("cannot write the journal in ")
    assert reason in found["said"] and "\n" not in found["said"]
    assert 20_000 < found["stored"] <= 64_000
    assert found["whole"] and found["repaired"] == 0 and found["kept"]
    assert found["status"] == "done" and found["answer"]["output"] == "the answer"
    assert found["steps"][:40] == [f"look(n={n})" for n in range(40)]
    assert found["leftovers"] == []
