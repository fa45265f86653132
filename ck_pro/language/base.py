"""`AgentLanguage`: the interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ck_pro.events import Action
from ck_pro.language.forms import Form
from ck_pro.language.parsing import parse_literal
from ck_pro.language.prompt import Message, Prompt
from ck_pro.template import TemplatedString

OBSERVATION = "Observation of step"
"""What begins an observation in the history that prompts show."""


class AgentLanguage(ABC):
    """The form in which an agent's model is asked and answers."""

    name: str = ""
    """What settings call it; empty for one that they cannot name."""
    stop: tuple[str, ...] = (f"\n{OBSERVATION}",)
    """Texts at which the service ends a reply, where it can: a model must not write what it is to
    be shown."""

    def render(self, template: TemplatedString, values: Mapping[str, Any]) -> Prompt:
        """The prompt of one phase.

        Raises:
            TemplateError: the template wants a value that is not there.
        """
        made = template.format(**values)
        if isinstance(made, Prompt):
            return made
        messages = [{"role": "user", "content": made}] if isinstance(made, str) else made
        return Prompt(messages)

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """Parameters that the model call needs in this language.

        Args:
            functions: tools, sub-agents and forms: `name`, `description`, `parameters` (JSON
                schema).
        """
        return {}

    def read_form(self, reply: str, form: Form) -> Any:
        """The data that a reply fills a form with: for plans and final results.

        Raises:
            ParseError: there is none.
        """
        return parse_literal(reply)

    @abstractmethod
    def parse(self, reply: str) -> list[Action]:
        """The actions of a reply, at least one.

        Raises:
            ParseError: the reply has not the agreed form; its text tells the model what to mend.
        """

    @abstractmethod
    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """A finished step as chat messages."""
