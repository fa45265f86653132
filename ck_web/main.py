"""`python -m ck_web.main`: run tasks with the web agent alone. See `--help`."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from ck_pro.exceptions import CKError, InputError, TaskFileError
from ck_pro.journal import Journal
from ck_pro.session import AgentSession, Status
from ck_pro.settings import load_settings, merge_settings
from ck_web.agent import WebAgent
from ck_web.files import safe_name
from ck_web.sandbox import stop_servers

QUESTION_NAMES = ("question", "Question", "task", "Task", "query", "Query", "instruction")
EPILOG = """
\b
A line of the task file is a JSON object with the task as "task" (or "question",
"query", "instruction"), and, if wanted, "id" and "target_url". Rows of tasks
that ended are appended to OUTPUT.jsonl; the same command again runs the rest.
Journals and downloaded files are in the folder OUTPUT/, one folder per task.

\b
Examples:
  python -m ck_web.main -t "What is the newest post?" --target-url https://blog.example
  python -m ck_web.main -i tasks.jsonl -o runs/web.jsonl -m gpt:gpt-4.1
  python -m ck_web.main -t "..." -m manual -u web_env.server_url=127.0.0.1:3000

\b
Exit codes: 0 every task ended by its own decision; 1 some ended with a problem;
2 the command line or a setting is wrong; 3 some lines of the task file are not
usable (the others were run); 4 the output cannot be written; 130 Ctrl-C.
"""
_FILE = click.Path(path_type=Path)


class OutputError(InputError):
    """The output cannot be written."""


@dataclass(frozen=True)
class WebTask:
    """One task: its id, what to do, where to begin, and the line it came from."""

    id: str
    task: str
    target_url: str | None = None
    original: dict[str, Any] = field(default_factory=dict)


def read_web_tasks(path: Path) -> Iterator[WebTask | TaskFileError]:
    """The tasks of a file of JSON lines; a line that cannot be used comes as the error it is.

    Raises:
        TaskFileError: the file cannot be read.
    """
    seen: set[str] = set()
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as e:
        raise TaskFileError(f"task file {path}: cannot be read: {e.strerror}") from None
    index = -1
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        index += 1
        try:
            task = _task_of(line, f"task{index:04d}")
            if task.id in seen:
                raise ValueError(f"the id {task.id!r} is there twice; give it another")
        except ValueError as e:
            yield TaskFileError(f"{path}, line {number}: {e}")
            continue
        seen.add(task.id)
        yield task


def _task_of(line: bytes, default_id: str) -> WebTask:
    try:
        item = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("not JSON in UTF-8; write one object per line") from None
    if not isinstance(item, dict):
        raise ValueError('not an object; write {"task": "..."}')
    task = next((item[n] for n in QUESTION_NAMES if item.get(n) is not None), None)
    if not isinstance(task, str) or not task.strip():
        raise ValueError("field 'task' is missing, empty or not text; write what is to be done")
    url = item.get("target_url")
    if url is not None and not isinstance(url, str):
        raise ValueError("field 'target_url' is not text; write an address")
    name = item.get("id", item.get("task_id"))
    return WebTask(default_id if name is None else str(name), task, url, item)


def run_web_task(agent: WebAgent, task: WebTask, folder: Path | None) -> dict[str, Any]:
    """Run one task and return its row.

    Args:
        agent: the agent.
        task: the task.
        folder: where its journal (`events.jsonl`) and its files (`files/`) go; nowhere when None.
    """
    info = {"target_url": task.target_url} if task.target_url else {}
    journal = Journal(folder)
    try:
        session: AgentSession = agent.run(
            task.task,
            workdir=None if folder is None else folder / "files",
            journal=journal,
            info=info,
            on_event=_show,
        )
    finally:
        journal.close()
    facts = {"id": task.id, "task": task.task, "file": None, "answer": task.original.get("answer")}
    return {**facts, "_orig": task.original, "session": session.to_dict()}


def _show(event: Mapping[str, Any]) -> None:
    """A line on standard error for each step."""
    if event["kind"] == "step_ended":
        said = " ".join(str(event.get("text", "")).split())[:110]
        click.echo(f"  step {event['step']}, {event['tokens']} tokens: {said}", err=True)


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-i", "--input", "input_", type=_FILE, help="Task file: JSON lines.")
@click.option("-o", "--output", type=_FILE, help="File that rows are appended to.")
@click.option("-c", "--config", type=_FILE, help="Settings: YAML, JSON or a Python dict.")
@click.option(
    "-u",
    "--updates",
    multiple=True,
    metavar="DICT|NAME=VALUE",
    help="Settings over those of the file; may be repeated, the last wins.",
)
@click.option("-m", "--model", metavar="MODEL", help="manual, gpt:NAME, http(s)://HOST/v1, ...")
@click.option("-t", "--task", help="One task on the command line; its answer goes to stdout.")
@click.option("--target-url", metavar="URL", help="The page to begin with.  [about:blank]")
def cli(
    input_: Path | None,
    output: Path | None,
    config: Path | None,
    updates: tuple[str, ...],
    model: str | None,
    task: str | None,
    target_url: str | None,
) -> int:
    """Run one --task, or the tasks of a file, in a browser each."""
    if (input_ is None) == (task is None):
        raise click.UsageError("give --input or --task")
    if input_ is not None and output is None:
        raise click.UsageError("--input needs --output FILE, where the rows go")
    settings = load_settings(config, updates)
    if model is not None:
        settings = merge_settings(settings, {"model": model})
    agent = WebAgent(**settings)
    tasks: Iterable[WebTask | TaskFileError] = [
        WebTask(time.strftime("task-%Y%m%d-%H%M%S"), task or "")
    ]
    if input_ is not None:
        tasks = read_web_tasks(input_)
    try:
        return _run_all(agent, tasks, output, target_url, again=input_ is None)
    finally:
        stop_servers()


def _run_all(
    agent: WebAgent,
    tasks: Iterable[WebTask | TaskFileError],
    output: Path | None,
    target_url: str | None,
    again: bool,
) -> int:
    """Run the tasks one after the other, those with a row only `again`; the exit code."""
    done = set() if again or output is None else _ids_in(output)
    folder = None if output is None else output.with_suffix("")
    if output is not None:
        _append(output, b"")  # find out before the work, not after it
    code = 0
    for item in tasks:
        if isinstance(item, TaskFileError):
            click.echo(f"error: {item}", err=True)
            code = 3
            continue
        if item.id in done:
            continue
        click.echo(f"{item.id}: {item.task[:100]}", err=True)
        own = None if folder is None else _fresh_folder(folder, item.id)
        row = run_web_task(agent, replace(item, target_url=item.target_url or target_url), own)
        if output is not None:
            _append(output, json.dumps(row).encode() + b"\n")
        info = row["session"]["info"]
        click.echo(info["final_results"]["output"])
        if info["status"] != Status.DONE.value:
            click.echo(f"{item.id}: {info['status']}: {info.get('message', '')}", err=True)
            code = max(code, 1)
    return code


def _fresh_folder(folder: Path, task_id: str) -> Path:
    """A folder for a task that no try has used before."""
    name, number = safe_name(task_id, default="task"), 1
    found = folder / name
    while found.exists():
        number += 1
        found = folder / f"{name}-{number}"
    return found


def _ids_in(output: Path) -> set[str]:
    """Ids of the tasks whose rows are in the output."""
    try:
        lines = output.read_bytes().split(b"\n") if output.exists() else []
    except OSError as e:
        raise OutputError(f"output {output}: cannot be read: {e.strerror}") from None
    found = set()
    for line in lines:
        try:
            found.add(str(json.loads(line)["id"]))
        except (ValueError, KeyError, TypeError):
            continue  # a row that was cut off by a kill: its task is run again
    return found


def _append(output: Path, line: bytes) -> None:
    """Add a line (or nothing) to the output, and end a line there that a kill cut off."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("a+b") as file:
            end = file.seek(0, 2)
            if end:
                file.seek(end - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
    except OSError as e:
        raise OutputError(f"output {output}: cannot be written: {e.strerror}") from None


def main(args: list[str] | None = None) -> int:
    """Run the command; errors become one line on standard error. Returns the exit code."""
    try:
        return int(cli.main(args, standalone_mode=False) or 0)
    except click.ClickException as e:
        click.echo(f"error: {e.format_message()} (see --help)", err=True)
        return 2
    except CKError as e:
        click.echo(f"error: {e}", err=True)
        return 4 if isinstance(e, OutputError) else 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped", err=True)
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # release browsers on SIGTERM too
    sys.exit(main())
