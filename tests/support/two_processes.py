"""A pytest plugin that runs the collected tests in two processes: `pytest --two-processes`.

It forks after the collection, so that imports and collection are paid once (xdist repeats both in
each worker, and sends three reports per test). The processes take one test file after the other
from a shared queue. The reports of the second process follow when the first has no more files.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FEWEST_TESTS = 300
"""Fewer tests run in one process."""
INDEX_BYTES = 4


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in two processes; None (pytest's own loop) where one is better."""
    option = session.config.option
    one = option.usepdb or option.trace or option.maxfail or option.collectonly
    few = len(session.items) < FEWEST_TESTS or len(os.sched_getaffinity(0)) < 2
    if one or few or threading.active_count() > 1 or session.testsfailed:
        return None
    results = session.config._tmp_path_factory.getbasetemp() / "second_process"  # type: ignore[attr-defined]
    files = [list(group) for _, group in itertools.groupby(session.items, lambda i: i.path)]
    queue = _queue(len(files))
    second = os.fork()
    if second == 0:
        _run_second(session, files, queue, results)
    try:
        _run(session, files, queue)
        _, status = os.waitpid(second, 0)
    except BaseException:
        with contextlib.suppress(OSError):
            os.kill(second, signal.SIGKILL)
            os.waitpid(second, 0)
        raise
    _report(session, results, status)
    return True


def _queue(count: int) -> int:
    """Return a pipe from which several processes read each number below `count` once."""
    readable, writable = os.pipe()
    os.write(writable, b"".join(n.to_bytes(INDEX_BYTES, "big") for n in range(count)))
    os.close(writable)
    return readable


def _run(session: pytest.Session, files: list[list[pytest.Item]], queue: int) -> None:
    """Run files from the queue until it is empty."""

    def items() -> Iterator[pytest.Item | None]:
        while index := os.read(queue, INDEX_BYTES):
            yield from files[int.from_bytes(index, "big")]
        yield None  # the fixtures of the session end

    for item, following in itertools.pairwise(items()):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)


def _run_second(
    session: pytest.Session, files: list[list[pytest.Item]], queue: int, results: Path
) -> None:
    """Run files from the queue in the second process, write its reports, and end the process."""
    code = 1
    try:
        config = session.config
        config.pluginmanager.unregister(name="terminalreporter")
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()  # its temporary files belong to the first process
        capture.start_global_capturing()
        capture.suspend_global_capture(in_=True)
        reports = _Reports(config)
        config.pluginmanager.register(reports)
        _run(session, files, queue)
        config._ensure_unconfigure()  # raises what the garbage collector found
        results.write_text(json.dumps(reports.made))
        code = 0
    except BaseException:  # noqa: BLE001 - the end of a process
        results.write_text(json.dumps(traceback.format_exc()))
    finally:
        os._exit(code)


class _Reports:
    """Collects the reports of the second process as JSON data.

    Without `--durations`, a set-up or tear-down that passes and prints nothing is not reported.
    """

    def __init__(self, config: pytest.Config):
        self.config = config
        self.made: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        silent = report.when != "call" and report.passed and not report.sections
        if silent and self.config.option.durations is None:
            return
        hook = self.config.hook.pytest_report_to_serializable
        self.made.append(hook(config=self.config, report=report))


def _report(session: pytest.Session, results: Path, status: int) -> None:
    """Report the results of the second process in this one."""
    made = json.loads(results.read_text()) if results.exists() else f"wait status {status}"
    if isinstance(made, str):
        raise RuntimeError(f"the second process of the tests ended early:\n{made}")
    hook = session.config.hook
    for data in made:
        report = hook.pytest_report_from_serializable(config=session.config, data=data)
        hook.pytest_runtest_logreport(report=report)
