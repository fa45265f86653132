"""The person behind a run: who answers what only a person can, and the tool that asks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from ck_pro.exceptions import HumanNeeded, ToolError
from ck_pro.model.terminal import read_line, terminal_turn
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
            sys.stderr.write(f"\nThe agent asks: {shown}\nYour answer (empty: none)> ")
            sys.stderr.flush()
            line = read_line(sys.stdin).strip()
        return line or None


class Answer:
    """A person's answer to the question for which a run stopped. It is given once, and to that
    question only: an answer must not approve something else.

    Args:
        text: the answer.
        session: id of the session that asked.
        question: the question, word for word.
    """

    def __init__(self, text: str, session: str, question: str):
        self.text, self.session, self.question = text, session, question
        self._lock = threading.Lock()
        self._shown = self._over = False

    def take(self, session: str, question: str) -> str | None:
        """The answer, for the session and the question that it belongs to; else None."""
        if (session, question) != (self.session, self.question):
            return None
        with self._lock:
            over, self._over = self._over, True
        return None if over else self.text

    def shown(self, session: str) -> str:
        """The answer as a line for the model of a session; empty for any other session."""
        if session != self.session or self._over:
            return ""
        self._shown = True
        return f"The user was asked: {self.question} The answer: {self.text}"

    def close(self, session: str) -> str:
        """Give no answer from here on; returns `shown` if the session has not had the answer."""
        line = "" if self._shown else self.shown(session)
        self._over = self._over or session == self.session
        return line


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

    def bind(self, run: Any) -> Callable[..., Any]:
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
