"""The options of the commands that run tasks, in groups, and their values' types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from ck_main.cli.former_flags import current_arguments
from ck_main.runner.choosing import Choose, Until
from ck_pro.journal import Fsync
from ck_pro.trajectory.command_line import AnyPath
from ck_pro.trajectory.id_list import HELP, METAVAR, ids_of

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FILE = AnyPath()
LIMITS = ("max_steps", "max_seconds", "max_tokens", "max_money")
"""Names of the limits of a task; with `run_` before them, of those of a run."""


class Finite(click.FloatRange):
    """A number within a range that is one: neither `nan` nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.FloatRange.convert`."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number of finite size.", param, ctx)
        return number


def shard_of(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """`i/n` as (i, n), with i from 1 to n."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value.strip(), re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{value!r} is no part: of four they are 1/4, 2/4, 3/4, 4/4.")
    return int(found[1]), int(found[2])


def seeds_of(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    parts = [] if value is None else [p.strip() for p in value.split(",")]
    if not all(re.fullmatch(r"\d{1,18}", p, re.ASCII) for p in parts):
        raise click.BadParameter(f"{value!r} is no list of whole numbers, such as 1,2,3.")
    return tuple(int(p) for p in parts)


class GroupedOption(click.Option):
    """An option that the help shows under a heading."""

    def __init__(self, *args: Any, group: str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.group = group


class TaskCommand(click.Command):
    """A command whose help shows its options in groups, and that knows flags of CK-Pro."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See `click.Command.parse_args`."""
        known = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}
        return super().parse_args(ctx, current_arguments(args, known))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """See `click.Command.format_options`."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "group", "Other"), []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


def _option(group: str, *names: str, **facts: Any) -> Callable[[_Function], _Function]:
    return click.option(*names, cls=GroupedOption, group=group, **facts)


_NUMBER: dict[str, Any] = {"type": click.IntRange(min=1), "metavar": "N"}
_SECONDS: dict[str, Any] = {"type": Finite(min=0, min_open=True), "metavar": "SECONDS"}
_USD: dict[str, Any] = {"type": Finite(min=0), "metavar": "USD"}
_TASKS, _AGENT, _RUN = "Tasks", "Agent", "Running"
_LIMITS, _TRIES, _WATCH = "Limits", "Several tries of each task", "Watching"
_OPTIONS = (
    _option(
        _TASKS, "-i", "--input", "input_", type=_FILE, help="Task file: JSON lines or a JSON list."
    ),
    _option(
        _TASKS,
        "-o",
        "--output",
        type=_FILE,
        help="File that rows are appended to; needed with --input.",
    ),
    _option(
        _TASKS, "-t", "--task", help="One task on the command line; its answer goes to stdout."
    ),
    _option(_TASKS, "--ids", callback=ids_of, metavar=METAVAR, help=HELP),
    _option(_TASKS, "--limit", **_NUMBER, help="Only the first N of them."),
    _option(
        _TASKS,
        "--shard",
        callback=shard_of,
        metavar="I/N",
        help="Only the I-th, (I+N)-th, ... of these: N commands, together all.",
    ),
    _option(
        _TASKS,
        "--rerun",
        type=click.Choice(["failed", "wrong", "all"]),
        multiple=True,
        help="Also tasks whose row says so, or all (may be repeated). The old rows move to "
        "OUTPUT.superseded.jsonl; stopped, the same command continues.",
    ),
    _option(
        _TASKS, "--files-dir", type=_FILE, help="Where file_name is looked up. [beside --input]"
    ),
    _option(_AGENT, "-m", "--model", metavar="MODEL", help="The model of every agent; see below."),
    _option(_AGENT, "-c", "--config", type=_FILE, help="Settings: YAML, JSON or a Python dict."),
    _option(
        _AGENT,
        "-u",
        "--updates",
        multiple=True,
        metavar="DICT|NAME=VALUE",
        help="Settings over those of the file; may be repeated, the last wins.",
    ),
    _option(
        _RUN,
        "-w",
        "--workers",
        type=click.IntRange(1, 256),
        metavar="N",
        default=1,
        show_default=True,
        help="Tasks at once.",
    ),
    _option(
        _RUN,
        "--retries",
        type=click.IntRange(0, 100),
        metavar="N",
        default=1,
        show_default=True,
        help="Further attempts when the infrastructure failed (a browser, a model that cannot be "
        "reached, an error of ours); never after a wrong answer or a limit.",
    ),
    _option(
        _RUN,
        "--order",
        type=click.Choice(["end", "input"]),
        default="end",
        show_default=True,
        help="Rows as tasks end, or put in the order of the file when the command ends.",
    ),
    _option(
        _RUN,
        "--fsync",
        type=click.Choice(get_args(Fsync)),
        default="never",
        show_default=True,
        help="When journals are forced to the disk: a killed process loses nothing in any case, a "
        "machine that loses power only with step or always.",
    ),
    _option(
        _RUN,
        "--compress",
        is_flag=True,
        help="Compress each journal when its task has ended (needs ck-pro[zstd]).",
    ),
    _option(
        _RUN,
        "--ray",
        metavar="ADDRESS",
        help="Run the tasks on Ray: local, auto, or HOST:PORT of a cluster; --output must be in a "
        "folder that all nodes share.",
    ),
    _option(
        _RUN,
        "--resume",
        type=_FILE,
        metavar="FOLDER",
        help="Go on with one run that was stopped, failed or asked something: its task's folder "
        "in OUTPUT/. The row goes to runs/resumed.jsonl or --output.",
    ),
    _option(
        _RUN,
        "--answer",
        metavar="TEXT",
        help="With --resume: the answer to the question for which the run ended.",
    ),
    _option(
        _RUN,
        "--fork",
        type=_FILE,
        metavar="FOLDER",
        help="Begin a new run with the steps of this one (a task's folder) before --at STEP of its "
        "main agent, and go on, with another --model perhaps. The row goes to runs/forks/ or "
        "--output; the old run stays as it is.",
    ),
    _option(_RUN, "--at", type=click.IntRange(min=0), metavar="STEP", help="From 0."),
    _option(
        _RUN,
        "--reply",
        type=_FILE,
        metavar="FILE",
        help="With --fork: what to take for the model's reply in that step.",
    ),
    _option(_LIMITS, "--max-steps", **_NUMBER, help="Steps per task, of all agents."),
    _option(_LIMITS, "--max-seconds", **_SECONDS, help="Wall time per task."),
    _option(_LIMITS, "--max-tokens", **_NUMBER, help="Tokens per task."),
    _option(_LIMITS, "--max-money", **_USD, help="USD per task."),
    _option(
        _LIMITS,
        "--run-max-steps",
        **_NUMBER,
        help="Of all tasks of this command together; reached, tasks under way stop, without a "
        "row, and the same command continues.",
    ),
    _option(_LIMITS, "--run-max-seconds", **_SECONDS, help="The same for wall time,"),
    _option(_LIMITS, "--run-max-tokens", **_NUMBER, help="for tokens,"),
    _option(_LIMITS, "--run-max-money", **_USD, help="for USD."),
    _option(
        _TRIES,
        "--tries",
        type=click.IntRange(1, 1000),
        metavar="K",
        help="At most so many, all are kept. Limits per task then hold for each try.",
    ),
    _option(
        _TRIES,
        "--seeds",
        callback=seeds_of,
        metavar="N,...",
        help="One for each try: the `seed` of its model calls.",
    ),
    _option(
        _TRIES,
        "--until",
        type=click.Choice(get_args(Until)),
        metavar="HOW",
        help="em, llm_judge or stop_with_answer: try again until the answer is right, a model "
        "says that it is, or there is one at all.",
    ),
    _option(
        _TRIES,
        "--reflect",
        is_flag=True,
        help="With --until: a model's advice from a failed try goes into the next.",
    ),
    _option(
        _TRIES,
        "--choose",
        type=click.Choice(get_args(Choose)),
        metavar="HOW",
        help="first, vote or judge: all tries are made, and one is taken: the first that "
        "answered, what most answered, what a model prefers.  [first]",
    ),
    _option(
        _TRIES,
        "--judge-model",
        metavar="MODEL",
        help="The model that judges, advises and chooses.  [the main agent's]",
    ),
    _option(_WATCH, "--plain", is_flag=True, help="One line per finished task, no live table."),
    _option(
        _WATCH,
        "--metrics",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="Serve http://127.0.0.1:PORT/metrics (Prometheus) and /status; 0: any free port.",
    ),
    _option(
        _WATCH,
        "--log",
        "log",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="OUTPUT/run.log with warnings and errors, or OUTPUT/run.log.jsonl with them and what "
        "happened to each task.",
    ),
)


def task_options(function: _Function) -> _Function:
    """Give a command the options of every command that runs tasks."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def limit_options(function: _Function) -> _Function:
    """Give a command the options for limits alone."""
    names = {f"{run}{name}" for run in ("", "run_") for name in LIMITS}
    for option in reversed(_OPTIONS):
        chosen = option(lambda: None)
        if chosen.__click_params__[0].name in names:
            function = option(function)
    return function
