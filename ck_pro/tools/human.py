"""The person behind a run: who answers what only a person can, and the tool that asks."""

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
    """Answers questions of a run. Must be safe to call from several threads."""

    def answer(self, question: str) -> str | None:
        """The answer; None if there is none, which ends the run that asks."""
        ...


class TerminalPerson:
    """Whoever sits at the terminal: the question goes to standard error, one line is the answer.

    One question at a time, also beside `call_target: manual`. An empty line is no answer.
    """

    def answer(self, question: str) -> str | None:
        """See `Person.answer`; None at once when standard input is no terminal."""
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
    """A person's answer to a question for which a run stopped.

    Attributes:
        session: id of the session that asked.
        question: the question, word for word; "" for a run that had not asked.
        answer: the answer.
        shown: the model of that session has read it.
    """

    session: str
    question: str
    answer: str
    shown: bool = False

    def line(self) -> str:
        """The answer as the model of that session reads it, where no call returns it."""
        if not self.question:
            return f"The user says: {self.answer}"
        return f"Question to the user: {self.question} Answer: {self.answer}"


class Answers:
    """The answers that a resumed tree of runs has and has not used yet.

    Each answer is given once, and to its own question only: it must not approve something else.

    Args:
        answers: the answers, in order.
    """

    def __init__(self, answers: Sequence[Answer] = ()):
        self._answers = list(answers)
        self._lock = threading.Lock()

    def take(self, session: str, question: str) -> Answer | None:
        """Take the answer to a question of a session."""
        with self._lock:
            for one in self._answers:
                if (one.session, one.question) == (session, question):
                    self._answers.remove(one)
                    return one
        return None

    def of(self, session: str) -> list[Answer]:
        """The answers for a session; they can still be taken."""
        with self._lock:
            return [one for one in self._answers if one.session == session]

    def drop(self, session: str) -> list[Answer]:
        """Take all answers for a session, whatever the questions."""
        dropped = self.of(session)
        with self._lock:
            self._answers = [one for one in self._answers if one not in dropped]
        return dropped


class AskHumanTool(Tool):
    """A question to the person behind the run; without an answer the run ends for them."""

    name = "ask_human"
    on_resume = "again"

    def execute(self, question: str) -> str:
        """Ask the user for a login, captcha or permission; without an answer the run stops.

        Args:
            question: one question with all that is needed to answer it.
        """
        raise ToolError(f"{self.name}: there is nobody to ask outside of a run")

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Ask the person of a run.

        Raises:
            HumanNeeded: from the function, when nobody answers.
        """

        def ask_human(question: str) -> str:
            answer = run.ask(str(question))
            if answer is None:
                raise HumanNeeded(f"a person must help: {question}", str(question))
            return str(answer)

        ask_human.__doc__ = self.execute.__doc__
        return ask_human
