"""Shared code of the commands that run tasks: options, settings, errors, exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ck_main.cli.agent_names import named_agent
from ck_main.cli.building import (
    build_agent,
    run_options,
    with_mcp_tools,
    without_missing_browser,
)
from ck_main.cli.chat import chat
from ck_main.cli.job import Job, run_job, run_tasks
from ck_main.cli.options import RUN_LIMITS
from ck_main.cli.resuming import TypedTaskRunner, resuming, start_fork
from ck_main.cli.typed import answer_text, free_id, print_hint, typed_lines
from ck_main.output.row import Outcome
from ck_main.output.row_file import RowFile
from ck_main.runner.runner import TaskRunner
from ck_main.runner.service_checks import check_services
from ck_main.tasks.dataset import Task, safe_name
from ck_main.ui.reports import report_warning, resume_hint
from ck_pro.agent import MultiStepAgent
from ck_pro.command_line import ExitCode
from ck_pro.command_line import run_command as run_command  # see docs/extending.md
from ck_pro.exceptions import ConfigError
from ck_pro.journal import is_journal
from ck_pro.model.backends.targets import known_forms
from ck_pro.tools.human import TerminalPerson

_OF_FILES = (
    *("ids", "limit", "shard", "rerun", "order", "files_dir", "ray"),
    *RUN_LIMITS,
)
_END = "__END__"
RESUMED_OUTPUT = Path("runs/resumed.jsonl")
HELP = f"""\
\b
To resume, repeat the command: it skips tasks that have a row in the output. It
never overwrites the output. The folder OUTPUT/ beside OUTPUT.jsonl has one
folder per task (journal, files), status.json (progress) and run.log.
OUTPUT.tries.jsonl has the tries that --choose did not select.

\b
Models: {" | ".join(known_forms())}

\b
Exit codes:
  0    every task completed (answers may be right or wrong: see the score)
  1    some tasks did not complete: a limit, an error, a question
  2    the command line, the configuration or the task file is invalid, or
       something that they need is not installed
  3    some lines of the task file are invalid or changed; all others were run
  4    the output cannot be written; rows already written are kept
  5    a model or the browser server is unreachable or refuses requests
  6    internal error; the message names the full log
  7    a limit of the whole run was reached; repeat the command to resume
  130  stopped by Ctrl-C, SIGTERM or SIGHUP; repeat the command to resume

\b
Environment:
  OPENAI_API_KEY, OPENAI_BASE_URL, AZURE_OPENAI_ENDPOINT   for gpt:NAME
  CK_API_KEY        API key for http(s) models
  CK_WEB_TOKEN      token for the browser server
  CK_CHROMIUM       path of the Chromium to use
  NO_COLOR          plain text on a terminal
"""
"""The end of every command's `--help`."""


def run_agent(
    kind: type[MultiStepAgent],
    *,
    default_output: Path,
    target_url: str | None = None,
    **options: Any,
) -> ExitCode:
    """Run the tasks that the options of a command select.

    Args:
        kind: class of the agent.
        default_output: file of rows if there is no `--output`.
        target_url: start page for tasks without one.
        options: values of `task_options` by name; `input_` is `--input`.

    Raises:
        click.UsageError: two options contradict each other, or one is missing.
        CKError: see `run_job`.
    """
    check_options(options)
    if options["agent"] is not None:
        kind = named_agent(options["agent"])
    screen, out = Console(stderr=True), Console()
    names = ("model", "planning", "allow", "language", "profile", "pictures")
    chosen = {name: options[name] for name in names}
    agent = build_agent(kind, options["config"], options["updates"], **chosen)
    if options["ray"] is None:  # each node of a cluster has its own browsers
        agent, missing = without_missing_browser(agent)
        if missing:
            report_warning(screen, missing)
    with ExitStack() as stack:
        if options["mcp"] is not None:
            from ck_pro.tools.mcp import McpServers  # takes long to import

            servers = stack.enter_context(McpServers(options["mcp"]))
            agent = with_mcp_tools(agent, servers)
        return _run_selected(agent, options, default_output, target_url, screen, out)


def _run_selected(
    agent: MultiStepAgent,
    options: Mapping[str, Any],
    default_output: Path,
    target_url: str | None,
    screen: Console,
    out: Console,
) -> ExitCode:
    """Run the tasks that the options select with an agent."""
    input_, question = options["input_"], options["task"]
    if options["resume"] is not None:
        default_output = RESUMED_OUTPUT
    job = _job(agent, options, options["output"] or default_output, target_url)
    if options["fork"] is not None:
        # check before writing: repeating the command would create another fork
        check_services(agent, money_limit=job.options.limits_money, judge=job.options.judge)
        output, folder = start_fork(
            options["fork"], options["at"], output=options["output"], reply=options["reply"]
        )
        task, make, warning = resuming(folder, "", agent, forked=True)
        if warning and options["planning"] is None:
            report_warning(screen, warning)
        return _resume_run(agent, replace(job, output=output), task, make, screen, folder)
    if input_ is None and agent.person is None and sys.stdin.isatty():
        agent = agent.updated({"person": TerminalPerson()})
    if options["chat"]:
        folder = options["resume"]
        if folder is not None and options["output"] is None:
            job = replace(job, output=_resumed_output(folder.name))
        return chat(agent, job, screen, first=question, folder=folder)
    if options["resume"] is not None:
        task, make, warning = resuming(
            options["resume"], options["answer"] or "", agent, approve=options["approve"]
        )
        if warning and options["planning"] is None:
            report_warning(screen, warning)
        if options["output"] is None:
            job = replace(job, output=_resumed_output(task.id))
        return _resume_run(agent, job, task, make, screen, options["resume"])
    if input_ is not None:
        return run_job(agent, job, screen, out)[0]
    job = replace(job, steps=True)
    questions = (
        typed_lines(screen, "task> ", "Type a task on one line.")
        if question is None
        else iter([question])
    )
    return _one_by_one(agent, job, screen, questions)


def _job(
    agent: MultiStepAgent, options: Mapping[str, Any], output: Path, target_url: str | None
) -> Job:
    """Build the job that the options describe."""
    return Job(
        output=output,
        input=options["input_"],
        files_dir=options["files_dir"],
        ids=options["ids"],
        limit=options["limit"],
        shard=options["shard"],
        rerun=frozenset(options["rerun"]),
        in_order=options["order"] == "input",
        options=run_options(agent, options),
        plain=options["plain"],
        target_url=target_url,
        log_json=options["log"] == "json",
        metrics=options["metrics"],
        ray=options["ray"],
    )


def check_options(options: Mapping[str, Any]) -> None:
    """Raise click.UsageError if options contradict each other or one is missing."""
    input_, task, files_dir = options["input_"], options["task"], options["files_dir"]
    if input_ is not None and task is not None:
        raise click.UsageError("give --input or --task, not both")
    if input_ is not None and options["output"] is None:
        raise click.UsageError("--input needs --output FILE, where the rows go")
    one_run = [f"--{name}" for name in ("resume", "fork") if options[name] is not None]
    if one_run and (input_ is not None or task is not None):
        raise click.UsageError(f"{one_run[0]} resumes one run: omit --input and --task")
    if len(one_run) > 1:
        raise click.UsageError("give --resume or --fork, not both")
    if options["answer"] is not None and options["resume"] is None:
        raise click.UsageError("--answer needs --resume FOLDER, the run that asked")
    if options["approve"] and options["resume"] is None:
        raise click.UsageError("--approve needs --resume FOLDER, the run that stopped")
    if (options["fork"] is None) != (options["at"] is None):
        raise click.UsageError("--fork FOLDER and --at STEP need each other")
    if options["reply"] is not None and options["fork"] is None:
        raise click.UsageError("--reply needs --fork FOLDER --at STEP")
    if options["mcp"] is not None and options["ray"] is not None:
        raise click.UsageError("--mcp: its servers run on this machine only; omit --ray")
    if input_ is None:
        given = [n for n in _OF_FILES if options[n] not in (None, (), "end")]
        if given:
            names = ", ".join(f"--{n.replace('_', '-')}" for n in given)
            raise click.UsageError(f"{names}: need --input, a file of tasks")
    if options["chat"]:
        _check_chat(options)
    if task is not None and not task.strip():
        raise click.UsageError("--task is empty")
    if files_dir is not None and not files_dir.is_dir():
        raise click.UsageError(f"--files-dir {files_dir}: no such folder")
    if options["reflect"] and options["until"] is None:
        raise click.UsageError("--reflect needs --until, which decides when a try has failed")
    if options["until"] and options["choose"]:
        raise click.UsageError("give --until or --choose, not both: --until stops at a right try")
    several = any(options[n] for n in ("until", "choose", "reflect"))
    tries = options["tries"] or len(options["seeds"] or ()) or 1
    if several and tries < 2:
        raise click.UsageError("--until, --choose and --reflect need --tries K, at least 2")
    asks = options["until"] == "llm_judge" or options["choose"] == "judge" or options["reflect"]
    if options["judge_model"] is not None and not asks:
        raise click.UsageError(
            "--judge-model is unused: add --until llm_judge, --reflect or --choose judge"
        )
    seeds = options["seeds"] or ()
    if seeds and (len(seeds) != tries or len(set(seeds)) < tries):
        raise click.UsageError(f"--seeds: give {tries} different seeds, one for each try")


def _check_chat(options: Mapping[str, Any]) -> None:
    """Raise click.UsageError if an option contradicts `--chat`."""
    others = [*_OF_FILES, "input_", "fork", "tries", "seeds", "until", "choose", "reflect"]
    others += ["answer"]
    given = [n for n in others if options.get(n) not in (None, (), "end", False)]
    if given:
        raise click.UsageError(
            f"give --chat or --{given[0].strip('_').replace('_', '-')}, not both"
        )


def _resume_run(
    agent: MultiStepAgent,
    job: Job,
    task: Task,
    make: Callable[..., TaskRunner],
    screen: Console,
    folder: Path,
) -> ExitCode:
    """Resume the run in a folder and print its answer to standard output."""
    with RowFile(job.output) as rows:
        if rows.has(task.id):
            raise ConfigError(f"--output {job.output} has a row for {task.id!r}; name another file")
        ended, outcomes = run_tasks(agent, [task], job, rows, screen, make=make)
        outcome = outcomes.get(task.id)
        code = _print_answer(outcome, ended)
        if outcome is not None:
            print_hint(screen, resume_hint(outcome.status, folder))
        return code


def _resumed_output(name: str) -> Path:
    """Return the first default output of `--resume` without a row for the task."""
    number, output = 1, RESUMED_OUTPUT
    while True:
        with RowFile(output) as rows:
            if not rows.has(name):
                return output
        number += 1
        output = RESUMED_OUTPUT.with_stem(f"{RESUMED_OUTPUT.stem}-{number}")


def _print_answer(outcome: Outcome | None, ended: ExitCode) -> ExitCode:
    """Print a task's answer; return the exit code of its run."""
    if outcome is None:
        return ended
    click.echo(answer_text(outcome.answer, to_terminal=sys.stdout.isatty()))
    return ended if ended is not ExitCode.DONE or outcome.is_done else ExitCode.PROBLEM


def _one_by_one(
    agent: MultiStepAgent, job: Job, screen: Console, questions: Iterator[str]
) -> ExitCode:
    """Run questions one at a time and print each answer to standard output."""
    code = ExitCode.DONE
    with RowFile(job.output) as rows:
        for question in questions:
            name = free_id(rows)
            original = {"question": question}
            task = Task(name, question, safe_name(name), original=original)
            ended, outcomes = run_tasks(agent, [task], job, rows, screen, make=TypedTaskRunner)
            outcome, folder = outcomes.get(name), rows.folder / task.folder
            answered = _print_answer(outcome, ended)
            if outcome is None:
                hint = f"no answer; resume it with --resume {folder}" if is_journal(folder) else ""
            else:
                hint = resume_hint(outcome.status, folder)
            print_hint(screen, hint)
            if ended is not ExitCode.DONE:
                return ended
            code = max(code, answered)
    return code
