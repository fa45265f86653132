"""Runs the scenario tasks with a model of your choice, and judges them.

    python -m benchmarks.scenarios -m manual -o runs.jsonl [--only trac,doku-sum] [-- MORE OPTIONS]

Options after `--` go to `python -m ck_main.main`. The applications are installed at the first run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.scenarios.apps import APPS
from benchmarks.scenarios.tasks import TASKS, Task


def chosen(only: str) -> list[Task]:
    """The tasks whose id or application is listed in `only`; all if it is empty."""
    names = {n for n in only.split(",") if n}
    unknown = names - {t.id for t in TASKS} - set(APPS)
    if unknown:
        raise SystemExit(f"--only: unknown: {', '.join(sorted(unknown))}")
    return [t for t in TASKS if not names or t.id in names or t.app in names]


def judge(tasks: list[Task], output: Path, folders: dict[str, Path]) -> int:
    """Print one line per task; return how many are right."""
    rows = {}
    with output.open() as lines:
        for line in lines:
            row = json.loads(line)
            rows[row["id"]] = row
    right = 0
    for task in tasks:
        row = rows.get(task.id)
        if row is None:
            print(f"{task.id:20} no row")
            continue
        answered = not task.answer or row["eval"]["corr"] == 1
        changed = task.check is None or task.check(folders[task.app])
        calls = row["session"]["info"]["call_stat"]["__ALL__"]
        right += answered and changed
        verdict = "right" if answered and changed else "WRONG"
        print(
            f"{task.id:20} {verdict}  {calls['llm_call']:3} calls {calls['total_tokens']:8,} tokens"
            f"  {row['session']['info']['status']}: {row['session']['info']['final_results']}"[:160]
        )
    print(f"{right} of {len(tasks)} right")
    return right


def main() -> int:
    """Run and judge; the exit code is 0 if all tasks are right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scenarios")
    parser.add_argument("-m", "--model", required=True, help="call target of all agents")
    parser.add_argument("-o", "--output", type=Path, required=True, help="rows (JSON lines)")
    parser.add_argument("--only", default="", help="ids of tasks or names of applications")
    parser.add_argument("more", nargs="*", help="options of ck_main.main, after --")
    options = parser.parse_args()
    tasks = chosen(options.only)
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scenarios-")))
        folders = {name: data / name for name in sorted({t.app for t in tasks})}
        addresses = {n: stack.enter_context(APPS[n].serving(f)) for n, f in folders.items()}
        lines = [
            {
                "id": t.id,
                "question": t.question.replace("{app}", addresses[t.app]),
                "answer": t.answer or None,
            }
            for t in tasks
        ]
        task_file = data / "tasks.jsonl"
        task_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        allow = json.dumps([address.removeprefix("http://") for address in addresses.values()])
        command = [sys.executable, "-m", "ck_main.main", "-i", task_file, "-o", options.output]
        command += ["-m", options.model, "-u", f"web_agent.web_env.allow={allow}", *options.more]
        done = subprocess.run([str(part) for part in command])
        if not options.output.exists():
            return done.returncode
        return 0 if judge(tasks, options.output, folders) == len(tasks) else 1


if __name__ == "__main__":
    sys.exit(main())
