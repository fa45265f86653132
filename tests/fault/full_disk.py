"""Fill the disk under a run: a real file system of about 100 KB.

    unshare --mount python tests/fault/full_disk.py FOLDER

Needs a private mount namespace and the right to mount in it. The command must end with exit code 4
and say what to do. Its files must stay readable, and the same command must finish once there is
space. Prints a JSON report; exit code 1 if there are problems, 77 if mounting fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from campaign import RUN_SECONDS, Campaign, become_subreaper  # noqa: E402
from campaign_model import answer  # noqa: E402
from campaign_tasks import KINDS, make_tasks  # noqa: E402

from ck_main.demo_site import DemoSite  # noqa: E402
from ck_pro.testing import FakeChatServer  # noqa: E402

TASKS = 16
SMALL, LARGE = "160k", "64m"
CANNOT = 77


def mount(folder: Path, options: str) -> bool:
    """Mount a file system in memory; return whether that succeeded."""
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0


def main() -> int:
    """Fill the disk, then make room."""
    folder = Path(sys.argv[1])
    disk = folder / "disk"
    disk.mkdir(parents=True)
    if not mount(disk, f"size={SMALL}"):
        return CANNOT
    become_subreaper()
    with FakeChatServer(lambda call: answer(call.messages)) as model:
        site = DemoSite()
        tasks = make_tasks(TASKS * len(KINDS), "http://127.0.0.1:9", site.data)[:: len(KINDS)]
        run = Campaign(folder / "run", tasks, {}, model.url, 2, output=disk / "out.jsonl")
        problems = run.report.problems
        code = run.start().wait(RUN_SECONDS)
        said = " ".join((folder / "run" / "log.txt").read_text().split())
        if code != 4:
            problems.append(f"full disk: exit code {code}")
        if "No space left on device" not in said or "free disk space, then repeat" not in said:
            problems.append(f"full disk: it does not say what to do: {said[-500:]}")
        if "Traceback" in said:
            problems.append("full disk: a traceback")
        kept = run.output.read_bytes()
        if not 0 < len(kept.splitlines()) < TASKS or not kept.endswith(b"\n"):
            problems.append(f"full disk: {len(kept.splitlines())} rows, {kept[-80:]!r}")
        mount(disk, f"remount,size={LARGE}")
        code = run.start().wait(RUN_SECONDS)
        run.report.exit_codes += [4, code]
        if code != 0:
            problems.append(f"with room again: exit code {code}: {run.last_line()}")
        if not run.output.read_bytes().startswith(kept):
            problems.append("rows that were written have changed")
        run.check()
        run.close()
    print(json.dumps({"disk": asdict(run.report)}, indent=1))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
