"""Questions to the user of a run: the tool, and the ways to get an answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ck_pro.exceptions import HumanNeeded, ToolError
from ck_pro.run_context import RunContext
from ck_pro.terminal import asking_agents, read_line, terminal_turn
from ck_pro.tool import Tool


class Person(Protocol):
    """Answers the questions of a run; several threads may call it."""

    def answer(self, question: str) -> str | None:
        """Return the answer; None ends the run that asks."""
        ...


class TerminalPerson:
    """The user at the terminal. Questions go to standard error; one input line is the answer.

    Only one question at a time is shown, also with `call_target: manual`. An empty line means that
    there is no answer.
    """

    def answer(self, question: str) -> str | None:
        """Ask, and return the answer; None if standard input is not a terminal."""
        if not sys.stdin.isatty():
            return None
        shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in question)
        with terminal_turn():
            sys.stderr.write(f"\n{asking_agents()} asks: {shown}\nYour answer (empty: none)> ")
            sys.stderr.flush()
            line = read_line(sys.stdin).strip()
        return line or None


@dataclass
class Answer:
    """A user's answer to a question for which a run stopped.

    Attributes:
        session: id of the session that asked.
        question: the exact question; "" if the run did not ask.
        answer: the answer.
        shown: whether the model of that session has received it.
    """

    session: str
    question: str
    answer: str
    shown: bool = False

    def line(self) -> str:
        """Return the answer as text for the model, if no call returns it."""
        if not self.question:
            return f"The user says: {self.answer}"
        return f"Question to the user: {self.question} Answer: {self.answer}"


class Answers:
    """The unused answers of a resumed run and its sub-agents.

    Each answer is used once and only for its own question, so that it approves nothing else.

    Args:
        answers: the answers, in order.
    """

    def __init__(self, answers: Sequence[Answer] = ()):
        self._answers = list(answers)
        self._lock = threading.Lock()

    def take(self, session: str, question: str) -> Answer | None:
        """Remove and return the answer to a question of a session."""
        with self._lock:
            for one in self._answers:
                if (one.session, one.question) == (session, question):
                    self._answers.remove(one)
                    return one
        return None

    def of(self, session: str) -> list[Answer]:
        """Return the answers for a session, and keep them."""
        with self._lock:
            return [one for one in self._answers if one.session == session]

    def drop(self, session: str) -> list[Answer]:
        """Remove and return all answers for a session."""
        dropped = self.of(session)
        with self._lock:
            self._answers = [one for one in self._answers if one not in dropped]
        return dropped


class AskHumanTool(Tool):
    """A question to the user of the run; without an answer the run stops."""

    name = "ask_human"
    on_resume = "again"

    def execute(self, question: str) -> str:
        """Ask the user for a login, captcha or permission; without an answer the run stops.

        Args:
            question: one question with all that is needed to answer it.
        """
        raise ToolError(f"{self.name}: questions are possible only in a run")

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for one run, which raises `HumanNeeded` without an answer."""

        def ask_human(question: str) -> str:
            answer = run.ask(str(question))
            if answer is None:
                raise HumanNeeded(f"a person must help: {question}", str(question))
            return str(answer)

        ask_human.__doc__ = self.execute.__doc__
        return ask_human
