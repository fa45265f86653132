"""Run a task file from the first line to the summary; shared by `main` and `demo`."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path

from rich.console import Console

from ck_main.cluster.scale import RayRunner
from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.output.run_settings import setup_of, warnings_about
from ck_main.runner.rerun import Rerun, supersede
from ck_main.runner.run_options import RunOptions
from ck_main.runner.runner import TaskRunner
from ck_main.runner.service_checks import check_services, uses_manual_model
from ck_main.runner.signals import StopSignals
from ck_main.tasks.dataset import LineProblem, Task, read_tasks
from ck_main.ui.display import PlainDisplay, make_display
from ck_main.ui.logs import LOG_NAME, logging_to
from ck_main.ui.metrics import MetricsServer
from ck_main.ui.reports import (
    report_changed,
    report_lost,
    report_missing,
    report_skipped,
    report_warning,
    show_problems,
    show_summary,
    show_waiting,
)
from ck_main.ui.status import RunStatus, StatusFile
from ck_pro.agent import MultiStepAgent
from ck_pro.command_line import ExitCode, exit_code_of
from ck_pro.exceptions import (
    CKError,
    ConfigError,
    OutputError,
    TaskFileError,
)
from ck_pro.journal.masking import Secrets, secrets_of_environment
from ck_pro.run.fingerprint import fingerprint_of


@dataclass(frozen=True)
class Job:
    """The tasks to run and the way to display them.

    Args:
        output: file of rows.
        input: task file; None if tasks are typed one by one.
        files_dir: folder in which `file_name` is looked up; default: the folder of the task file.
        ids: run only these tasks; empty means all.
        limit: run at most this many of them, from the first.
        shard: (i, n): run only the i-th, (n+i)-th, ... of these; i starts at 1.
        rerun: run these tasks again although they have a row: "failed" (did not complete),
            "wrong" (wrong answer) or "all".
        in_order: sort the rows in task order at the end.
        options: see `RunOptions`.
        plain: no live table.
        steps: display every step of the agents.
        target_url: start page of a web agent, for tasks without one.
        log_json: write the log as JSON lines, with the events of every task.
        metrics: loopback port for metrics; 0 means any free port, None no metrics.
        ray: address of a Ray cluster; None runs on this machine.
    """

    output: Path
    input: Path | None = None
    files_dir: Path | None = None
    ids: Sequence[str] = ()
    limit: int | None = None
    options: RunOptions = field(default_factory=RunOptions)
    plain: bool = False
    steps: bool = False
    target_url: str | None = None
    shard: tuple[int, int] | None = None
    rerun: frozenset[Rerun] = frozenset()
    in_order: bool = False
    log_json: bool = False
    metrics: int | None = None
    ray: str | None = None
    skipped: list[str] = field(default_factory=list, init=False, compare=False)
    """Ids of the tasks marked `skip`; filled when the task file is read."""

    def fingerprint(self, task: Task | Outcome) -> str:
        """Hash a question in the form that a row stores: with secrets masked."""
        stored = self._secrets.masked({"question": task.question})
        return hashlib.sha256(json.dumps(stored).encode()).hexdigest()

    @cached_property
    def _secrets(self) -> Secrets:
        return Secrets(secrets_of_environment())

    def selected(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """Yield the tasks that `ids`, `limit` and `shard` select."""
        chosen = set(self.ids)
        matching = (t for t in tasks if (t.id in chosen if chosen else not t.skip))
        limited = islice(matching, self.limit)
        first, step = self.shard or (1, 1)
        return islice(limited, first - 1, None, step)


def run_job(
    agent: MultiStepAgent, job: Job, screen: Console | None = None, out: Console | None = None
) -> tuple[ExitCode, list[Outcome]]:
    """Check the services, run the tasks that have no row yet, and print the summary.

    Args:
        agent: agent for all tasks.
        job: must have an `input`.
        screen: console for progress and problems; default: standard error.
        out: console for the summary; default: standard output.

    Returns:
        The exit code, and the outcomes of the selected tasks that have a row.

    Raises:
        CKError: a check failed before the first task; `exit_code_of` returns its exit code.
    """
    screen, out = screen or Console(stderr=True), out or Console()
    source = job.input
    assert source is not None
    ids, problems = survey(job)
    show_problems(problems, screen)
    if job.skipped:
        report_skipped(screen, source, job.skipped)
    if not ids:
        return _nothing_to_run(job, problems), []
    with RowFile(job.output) as rows:
        changed = {i for i in ids if i in rows.done and job.fingerprint(rows.done[i]) != ids[i]}
        for name in sorted(changed):
            report_changed(screen, source, name, job.output)
        pending = _PendingTasks(job, ids, changed)
        prepare = (lambda: supersede(rows, pending, job.rerun)) if job.rerun else None
        for line in _other_settings(agent, job, rows):
            report_warning(screen, line)
        make = TaskRunner if job.ray is None else partial(RayRunner, address=job.ray)
        code, outcomes = run_tasks(
            agent, pending, job, rows, screen, ids=ids, prepare=prepare, make=make
        )
        if job.in_order:
            rows.sort(list(ids))
    shown = [outcomes[i] for i in ids if i in outcomes and i not in changed]
    show_summary(shown, job.output, out, total=len(ids))
    show_waiting(shown, rows.folder, screen)
    if code is ExitCode.LIMIT and len(shown) + len(changed) == len(ids):
        code = ExitCode.DONE  # the last task reached the limit
    if code is ExitCode.DONE:
        missing = [i for i in ids if i not in pending.found]
        if missing:
            report_missing(screen, source, missing)
        code = ExitCode.LINES if problems or changed or missing else _verdict(shown)
    return code, shown


def _nothing_to_run(job: Job, problems: Sequence[LineProblem]) -> ExitCode:
    """Return the exit code if no task is selected; raise TaskFileError if the file has none."""
    if not job.skipped:
        valid = "valid tasks" if problems else "tasks"
        raise TaskFileError(f'{job.input}: no {valid}; write one {{"question": ...}} per line')
    return ExitCode.LINES if problems else ExitCode.DONE


def _other_settings(agent: MultiStepAgent, job: Job, rows: RowFile) -> list[str]:
    """Return warnings about settings that differ from those of the rows in the output."""
    if not rows.done or "all" in job.rerun:
        return []
    tries = job.options.tries
    seeded = {"try": {"seed": tries.seed(1)}} if tries is not None else {}
    info = {"config": agent.to_dict(), **job.options.recorded_limits(), **seeded}
    if isinstance(agent, MultiStepAgent):
        agent.check()
        info.update(fingerprint_of(agent))
    return warnings_about((o.setup for o in rows.done.values()), setup_of(info))


class _PendingTasks:
    """The selected tasks of a file, read lazily; skips tasks that changed since the survey.

    Args:
        job: must have an `input`.
        ids: ids and fingerprints from `survey`.
        excluded: ids of tasks not to run.

    Attributes:
        found: ids of the unchanged tasks at the last read.
    """

    def __init__(self, job: Job, ids: Mapping[str, str], excluded: Collection[str]):
        self._job, self._ids, self._excluded = job, ids, excluded
        self.found: set[str] = set()

    def __iter__(self) -> Iterator[Task]:
        assert self._job.input is not None
        self.found.clear()
        for task in read_tasks(self._job.input, self._job.files_dir):
            if isinstance(task, Task) and self._ids.get(task.id) == self._job.fingerprint(task):
                self.found.add(task.id)
                if task.id not in self._excluded:
                    yield task


def survey(job: Job) -> tuple[dict[str, str], list[LineProblem]]:
    """Read the whole task file once.

    Returns:
        The ids of the selected tasks in order, with fingerprints of their questions; and the
        invalid lines.

    Raises:
        TaskFileError: the file cannot be read.
        ConfigError: the file has no task with a requested id, or is also the output.
    """
    assert job.input is not None
    if job.output.exists() and job.input.exists() and job.output.samefile(job.input):
        raise ConfigError(f"--output {job.output} is the task file itself; name another file")
    known: set[str] = set()
    problems: list[LineProblem] = []
    job.skipped.clear()

    def usable() -> Iterator[Task]:
        assert job.input is not None
        for found in read_tasks(job.input, job.files_dir):
            if isinstance(found, LineProblem):
                problems.append(found)
            else:
                known.add(found.id)
                if found.skip and found.id not in job.ids:
                    job.skipped.append(found.id)
                yield found

    every = usable()
    ids = {task.id: job.fingerprint(task) for task in job.selected(every)}
    for _ in every:  # also collect problems after the limit
        pass
    missing = [i for i in job.ids if i not in known]
    if missing:
        raise ConfigError(f"--ids {','.join(missing)}: {job.input} has no valid task with that id")
    return ids, problems


def run_tasks(
    agent: MultiStepAgent,
    tasks: Iterable[Task],
    job: Job,
    rows: RowFile,
    screen: Console,
    *,
    ids: Collection[str] | None = None,
    prepare: Callable[[], Iterable[str]] | None = None,
    make: Callable[..., TaskRunner] = TaskRunner,
) -> tuple[ExitCode, dict[str, Outcome]]:
    """Run tasks with service checks, log, display and signal handling.

    Args:
        make: factory of the runner.
        ids: ids of the tasks if known; enables the status file.
        prepare: called after the checks and before the first task; returns lines to display.

    Returns:
        An exit code, and the outcomes of all tasks in the output by id. The code is DONE if all
        tasks were run, STOPPED after a signal, LIMIT at a limit of the run, else that of the error.

    Raises:
        CKError: a check failed before the first task.
    """
    stop = threading.Event()
    judge = job.options.judge
    person = uses_manual_model(agent, judge)
    total = None if ids is None else len(ids)
    display = make_display(screen, steps=job.steps, plain=job.plain or person, total=total)
    watcher = RunStatus(display, rows.path, total=total)
    runner = make(agent, rows, job.options, watcher, stop, target_url=job.target_url)
    check_services(agent, money_limit=job.options.limits_money, judge=judge)
    with ExitStack() as around:
        if job.metrics is not None:
            server = around.enter_context(MetricsServer(watcher, job.metrics))
            display.note(f"metrics: {server.url}")
        for line in prepare() if prepare is not None else ():
            display.note(line)
        if rows.repaired:
            display.note(_repair_note(rows))
        watcher.start(lambda: sum(i in rows.done for i in ids or ()), runner.budget)
        around.enter_context(logging_to(rows.folder / LOG_NAME, json_lines=job.log_json))
        if ids is not None:
            around.enter_context(StatusFile(watcher, rows.folder))
        around.enter_context(display)
        around.enter_context(StopSignals(stop, at_once=person))
        code = _run_to_end(runner, tasks, stop, display)
        with suppress(OutputError):  # the refresh below raises it again
            rows.refresh()
        lost = sorted((runner.outcomes.keys() | rows.lost) - rows.done.keys())
        code = ExitCode.OUTPUT if lost else code
        watcher.over(code.name.lower(), runner.limit)
    rows.refresh()
    if lost:
        report_lost(screen, rows.path, lost)
    return code, {name: runner.outcomes.get(name, rows.done[name]) for name in rows.done}


def _repair_note(rows: RowFile) -> str:
    return (
        f"{rows.path}: {rows.repaired} bytes of torn lines moved to {rows.path.name}.torn; their "
        "tasks resume or run again"
    )


def _run_to_end(
    runner: TaskRunner, tasks: Iterable[Task], stop: threading.Event, display: PlainDisplay
) -> ExitCode:
    """Run the tasks; if the run ends early, display the reason."""
    code = ExitCode.DONE
    try:
        runner.run(tasks)
    except KeyboardInterrupt:
        code = ExitCode.STOPPED
        if runner.failure is not None:
            display.note(f"error: {runner.failure}")
    except CKError as e:
        display.note(f"error: {e}")
        code = exit_code_of(e)
    if code is ExitCode.DONE and stop.is_set():
        code = ExitCode.STOPPED
    if code in (ExitCode.DONE, ExitCode.STOPPED) and runner.limit is not None:
        code = ExitCode.LIMIT
        display.note(runner.limit + runner.retry_hint("resume"))
    return code


def _verdict(outcomes: Sequence[Outcome]) -> ExitCode:
    return ExitCode.DONE if all(o.is_done for o in outcomes) else ExitCode.PROBLEM
