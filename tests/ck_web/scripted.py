"""A model that answers from a list, for the web agent's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ck_pro import LLM
from ck_pro.language import text_of
from ck_pro.model.backend import Backend, ChatRequest
from ck_pro.model.types import RawReply

Reply = str | Callable[[str], str]


class Script(Backend):
    """Replies by phase, in order; a function gets the task's message and makes the reply.

    Attributes:
        prompts: (phase, messages) of every call.
    """

    free = True

    def __init__(self, **replies: list[Reply]) -> None:
        self.replies = replies
        self.prompts: list[tuple[str, list[dict[str, Any]]]] = []

    def complete(self, request: ChatRequest) -> RawReply:
        phase, step = request.context.phase, request.context.step
        self.prompts.append((phase, request.messages))
        replies = self.replies[phase]
        reply = replies[min(step, len(replies) - 1)]
        text = reply if isinstance(reply, str) else reply(text_of(request.messages[1]["content"]))
        return RawReply(text=text)

    def describe(self) -> str:
        return "a script"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "script"

    def llm(self) -> LLM:
        """The model to give to an agent."""
        return LLM(backend=self)

    def text(self, index: int) -> str:
        """The text of one prompt, all messages."""
        return "\n".join(text_of(m["content"]) for m in self.prompts[index][1])


def code(text: str) -> str:
    """A reply with this code."""
    return f"Thought: go on\n```python\n{text}\n```"
