"""`--resume FOLDER` and `--fork FOLDER --at STEP`: resume one run, or a copy of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import click

from ck_main.output.output_files import folder_of
from ck_main.output.row import task_facts
from ck_main.output.row_schema import TaskFacts
from ck_main.runner.attempt import Assignment
from ck_main.runner.runner import TaskRunner
from ck_main.runner.task_folder import UNUSABLE, claimed
from ck_main.tasks.dataset import Task
from ck_pro.agent import MultiStepAgent
from ck_pro.config import iter_nested
from ck_pro.events import EventKind
from ck_pro.exceptions import ConfigError, JournalError
from ck_pro.journal import is_journal, journal_folders, read_events
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import read_interrupted_run
from ck_pro.run.user_replies import waiting_approval
from ck_pro.session import Status
from ck_pro.trajectory.fork import file_lines, fork_run, read_reply, task_folder_of

_ASKED = (Status.AMBIGUITY, Status.HUMAN_INTERVENTION)
FORKS = Path("runs/forks")
"""Default folder for the rows and folders of forks."""


class TypedTaskRunner(TaskRunner):
    """A `TaskRunner` for a typed task, which gets another id in the next command."""

    def retry_hint(self, action: str) -> str:
        """Return no hint; the command prints one with the folder."""
        return ""


class ResumingRunner(TaskRunner):
    """A `TaskRunner` that resumes one assignment in its existing folder."""

    def __init__(self, *args: Any, assignment: Assignment, forked: bool, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.assignment, self.forked = assignment, forked

    def retry_hint(self, action: str) -> str:
        """Return a hint to `--resume` a fork; repeating the command would fork again."""
        if self.forked:
            return f"; use --resume {self.assignment.folder} to {action}"
        return super().retry_hint(action)

    def _run_claimed(self, task: Task) -> None:
        with claimed(self.assignment.folder) as locked:
            if not locked:
                self.watcher.note(f"{self.assignment.folder}: in use by another run")
                return
            self.run_assignment(self.assignment)


def resuming(
    folder: Path,
    answer: str,
    agent: MultiStepAgent,
    *,
    approve: bool = False,
    forked: bool = False,
    conversation: bool = False,
) -> tuple[Task, Callable[..., ResumingRunner], str]:
    """Read the task of a run to resume.

    Args:
        folder: folder of one task under OUTPUT/.
        answer: human answer to the question that ended the run; "" for none.
        agent: the agent that resumes it.
        approve: whether the user approves the action that stopped the run.
        forked: whether this command created the folder.
        conversation: continue a conversation, also if its last turn is done.

    Returns:
        The task, a factory for the runner that resumes it, and a warning; "" for none.

    Raises:
        ConfigError: the folder has no run that can be resumed.
    """
    found, facts = _read_run(folder)
    if found.session.status is Status.DONE and not conversation:
        raise ConfigError(f"--resume {folder}: this run is done; there is nothing to resume")
    answer = _new_answer(found, answer)
    if approve and waiting_approval(found) is None:
        raise ConfigError(
            "--approve: no action of this run waits for approval: leave --approve out to resume it "
            f"({found.session.status})"
        )
    task = Task(
        id=facts["id"],
        question=facts["task"],
        folder=folder.name,
        answer=facts["answer"],
        file_name=facts["file"],
        original=facts["_orig"],
    )
    more = {k: v for k, v in facts.items() if k not in task_facts(task)}
    assignment = Assignment(
        task,
        folder,
        row_facts=more,
        resume_completed=True,
        answer=answer,
        approve=approve,
        conversation=conversation,
    )
    make = partial(ResumingRunner, assignment=assignment, forked=forked)
    return task, make, _planning_warning(found.session.info.get("config") or {}, agent)


def _planning_warning(config: Mapping[str, Any], agent: MultiStepAgent) -> str:
    """Return a warning if the agents plan in another way than the run so far; "" if not."""
    changed = []
    for path, one in [((), agent), *iter_nested(agent, MultiStepAgent)]:
        recorded: Any = config
        for name in path:
            recorded = recorded.get(name) if isinstance(recorded, Mapping) else None
        former = recorded.get("planning", one.planning) if isinstance(recorded, Mapping) else None
        if former not in (None, one.planning):
            changed.append((one.name, former, one.planning))
    if not changed:
        return ""
    name, former, current = changed[0]
    return (
        f"this run was made with planning={former} ({name}) and continues with planning={current}; "
        f"--planning {former} keeps it"
    )


def _read_run(folder: Path) -> tuple[InterruptedSession, TaskFacts]:
    """Read the main session of a run, and the facts about its task.

    Raises:
        ConfigError: the folder has no run that can be resumed.
    """
    if not is_journal(folder):
        tries = journal_folders(folder) if folder.is_dir() else []
        such = f", such as {tries[0]}" if tries else ""
        raise ConfigError(
            f"--resume {folder}: no run found; name the folder of one task, with its "
            f"events.jsonl{such}"
        )
    try:
        events = list(read_events(folder))
        found, _ = read_interrupted_run(events)
    except UNUSABLE as e:
        message = e if isinstance(e, JournalError) else f"not a ck-pro journal: {e!r}"
        raise ConfigError(f"--resume {folder}: {message}") from None
    facts = next((e["data"] for e in events if e["kind"] == EventKind.TASK), None)
    if found is None or facts is None or "start_time" not in found.session.info:
        raise ConfigError(f"--resume {folder}: its journal does not name the task")
    return found, cast(TaskFacts, facts)


def _new_answer(found: InterruptedSession, answer: str) -> str:
    """Return the answer to record; "" if the journal has it already.

    Raises:
        ConfigError: the run did not ask a question, or has another answer.
    """
    given = found.last_answer["answer"] if found.last_answer else None
    if answer and given is not None:
        if answer != given:
            raise ConfigError(
                f"--answer: this run already has the answer {given!r}; leave --answer out to "
                "resume it"
            )
        return ""
    asked = found.session.status in _ASKED  # older journals have only the status
    if found.asked is not None:
        asked = bool(found.asked["question"])
    if answer and not asked:
        raise ConfigError(f"--answer: this run did not ask a question ({found.session.status})")
    return answer


def start_fork(
    origin: Path, at: int, *, output: Path | None, reply: Path | None
) -> tuple[Path, Path]:
    """Fork a run at a step: write a new run folder that can be resumed.

    Args:
        origin: folder of the original run.
        at: step of its main agent to fork at.
        output: file of rows; None for a new file in `FORKS`.
        reply: file with the model reply to use in that step.

    Returns:
        The file of rows, and the folder of the new run.

    Raises:
        InputError: the run or the reply cannot be read, or the run has no such step.
        OutputError: the new run exists already or cannot be written.
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
