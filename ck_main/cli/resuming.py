"""`--resume FOLDER` and `--fork FOLDER --at STEP`: going on with one run, or with a copy of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from ck_main.output.output_files import folder_of
from ck_main.output.row import TASK_EVENT, task_facts
from ck_main.runner.attempt import Assignment
from ck_main.runner.previous_attempt import UNUSABLE
from ck_main.runner.runner import TaskRunner
from ck_main.runner.task_folder import claimed
from ck_main.tasks.dataset import Task
from ck_pro.exceptions import ConfigError, JournalError
from ck_pro.journal import is_journal, journal_folders, read_events
from ck_pro.run.resume import cut_off
from ck_pro.session import Status
from ck_pro.trajectory.fork import file_lines, fork_run, read_reply, task_folder_of

_ASKED = (Status.AMBIGUITY, Status.HUMAN_INTERVENTION)
FORKS = Path("runs/forks")
"""Where rows and folders of forks go when no output is named."""


class TypedTaskRunner(TaskRunner):
    """A `TaskRunner` for a task that was typed: the next command gives it another id."""

    def again(self, how: str) -> str:
        """See `TaskRunner.again`: the command says it, which knows the folder."""
        return ""


class ResumingRunner(TaskRunner):
    """A `TaskRunner` whose one task is an assignment that was begun; it stays in its folder."""

    def __init__(self, *args: Any, assignment: Assignment, forked: bool, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.assignment, self.forked = assignment, forked

    def again(self, how: str) -> str:
        """See `TaskRunner.again`: the command that forks would make another fork."""
        return f"; --resume {self.assignment.folder} {how}" if self.forked else super().again(how)

    def _run_claimed(self, task: Task) -> None:
        with claimed(self.assignment.folder) as ours:
            if not ours:
                self.watcher.note(f"{self.assignment.folder}: another run is at it")
                return
            self.carry_out(self.assignment)


def resuming(
    folder: Path, answer: str, *, forked: bool = False
) -> tuple[Task, Callable[..., ResumingRunner]]:
    """The task of a run that was begun, and what makes the runner that goes on with it.

    Args:
        folder: of one task's run, as they are under OUTPUT/.
        answer: of a person, to the question for which it ended; "" for none.
        forked: it was written by this very command.

    Raises:
        ConfigError: there is nothing to go on with.
    """
    if not is_journal(folder):
        tries = journal_folders(folder) if folder.is_dir() else []
        such = f", such as {tries[0]}" if tries else ""
        raise ConfigError(
            f"--resume {folder}: no run is there; name the folder of one task, which has its "
            f"events.jsonl{such}"
        )
    try:
        events = list(read_events(folder))
        found, _ = cut_off(events)
    except UNUSABLE as e:
        said = e if isinstance(e, JournalError) else f"not a journal of ours: {e!r}"
        raise ConfigError(f"--resume {folder}: {said}") from None
    facts = next((e["data"] for e in events if e["kind"] == TASK_EVENT), None)
    if found is None or facts is None or "start_time" not in found.session.info:
        raise ConfigError(f"--resume {folder}: its journal does not say what its task was")
    if found.session.status is Status.DONE:
        raise ConfigError(f"--resume {folder}: this run is done, there is nothing to go on with")
    asked = found.session.status in _ASKED  # all that older journals say
    if found.asked is not None:
        asked = bool(found.asked["question"])
    given = found.given.get("answer")
    if answer and given is not None:
        if answer != given:
            raise ConfigError(
                f"--answer: this run already has the answer {given!r}; leave --answer out to "
                "resume it"
            )
        answer = ""  # the journal has it
    elif answer and not asked:
        raise ConfigError(f"--answer: this run has asked nothing ({found.session.status})")
    task = Task(
        id=facts["id"],
        question=facts["task"],
        folder=folder.name,
        answer=facts["answer"],
        file_name=facts["file"],
        original=facts["_orig"],
    )
    more = {k: v for k, v in facts.items() if k not in task_facts(task)}
    assignment = Assignment(task, folder, row_facts=more, begun=True, answer=answer)
    return task, partial(ResumingRunner, assignment=assignment, forked=forked)


def begin_fork(
    origin: Path, at: int, *, output: Path | None, reply: Path | None
) -> tuple[Path, Path]:
    """Write a run that goes on, when resumed, with a step of another one.

    Args:
        origin: folder of the other.
        at: the step of its main agent.
        output: the file of rows; None for one that is not there yet, in `FORKS`.
        reply: a file with what to take for the model's reply in that step.

    Returns:
        The file of rows, and the folder of the new run beside it.

    Raises:
        InputError: the old run has no such step, or cannot be read; or the reply cannot.
        OutputError: the new run cannot be written, or is there already.
    """
    text = None if reply is None else read_reply(reply)
    name = task_folder_of(origin)
    output = output or _free_output(FORKS, f"{name}-at-{at}")
    folder = folder_of(output) / name
    for line in file_lines(fork_run(origin, at, folder, reply=text), at):
        click.echo(line, err=True)
    return output, folder


def _free_output(parent: Path, name: str) -> Path:
    number = 1
    while (output := parent / f"{name}-{number}.jsonl").exists() or folder_of(output).exists():
        number += 1
    return output
