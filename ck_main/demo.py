"""`python -m ck_main.demo`: run the demo, without a key or a network. See `--help`.

The web site, the browser, the code, the sessions and the scores are real. The model is a recording
of replies, unless `--model` names another one.
"""

from __future__ import annotations

if __name__ == "__main__":
    from ck_pro.interrupts import quit_on_interrupt

    quit_on_interrupt()

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.panel import Panel

from ck_main.agent import CKAgent
from ck_main.cli.building import for_every_agent
from ck_main.cli.command import run_command
from ck_main.cli.job import Job, run_job, survey
from ck_main.cli.options import LIMITS, RUN_LIMITS, some_task_options
from ck_main.cli.profiles import profile_settings
from ck_main.demo_site import DemoSite
from ck_main.output.output_files import check_output, folder_of, write_advice
from ck_main.runner.limits import RunLimits
from ck_main.runner.model_settings import inherited_settings, settings_of_models
from ck_main.runner.run_options import RunOptions
from ck_main.runner.service_checks import check_services, probe_services
from ck_pro.command_line import IDS_HELP, IDS_METAVAR, AnyPath, ExitCode, ids_of
from ck_pro.exceptions import ConfigError, InputError, OutputError
from ck_pro.settings import merge_settings, parse_update, read_config

DEMO = Path(__file__).resolve().parent / "demo_data"
RECORDING, TASKS = "replies.jsonl", "tasks.jsonl"
RECORDED_PLANNING = "fused"
DEFAULT_OUTPUT = Path("runs/demo.jsonl")
_FILE = AnyPath()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    help="The model of every agent: gpt:NAME, http(s)://HOST/v1, manual, replay:FILE.  "
    "[the recording of the demo]",
)
@click.option("--record", type=_FILE, help="Record the model's replies in this file.")
@click.option("--ids", callback=ids_of, metavar=IDS_METAVAR, help=IDS_HELP)
@click.option("-o", "--output", type=_FILE, default=DEFAULT_OUTPUT, show_default=True)
@click.option("-w", "--workers", type=click.IntRange(1, 16), default=1, show_default=True)
@click.option(
    "-u",
    "--updates",
    multiple=True,
    metavar="DICT|NAME=VALUE",
    help="Override settings of the demo; may be repeated, the last one wins.",
)
@some_task_options("planning", "language", "profile", "pictures", *LIMITS, *RUN_LIMITS)
@click.option("--steps", is_flag=True, help="Print every step of the agents.")
@click.option("--plain", is_flag=True, help="One line per finished task, no live table.")
@click.option("--data", type=_FILE, default=DEMO, hidden=True)
def cli(
    model: str | None,
    record: Path | None,
    ids: tuple[str, ...],
    output: Path,
    workers: int,
    updates: tuple[str, ...],
    planning: str | None,
    language: str | None,
    profile: str | None,
    pictures: bool,
    steps: bool,
    plain: bool,
    data: Path,
    **limits: Any,
) -> ExitCode:
    """Run ten tasks on the demo's web site, with a real browser.

    The exit code is 0 if every answer is right, else that of ck_main.main. Rows of a previous
    demo move to OUTPUT.old.jsonl: a demo that was stopped starts over.
    """
    if model is None and planning not in (None, RECORDED_PLANNING):
        raise click.UsageError(
            f"--planning {planning} needs --model: the recording has replies with "
            f"{RECORDED_PLANNING} planning"
        )
    chosen = {"planning": planning, "language": language, "profile": profile}
    for name in ("language", "profile"):
        if model is None and chosen[name] is not None:
            raise click.UsageError(
                f"--{name} {chosen[name]} needs --model: the recording has other prompts"
            )
    screen, out = Console(stderr=True), Console()
    out.print(notice(model, data))
    check_output(output)
    with DemoSite(data / "site") as site:
        if pictures:
            updates = (*updates, "web_agent.web_env.step_pictures=true")
        agent = demo_agent(site.origin, data, model, record, updates, **chosen)
        tasks = folder_of(output) / TASKS
        job = Job(
            output=output,
            input=tasks,
            files_dir=data,
            ids=ids,
            options=RunOptions(
                workers=workers,
                probe=lambda: probe_services(agent),
                resumable=False,  # the next demo has another address, and new rows
                run=RunLimits(**{n: limits[f"run_{n}"] for n in LIMITS}),
                **{n: limits[n] for n in LIMITS},
            ),
            plain=plain,
            steps=steps,
        )
        # check everything before the rows of a previous demo move
        survey(replace(job, input=data / TASKS))
        check_services(agent)
        previous = set_aside(output)
        if previous is not None:
            screen.print(f"Rows of the previous demo moved to {previous}.", highlight=False)
        write_tasks(data / TASKS, tasks, site.origin)
        code, outcomes = run_job(agent, job, screen, out)
    if code not in (ExitCode.DONE, ExitCode.PROBLEM):
        return code
    # one task cannot be done, so its status is not "done"; its score counts
    return ExitCode.PROBLEM if any(o.corr == 0 for o in outcomes) else ExitCode.DONE


def demo_agent(
    origin: str,
    data: Path = DEMO,
    model: str | None = None,
    record: Path | None = None,
    updates: Sequence[str] = (),
    planning: str | None = None,
    language: str | None = None,
    profile: str | None = None,
) -> CKAgent:
    """Build the main agent with the settings of the demo.

    Args:
        origin: origin of the running site, `http://host:port`.
        data: folder of the demo's data.
        model: model of every agent; default: the recording in `data`.
        record: file in which the model's replies are recorded.
        updates: values of `--updates`.
        planning, language: settings of every agent.
        profile: a key of `PROFILES`, or None.

    Raises:
        ConfigError: the settings or the model are invalid.
    """
    names = {"site": origin, "host": origin.partition("://")[2], "demo": str(data.resolve())}
    settings = profile_settings(profile, CKAgent()) if profile else {}
    settings = merge_settings(settings, fill_placeholders(read_config(data / "config.yaml"), names))
    target = model or f"replay:{data.resolve() / RECORDING}"
    if record is not None:
        target = f"record:{record}:{target}"
    agent = CKAgent(**settings)
    settings = merge_settings(settings, settings_of_models(agent, {"call_target": target}))
    settings = for_every_agent(agent, settings, planning=planning, language=language)
    for text in updates:
        settings = merge_settings(settings, parse_update(text))
        try:
            CKAgent(**settings)
        except ConfigError as e:
            raise ConfigError(f"--updates {shlex.quote(text)}: {e}") from None
    return CKAgent(**merge_settings(settings, inherited_settings(CKAgent(**settings), settings)))


def fill_placeholders(value: Any, names: Mapping[str, str]) -> Any:
    """Replace `{name}` by its text in all strings of a value."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, dict):
        return {k: fill_placeholders(v, names) for k, v in value.items()}
    return [fill_placeholders(v, names) for v in value] if isinstance(value, list) else value


def write_tasks(source: Path, path: Path, origin: str) -> None:
    """Write the demo's tasks to `path`, with the origin of the site in them.

    Raises:
        InputError: the tasks cannot be read.
        OutputError: the file cannot be written.
    """
    try:
        text = source.read_text(encoding="utf-8").replace("{site}", origin)
    except OSError as e:
        raise InputError(f"cannot read the demo's tasks {source}: {e.strerror}") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror}; {write_advice(e)}") from None


def set_aside(output: Path) -> Path | None:
    """Move the rows and the folder of a previous demo to `<output>.old.jsonl` and its folder.

    Replace the rows that are there. An output without rows is not moved, because it would replace
    rows.

    Returns:
        The new path of the rows; None if nothing was moved.
    """
    old = output.with_name(f"{output.stem}.old{output.suffix}")
    folder, old_folder = folder_of(output), folder_of(old)
    try:
        if not output.is_file() or output.stat().st_size == 0:
            return None
        if old_folder.is_dir():
            shutil.rmtree(old_folder)
        if folder.is_dir():
            folder.rename(old_folder)
        return output.replace(old)
    except OSError as e:
        raise OutputError(f"cannot move {output}: {e.strerror}; remove it yourself") from None


def notice(model: str | None, data: Path = DEMO) -> Panel:
    """Return a notice about the model: a recording or a real one, and how to choose."""
    if model is not None:
        return Panel(f"The model of this demo: [bold]{model}[/bold]", expand=False)
    return Panel(
        "[bold]The model of this demo is a recording[/bold] of replies\n"
        f"({data.name}/{RECORDING}). Everything else is real: the web site,\n"
        "Chromium, the code, the sessions, the scores.\n\n"
        "To use a real model, here or with `make demo MODEL=...`:\n"
        "  python -m ck_main.demo --model gpt:NAME       (OPENAI_API_KEY)\n"
        "  python -m ck_main.demo --model http://localhost:8000/v1\n"
        "                                  (vLLM, llama.cpp, Ollama, ...)",
        expand=False,
    )


if __name__ == "__main__":
    sys.exit(run_command(cli))
