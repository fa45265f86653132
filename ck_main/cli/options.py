"""Options of the commands that run tasks, in groups, and the types of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

import click

from ck_main.cli.former_flags import current_arguments
from ck_main.cli.profiles import PROFILES
from ck_main.runner.choosing import Choose, Until
from ck_pro.agent_settings import Planning
from ck_pro.command_line import IDS_HELP, IDS_METAVAR, AnyPath, ids_of
from ck_pro.journal import Fsync
from ck_pro.language import LANGUAGES

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FILE = AnyPath()
LIMITS = ("max_steps", "max_seconds", "max_tokens", "max_money")
"""Limits of a task."""
RUN_LIMITS = tuple(f"run_{name}" for name in LIMITS)
"""Limits of all tasks of a command."""


class Finite(click.FloatRange):
    """A finite number within a range: neither `nan` nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.FloatRange.convert`."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def shard_of(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Parse `i/n` into (i, n), with i from 1 to n."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value.strip(), re.ASCII)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{value!r} is not a shard such as 1/4, 2/4, 3/4 or 4/4.")
    return int(found[1]), int(found[2])


def seeds_of(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Parse comma-separated integers."""
    parts = [] if value is None else [p.strip() for p in value.split(",")]
    if not all(re.fullmatch(r"\d{1,18}", p, re.ASCII) for p in parts):
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 1,2,3.")
    return tuple(int(p) for p in parts)


def hosts_of(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Check that each value is a host, not an address of a page."""
    for text in value:
        if "://" in text or not text.strip():
            host = urlsplit(text.strip()).netloc or "localhost:8000"
            raise click.BadParameter(f"{text!r} is not a host with an optional port: write {host}")
    return tuple(text.strip() for text in value)


class GroupedOption(click.Option):
    """An option listed under a heading in the help."""

    def __init__(self, *args: Any, group: str, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.group = group


class TaskCommand(click.Command):
    """A command with grouped help that also accepts flags of the original CK-Pro."""

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
        help="File to append rows to; required with --input.",
    ),
    _option(_TASKS, "-t", "--task", help="Run one task and print its answer to stdout."),
    _option(
        _TASKS,
        "--chat",
        is_flag=True,
        help="A conversation: each line that you type, or pipe in, is a message; --task is the "
        "first one. Continue a conversation with --chat --resume FOLDER.",
    ),
    _option(_TASKS, "--ids", callback=ids_of, metavar=IDS_METAVAR, help=IDS_HELP),
    _option(_TASKS, "--limit", **_NUMBER, help="Run only the first N of these tasks."),
    _option(
        _TASKS,
        "--shard",
        callback=shard_of,
        metavar="I/N",
        help="Run only shard I of N of these tasks: the I-th, (I+N)-th, ...",
    ),
    _option(
        _TASKS,
        "--rerun",
        type=click.Choice(["failed", "wrong", "all"]),
        multiple=True,
        help="Run tasks again that failed, that have a wrong answer, or all (repeatable). The old "
        "rows move to OUTPUT.superseded.jsonl. To resume, repeat the command.",
    ),
    _option(
        _TASKS,
        "--files-dir",
        type=_FILE,
        help="Folder in which file_name is looked up.  [folder of --input]",
    ),
    _option(
        _AGENT,
        "--agent",
        metavar="NAME",
        help="The agent, by its name in `python -m ck_main.agents` or as MODULE:CLASS.",
    ),
    _option(_AGENT, "-m", "--model", metavar="MODEL", help="The model of every agent; see below."),
    _option(
        _AGENT,
        "--planning",
        type=click.Choice(get_args(get_args(Planning)[0])),
        help="How every agent plans. fused: in the reply of a step. separate: in one more model "
        "call per step. off: not at all.  [fused]",
    ),
    _option(
        _AGENT,
        "--language",
        type=click.Choice([*LANGUAGES]),
        metavar="NAME",
        help="How every agent acts: code, function_calls or function_calls_text; with --computer "
        "also computer_use, computer or computer_use_preview.  [code; with --computer: "
        "computer_use]",
    ),
    _option(
        _AGENT,
        "--profile",
        type=click.Choice([*PROFILES]),
        help="Settings for one kind of model. "
        + " ".join(f"{name}: {p.meaning}." for name, p in PROFILES.items())
        + " --config and --updates override it.",
    ),
    _option(
        _AGENT, "-c", "--config", type=_FILE, help="Settings file: YAML, JSON or a Python dict."
    ),
    _option(
        _AGENT,
        "-u",
        "--updates",
        multiple=True,
        metavar="DICT|NAME=VALUE",
        help="Override single settings (repeatable; the last one wins). A list: "
        "\"NAME=['a', 'b']\".",
    ),
    _option(
        _AGENT,
        "--allow",
        multiple=True,
        callback=hosts_of,
        metavar="HOST[:PORT]",
        help="Let pages reach a host that is not public, such as localhost:8000 (repeatable).",
    ),
    _option(
        _AGENT,
        "--mcp",
        type=_FILE,
        metavar="FILE",
        help="Give the agent the tools of MCP servers: JSON or YAML, "
        '{"mcpServers": {NAME: {"command": ..., "args": [...]} or {"url": ...}}}.',
    ),
    _option(
        _RUN,
        "-w",
        "--workers",
        type=click.IntRange(1, 256),
        metavar="N",
        default=1,
        show_default=True,
        help="Number of tasks to run in parallel.",
    ),
    _option(
        _RUN,
        "--retries",
        type=click.IntRange(0, 100),
        metavar="N",
        default=1,
        show_default=True,
        help="Retry a task up to N times after an infrastructure failure (browser, unreachable "
        "model, internal error); never after a wrong answer or a limit.",
    ),
    _option(
        _RUN,
        "--scorer",
        metavar="NAME[:OPTIONS]",
        help="How to score answers, unless the task's field `scorer` says otherwise; "
        "`python -m ck_main.score --help` lists the scorers.  [em]",
    ),
    _option(
        _RUN,
        "--order",
        type=click.Choice(["end", "input"]),
        default="end",
        show_default=True,
        help="Order of the rows: as tasks end, or sorted like the input when the command ends.",
    ),
    _option(
        _RUN,
        "--fsync",
        type=click.Choice(get_args(Fsync)),
        default="never",
        show_default=True,
        help="When to force journals to the disk. Use step or always to survive a power failure; a "
        "killed process loses nothing anyway.",
    ),
    _option(
        _RUN,
        "--compress",
        is_flag=True,
        help="Compress each journal when its task ends (needs ck-pro[zstd]).",
    ),
    _option(
        _RUN,
        "--ray",
        metavar="ADDRESS",
        help="Run the tasks on Ray: local, auto, or HOST:PORT of a cluster. All nodes must share "
        "the folder of --output.",
    ),
    _option(
        _RUN,
        "--resume",
        type=_FILE,
        metavar="FOLDER",
        help="Resume one run that was stopped, failed or asked a question: the folder of its task "
        "in OUTPUT/. The row goes to --output or runs/resumed.jsonl.",
    ),
    _option(
        _RUN,
        "--answer",
        metavar="TEXT",
        help="With --resume: the answer to the question that ended the run.",
    ),
    _option(
        _RUN,
        "--approve",
        is_flag=True,
        help="With --resume: run the action for which the approver stopped the run; this one only.",
    ),
    _option(
        _RUN,
        "--fork",
        type=_FILE,
        metavar="FOLDER",
        help="Start a new run from the first steps of this one (a task's folder), for example "
        "with another --model. The row goes to --output or runs/forks/; the old run is not "
        "changed.",
    ),
    _option(
        _RUN,
        "--at",
        type=click.IntRange(min=0),
        metavar="STEP",
        help="With --fork: the main agent's step to fork at, from 0.",
    ),
    _option(
        _RUN,
        "--reply",
        type=_FILE,
        metavar="FILE",
        help="With --fork: file with the model reply to use in that step.",
    ),
    _option(_LIMITS, "--max-steps", **_NUMBER, help="Steps per task, over all agents."),
    _option(_LIMITS, "--max-seconds", **_SECONDS, help="Wall time per task."),
    _option(_LIMITS, "--max-tokens", **_NUMBER, help="Tokens per task."),
    _option(_LIMITS, "--max-money", **_USD, help="USD per task."),
    _option(
        _LIMITS,
        "--run-max-steps",
        **_NUMBER,
        help="Steps of all tasks of this command. At this limit tasks in progress stop without a "
        "row; repeat the command to resume.",
    ),
    _option(_LIMITS, "--run-max-seconds", **_SECONDS, help="Wall time of the command."),
    _option(_LIMITS, "--run-max-tokens", **_NUMBER, help="Tokens of all tasks."),
    _option(_LIMITS, "--run-max-money", **_USD, help="USD of all tasks."),
    _option(
        _TRIES,
        "--tries",
        type=click.IntRange(1, 1000),
        metavar="K",
        help="Try each task up to K times; all tries are kept. Task limits apply to each try.",
    ),
    _option(
        _TRIES,
        "--seeds",
        callback=seeds_of,
        metavar="N,...",
        help="The `seed` of the model calls, one per try.",
    ),
    _option(
        _TRIES,
        "--until",
        type=click.Choice(get_args(Until)),
        metavar="HOW",
        help="Stop condition for tries. em: the answer is right. llm_judge: a model judges it "
        "right. stop_with_answer: there is an answer.",
    ),
    _option(
        _TRIES,
        "--reflect",
        is_flag=True,
        help="With --until: give the next try advice that a model writes about the failed one.",
    ),
    _option(
        _TRIES,
        "--choose",
        type=click.Choice(get_args(Choose)),
        metavar="HOW",
        help="Make all tries and select one: the first with an answer, the majority vote, or the "
        "one that a model prefers (judge).  [first]",
    ),
    _option(
        _TRIES,
        "--judge-model",
        metavar="MODEL",
        help="Model that judges, advises and chooses.  [model of the main agent]",
    ),
    _option(
        _WATCH,
        "--pictures",
        is_flag=True,
        help="Store a small picture of the page for viewers at each step and before each action.",
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
        help="Log format. text: warnings and errors in OUTPUT/run.log. json: these and the events "
        "of each task in OUTPUT/run.log.jsonl.",
    ),
)


def task_options(function: _Function) -> _Function:
    """Add the options shared by all commands that run tasks."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def some_task_options(*names: str) -> Callable[[_Function], _Function]:
    """Add only the named ones of the shared options."""

    def add(function: _Function) -> _Function:
        for option in reversed(_OPTIONS):
            if option(lambda: None).__click_params__[0].name in names:
                function = option(function)
        return function

    return add
