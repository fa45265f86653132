"""`--chat`: a conversation with an agent; it becomes one row."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ck_main.cli.job import Job, run_tasks
from ck_main.cli.resuming import TypedTaskRunner, resuming
from ck_main.cli.typed import answer_text, free_id, print_hint, typed_lines
from ck_main.output.row_file import RowFile
from ck_main.runner.runner import TaskRunner
from ck_main.tasks.dataset import Task, safe_name
from ck_pro.agent import MultiStepAgent
from ck_pro.command_line import ExitCode
from ck_pro.exceptions import Cancelled
from ck_pro.journal import is_journal
from ck_pro.run.interrupted import InterruptedSession
from ck_pro.run.resume import PriorUsage
from ck_pro.session import AgentSession, Status
from ck_pro.terminal import asking_for


class Conversation:
    """An agent for the runner: its run is a conversation until the user's messages end.

    Args:
        agent: the agent.
        messages: the messages after the first one.
        answered: called with the session after each turn.
    """

    def __init__(
        self,
        agent: MultiStepAgent,
        messages: Iterator[str],
        answered: Callable[[AgentSession], None],
    ):
        self.agent, self.name = agent, agent.name
        self._messages, self._answered = messages, answered

    def run(
        self, task: str, *, session: AgentSession, info: Mapping[str, Any], **common: Any
    ) -> AgentSession:
        """Answer the first message and all further ones; return the session."""
        session = self.agent.turn(session, task, info=info, **common)
        return self._converse(session, common)

    def resume(
        self, *, found: tuple[InterruptedSession, PriorUsage], **common: Any
    ) -> AgentSession:
        """Complete the interrupted turn, if there is one, then answer further messages."""
        session = found[0].session
        common = {k: v for k, v in common.items() if k not in ("answer", "approve")}
        text: str | None = ""
        if session.status is not Status.IN_PROGRESS:
            self._answered(session)
            text = self._next(common["cancel"])
        if text is None:
            return session
        session = self.agent.turn(None, text, found=found, **common)
        return self._converse(session, common)

    def _next(self, cancel: threading.Event) -> str | None:
        """Return the next message; None at their end, or after Ctrl-C."""
        with asking_for(cancel, self.name):
            try:
                return next(self._messages, None)
            except Cancelled:
                return None

    def _converse(self, session: AgentSession, common: dict[str, Any]) -> AgentSession:
        try:
            self._answered(session)
            while session.status is not Status.IN_PROGRESS:
                text = self._next(common["cancel"])
                if text is None:
                    break
                session = self.agent.turn(session, text, **common)
                self._answered(session)
        finally:
            self.agent.end_session(session)
        return session


def chat(
    agent: MultiStepAgent,
    job: Job,
    screen: Console,
    *,
    first: str | None = None,
    folder: Path | None = None,
) -> ExitCode:
    """Converse with the user of standard input; answers go to standard output.

    Args:
        agent: the agent.
        job: output and options.
        screen: console for steps and prompts.
        first: the first message; None reads it, too.
        folder: folder of a conversation to continue; `job.output` is for its row.

    Returns:
        The exit code of the last turn, or of the error that ended the command.
    """
    options = replace(job.options, retries=0)  # a retry would start the conversation again
    job = replace(job, options=options, steps=True, plain=True)
    messages = typed_lines(screen, "you> ", "Type one message per line.")
    with RowFile(job.output) as rows:
        if folder is None:
            first = first or next(messages, None)
            if first is None:
                return ExitCode.DONE
            name = free_id(rows, "chat")
            task = Task(name, first, safe_name(name), original={"question": first})
            runner: Callable[..., TaskRunner] = TypedTaskRunner
            folder = rows.folder / task.folder
        else:
            task, runner, _ = resuming(folder, "", agent, conversation=True)

        def make(agent: MultiStepAgent, *args: Any, **kwargs: Any) -> TaskRunner:
            return runner(Conversation(agent, messages, _print_turn(screen)), *args, **kwargs)

        ended, outcomes = run_tasks(agent, [task], job, rows, screen, make=make)
    outcome = outcomes.get(task.id)
    if (outcome is None or not outcome.is_done) and is_journal(folder):
        print_hint(screen, f"continue it with --chat --resume {folder}")
    unfinished = outcome is not None and not outcome.is_done
    return ExitCode.PROBLEM if ended is ExitCode.DONE and unfinished else ended


def _print_turn(screen: Console) -> Callable[[AgentSession], None]:
    """Return a function that prints the answer of a turn, or why there is none."""

    def show(session: AgentSession) -> None:
        answer = session.final_results["output"] if session.final_results else ""
        if answer:
            click.echo(answer_text(answer, to_terminal=sys.stdout.isatty()))
            sys.stdout.flush()
        if session.status is not Status.DONE:
            print_hint(screen, f"{session.status}: {session.message}")

    return show
