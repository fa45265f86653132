"""Measures the executor beside what people use without isolation, A/B in one run.

    python benchmarks/executor.py [--rounds N] [--quick]

Every row measures its contenders in turn, round after round, so that a noisy machine is noisy for
all of them; the first rounds are not counted. Medians are printed, with the 95th percentile and the
ratio to ours. Contenders: `exec` in this very process, a fresh subprocess per step, and smolagents'
local executor if it is installed (the extra `bench`). The last column says whether the target of
the design is met. The last lines are about many workers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ck_pro.exceptions import ExecutorError
from ck_pro.executor import CodeExecutor

try:
    from smolagents.local_python_executor import LocalPythonExecutor
except ImportError:
    LocalPythonExecutor = None

CPU_CODE = """
def work(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 1000003
    return total
work(300_000)
"""
HEAVY = ("numpy", "pandas")
BURST = 8
WARM_UP = 3
CROWD = 50
HIGH_TARGET = 5.0
"""Milliseconds for the 95th percentile of a step, beside the target for its median."""


class Row(NamedTuple):
    name: str
    target: float | None
    """Milliseconds; or, for `CPU-bound`, a ratio to `exec`."""
    contenders: dict[str, Callable[[], float]]
    """Each call does it once and gives its milliseconds; the first one is ours."""


def timed(action: Callable[[], Any]) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        action()
        return (time.perf_counter() - began) * 1000

    return measure


def run_exec(code: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, {"add_two": add_two})


def run_subprocess(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def add_two(x: int) -> int:
    return x + 2


def start(preload: tuple[str, ...] = ()) -> float:
    """Milliseconds from nothing to a worker that has run a step."""
    executor = CodeExecutor(workdir=WORKDIR, preload=preload)
    try:
        return timed(lambda: executor.run("pass"))()
    finally:
        executor.close()


def kill() -> float:
    """Milliseconds from the deadline to the return of `run`, children included."""
    with CodeExecutor(workdir=WORKDIR) as executor:
        executor.run("pass")
        code = "import subprocess\np = subprocess.Popen(['sleep', '60'])\nwhile True: pass"
        began = time.perf_counter()
        executor.run(code, timeout=0.2)
        return (time.perf_counter() - began) * 1000 - 200


def after_kill() -> float:
    with CodeExecutor(workdir=WORKDIR) as executor:
        executor.run("while True: pass", timeout=0.05)
        return timed(lambda: executor.run("pass"))()


def calls(run: Callable[[str], Any], count: int = 200) -> float:
    """Milliseconds of one call among many."""
    return timed(lambda: run(f"for i in range({count}): add_two(i)"))() / count


def parallel_calls() -> float:
    """Milliseconds for 16 calls of 50 ms, made at once from 16 threads."""
    release = threading.Event()
    with CodeExecutor(functions={"wait": lambda: release.wait(0.05)}, workdir=WORKDIR) as executor:
        executor.run("from concurrent.futures import ThreadPoolExecutor")
        code = (
            "with ThreadPoolExecutor(16) as pool:\n    list(pool.map(lambda _: wait(), range(16)))"
        )
        return timed(lambda: executor.run(code))()


def smol(functions: dict[str, Any]) -> Callable[[str], Any] | None:
    if LocalPythonExecutor is None:
        return None
    executor = LocalPythonExecutor(additional_authorized_imports=[])
    executor.send_tools(functions)
    return executor


def rows(ours: CodeExecutor) -> list[Row]:
    other = smol({"add_two": add_two})

    def beside(name: str, action: Callable[[Callable[[str], Any]], float]) -> dict[str, Any]:
        return {} if other is None else {name: lambda: action(other)}

    def step(run: Callable[[str], Any], code: str) -> float:
        return timed(lambda: run(code))()

    imports = "import numpy, pandas"
    found = [
        Row(
            "print(1), one step",
            0.3,
            {
                "ck_pro": lambda: step(ours.run, "print(1)"),
                "exec": lambda: step(run_exec, "print(1)"),
                "subprocess": lambda: step(run_subprocess, "print(1)"),
                **beside("smolagents", lambda run: step(run, "print(1)")),
            },
        ),
        Row(
            "a step with one call",
            None,
            {
                "ck_pro": lambda: step(ours.run, "print(add_two(1))"),
                "exec": lambda: step(run_exec, "print(add_two(1))"),
                **beside("smolagents", lambda run: step(run, "print(add_two(1))")),
            },
        ),
        Row(
            "one call of a tool",
            0.1,
            {
                "ck_pro": lambda: calls(ours.run),
                "exec": lambda: calls(run_exec),
                **beside("smolagents", calls),
            },
        ),
        Row(
            "start of a session",
            15,
            {"ck_pro": start, "subprocess": lambda: step(run_subprocess, "pass")},
        ),
        Row("kill after the deadline", 100, {"ck_pro": kill}),
        Row("next step after a kill", 60, {"ck_pro": after_kill}),
        Row("16 calls of 50 ms at once", None, {"ck_pro": parallel_calls}),
        Row(
            "CPU-bound code",
            1.05,
            {
                "ck_pro": lambda: step(ours.run, CPU_CODE),
                "exec": lambda: step(run_exec, CPU_CODE),
                **beside("smolagents", lambda run: step(run, CPU_CODE)),
            },
        ),
    ]
    try:
        start(HEAVY)
    except ExecutorError as error:
        print(f"(no numpy and pandas: {error})")
        return found
    heavy = {
        "ck_pro": lambda: start(HEAVY),
        "subprocess": lambda: step(run_subprocess, imports),
    }
    return [*found[:4], Row("start, numpy and pandas loaded", 30, heavy), *found[4:]]


def measure(row: Row, rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in row.contenders}
    for contender in row.contenders.values():
        for _ in range(WARM_UP):
            contender()
    for turn in range(rounds):
        # the order changes: what the one before left of caches and clock meets each of them
        turns = list(row.contenders.items())[:: 1 if turn % 2 else -1]
        for name, contender in turns:
            usual = statistics.median(times[name]) if times[name] else 0.0
            if usual > 300 and len(times[name]) >= 5:
                continue
            # what is quick is done some times in a row: a session's steps follow each other too
            times[name] += [contender() for _ in range(BURST if usual < 5 else 1)]
    return times


def show(row: Row, times: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(found) for name, found in times.items()}
    ours = medians["ck_pro"]
    for name, found in times.items():
        high = sorted(found)[int(len(found) * 0.95)]
        ratio = f"{medians[name] / ours:8.2f} x" if name != "ck_pro" else " " * 10
        verdict = ""
        if name == "ck_pro" and row.target is not None:
            value, unit = (ours, "ms")
            if row.name.startswith("CPU"):
                value, unit = ours / medians["exec"], "x exec"
            met = "met" if value <= row.target else "MISSED"
            verdict = f"{value:.2f} {unit} of {row.target:g}: {met}"
            if row.name.startswith("print"):
                met = "met" if high <= HIGH_TARGET else "MISSED"
                verdict += f"; p95 {high:.2f} ms of {HIGH_TARGET:g}: {met}"
        label = row.name if name == "ck_pro" else ""
        print(f"{label:32} {name:12} {medians[name]:9.3f} ms  p95 {high:9.3f} {ratio}  {verdict}")


def crowd() -> None:
    """Tell what many workers that are alive at once cost."""
    workers = [CodeExecutor(workdir=WORKDIR) for _ in range(CROWD)]
    try:
        began = time.perf_counter()
        for worker in workers:
            worker.run("x = 1")
        started = (time.perf_counter() - began) * 1000 / CROWD
        idle = sum(map(memory_of, descendants(os.getpid()))) / 1024
        began = time.perf_counter()
        threads = [threading.Thread(target=worker.run, args=("x + 1",)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = (time.perf_counter() - began) * 1000
    finally:
        for worker in workers:
            worker.close()
    print(
        f"{CROWD} workers alive: {started:.1f} ms to start each, one after the other; "
        f"{idle:.0f} MB in all, {idle / CROWD:.1f} MB each (shared pages counted once); "
        f"a step of all of them at once: {together:.0f} ms"
    )


def descendants(pid: int) -> set[int]:
    try:
        found = set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return set()
    return found.union(*map(descendants, found))


def memory_of(pid: int) -> int:
    """Kilobytes of a process, its share of what it shares (Linux)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds per row")
    parser.add_argument("--quick", action="store_true", help="5 rounds: does it run at all")
    given = parser.parse_args()
    rounds = 5 if given.quick else given.rounds
    with CodeExecutor(functions={"add_two": add_two}, workdir=WORKDIR) as ours:
        isolation = ours.isolation
        print("layers:", ", ".join(isolation["active"]))
        for name, why in isolation["missing"].items():
            print(f"missing: {name} ({why})")
        for _ in range(20):
            ours.run("print(1)")
        for row in rows(ours):
            show(row, measure(row, rounds * 5 if re.search("step|CPU", row.name) else rounds))
    if sys.platform == "linux":
        crowd()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as WORKDIR:
        main()
