"""Compare the executor with executors without isolation, in one run.

    python benchmarks/executor.py [--rounds N] [--quick]

The contenders of a row take turns, so that noise affects all of them; the first rounds do not
count. Prints medians, 95th percentiles and ratios. Contenders: `exec` in this process, a new
subprocess for each step, and smolagents' local executor if it is installed (extra `bench`). The
last column compares with the target of the design. The last line is about many workers.
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
from typing import Any, NamedTuple

from ck_pro.exceptions import ExecutorError
from ck_pro.executor import CodeExecutor
from web_server.chromium.memory import process_bytes, process_tree

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
"""Target for the 95th percentile of a step, in milliseconds."""


class Row(NamedTuple):
    name: str
    target: float | None
    """In milliseconds; for `CPU-bound` a ratio to `exec`."""
    contenders: dict[str, Callable[[], float]]
    """Each call runs once and returns milliseconds; the first contender is this project's."""


def timed(action: Callable[[], Any]) -> Callable[[], float]:
    def measure() -> float:
        start_time = time.perf_counter()
        action()
        return (time.perf_counter() - start_time) * 1000

    return measure


def run_exec(code: str) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, {"add_two": add_two})


def run_subprocess(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def add_two(x: int) -> int:
    return x + 2


def start(preload: tuple[str, ...] = ()) -> float:
    """Return the milliseconds to start a worker and run a step."""
    executor = CodeExecutor(workdir=WORKDIR, preload=preload)
    try:
        return timed(lambda: executor.run("pass"))()
    finally:
        executor.close()


def kill() -> float:
    """Return the milliseconds from the deadline to the return of `run`, with a child process."""
    with CodeExecutor(workdir=WORKDIR) as executor:
        executor.run("pass")
        code = "import subprocess\np = subprocess.Popen(['sleep', '60'])\nwhile True: pass"
        start_time = time.perf_counter()
        executor.run(code, timeout=0.2)
        return (time.perf_counter() - start_time) * 1000 - 200


def after_kill() -> float:
    with CodeExecutor(workdir=WORKDIR) as executor:
        executor.run("while True: pass", timeout=0.05)
        return timed(lambda: executor.run("pass"))()


def calls(run: Callable[[str], Any], count: int = 200) -> float:
    """Return the milliseconds of one call, of many in a row."""
    return timed(lambda: run(f"for i in range({count}): add_two(i)"))() / count


def parallel_calls() -> float:
    """Return the milliseconds of 16 parallel calls of 50 ms from 16 threads."""
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


def rows(executor: CodeExecutor) -> list[Row]:
    other = smol({"add_two": add_two})

    def optional(name: str, action: Callable[[Callable[[str], Any]], float]) -> dict[str, Any]:
        return {} if other is None else {name: lambda: action(other)}

    def step(run: Callable[[str], Any], code: str) -> float:
        return timed(lambda: run(code))()

    imports = "import numpy, pandas"
    found = [
        Row(
            "print(1), one step",
            0.3,
            {
                "ck_pro": lambda: step(executor.run, "print(1)"),
                "exec": lambda: step(run_exec, "print(1)"),
                "subprocess": lambda: step(run_subprocess, "print(1)"),
                **optional("smolagents", lambda run: step(run, "print(1)")),
            },
        ),
        Row(
            "a step with one call",
            None,
            {
                "ck_pro": lambda: step(executor.run, "print(add_two(1))"),
                "exec": lambda: step(run_exec, "print(add_two(1))"),
                **optional("smolagents", lambda run: step(run, "print(add_two(1))")),
            },
        ),
        Row(
            "one call of a tool",
            0.1,
            {
                "ck_pro": lambda: calls(executor.run),
                "exec": lambda: calls(run_exec),
                **optional("smolagents", calls),
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
                "ck_pro": lambda: step(executor.run, CPU_CODE),
                "exec": lambda: step(run_exec, CPU_CODE),
                **optional("smolagents", lambda run: step(run, CPU_CODE)),
            },
        ),
    ]
    try:
        start(HEAVY)
    except ExecutorError as error:
        print(f"(without numpy and pandas: {error})")
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
        # alternate the order, so that each contender runs after each other one
        turns = list(row.contenders.items())[:: 1 if turn % 2 else -1]
        for name, contender in turns:
            usual = statistics.median(times[name]) if times[name] else 0.0
            if usual > 300 and len(times[name]) >= 5:
                continue
            # repeat quick contenders, because the steps of a session follow each other as well
            times[name] += [contender() for _ in range(BURST if usual < 5 else 1)]
    return times


def show(row: Row, times: dict[str, list[float]]) -> None:
    medians = {name: statistics.median(found) for name, found in times.items()}
    reference = medians["ck_pro"]
    for name, found in times.items():
        high = sorted(found)[int(len(found) * 0.95)]
        ratio = f"{medians[name] / reference:8.2f} x" if name != "ck_pro" else " " * 10
        verdict = ""
        if name == "ck_pro" and row.target is not None:
            value, unit = reference, "ms"
            if row.name.startswith("CPU"):
                value, unit = reference / medians["exec"], "x exec"
            met = "met" if value <= row.target else "MISSED"
            verdict = f"{value:.2f} {unit} of {row.target:g}: {met}"
            if row.name.startswith("print"):
                met = "met" if high <= HIGH_TARGET else "MISSED"
                verdict += f"; p95 {high:.2f} ms of {HIGH_TARGET:g}: {met}"
        label = row.name if name == "ck_pro" else ""
        print(f"{label:32} {name:12} {medians[name]:9.3f} ms  p95 {high:9.3f} {ratio}  {verdict}")


def crowd() -> None:
    """Print the cost of many live workers."""
    workers = [CodeExecutor(workdir=WORKDIR) for _ in range(CROWD)]
    try:
        start_time = time.perf_counter()
        for worker in workers:
            worker.run("x = 1")
        started = (time.perf_counter() - start_time) * 1000 / CROWD
        idle = sum(map(process_bytes, process_tree(os.getpid())[1:])) / 2**20
        start_time = time.perf_counter()
        threads = [threading.Thread(target=worker.run, args=("x + 1",)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = (time.perf_counter() - start_time) * 1000
    finally:
        for worker in workers:
            worker.close()
    print(
        f"{CROWD} workers alive: {started:.1f} ms to start each, one after the other; "
        f"{idle:.0f} MB in all, {idle / CROWD:.1f} MB each (shared pages counted once); "
        f"a step in all of them in parallel: {together:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds per row")
    parser.add_argument("--quick", action="store_true", help="5 rounds, as a smoke test")
    options = parser.parse_args()
    rounds = 5 if options.quick else options.rounds
    with CodeExecutor(functions={"add_two": add_two}, workdir=WORKDIR) as executor:
        isolation = executor.isolation
        print("layers:", ", ".join(isolation["active"]))
        for name, why in isolation["missing"].items():
            print(f"missing: {name} ({why})")
        for _ in range(20):
            executor.run("print(1)")
        for row in rows(executor):
            show(row, measure(row, rounds * 5 if re.search("step|CPU", row.name) else rounds))
    if sys.platform == "linux":
        crowd()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as WORKDIR:
        main()
