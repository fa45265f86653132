"""`AgentLanguage`: the interface of all languages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ck_pro.events import Action
from ck_pro.language.forms import Form
from ck_pro.language.parsing import parse_literal
from ck_pro.language.prompt import Message, Prompt
from ck_pro.model.types import RawReply, Reply
from ck_pro.template import TemplatedString

OBSERVATION = "Observation of step"
"""Start of each observation in the history of a prompt."""


class AgentLanguage(ABC):
    """The form of an agent's prompts and replies."""

    name: str = ""
    """Name in settings; "" if settings cannot select it."""
    form: Literal["code", "calls", "text"] = "text"
    """What a person who writes a reply fills in: a thought and code, a thought and calls, or the
    whole reply; see `compose`."""
    stop: tuple[str, ...] = (f"\n{OBSERVATION}",)
    """Stop texts: the service ends the reply before them, so that the model does not invent
    observations."""

    def render(self, template: TemplatedString, values: Mapping[str, Any]) -> Prompt:
        """Render the prompt of one phase.

        Raises:
            TemplateError: a value that the template uses is missing.
        """
        prompt = template.format(**values)
        if isinstance(prompt, Prompt):
            return prompt
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return Prompt(messages)

    def call_kwargs(self, functions: Sequence[Any]) -> dict[str, Any]:
        """Return the request parameters of this language, such as `tools`.

        Args:
            functions: tools, sub-agents and forms, with `name`, `description` and `parameters`
                (JSON schema).
        """
        return {}

    def reply_schema(self, phase: str) -> dict[str, Any] | None:
        """Return the JSON schema of the replies of a phase; None for replies of another form.

        Services that support it (`response_format`) then return only JSON of that form.
        """
        return None

    def read_form(self, reply: str, form: Form) -> Any:
        """Return the data of a form, such as a plan or a final result.

        Raises:
            ParseError: the reply does not contain it.
        """
        return parse_literal(reply)

    def split_plan(self, reply: Reply) -> tuple[str, Reply]:
        """Return the plan that the reply of an action carries as text, and the rest of the reply.

        The plan is "" if there is none, or if plans are function calls in this language.
        """
        return "", reply

    def compose(
        self, parts: Mapping[str, str], functions: Sequence[Mapping[str, Any]] = ()
    ) -> RawReply:
        """Return the reply that the parts of a person make, in the form that `parse` reads.

        Args:
            parts: "thought", "code", "plan", as `form` has them; or "text", the whole reply.
            functions: the offered functions, with `name` and `parameters` (JSON schema).

        Raises:
            ParseError: a part is malformed.
        """
        return RawReply(parts.get("text", ""))

    @abstractmethod
    def parse(self, reply: str) -> list[Action]:
        """Return the actions of a reply, at least one.

        Raises:
            ParseError: the reply is malformed. The model reads the message, so it states what to
                change.
        """

    @abstractmethod
    def history(self, step: Mapping[str, Any], observation: str) -> list[Message]:
        """Return a finished step as chat messages.

        Args:
            step: the step's row.
            observation: its observation as text, shortened for prompts.
        """
