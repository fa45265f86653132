"""A Python function as a back end: `LLM.of(function)`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ck_pro.exceptions import ModelError, ModelRefused
from ck_pro.model.backends.backend import Backend, ChatRequest
from ck_pro.model.backends.chat_completions import parse_choice, parse_message
from ck_pro.model.retry import Transient
from ck_pro.model.types import Message, RawReply, Reply


class FunctionPrompt(list[Message]):
    """The prompt that a function gets: the chat messages, as a list.

    Attributes:
        messages: the same messages.
        tools: schemas of the functions that the model may call, in the form of chat completions.
        params: all request parameters: `tools`, `temperature`, ...
    """

    def __init__(self, request: ChatRequest):
        super().__init__(request.messages)
        self.messages = request.messages
        self.params = request.params
        self.tools: list[dict[str, Any]] = request.params.get("tools") or []


class FunctionBackend(Backend):
    """A function from prompt to reply.

    Args:
        function: takes a `FunctionPrompt`. Returns text, a `Reply`, a message or a response of chat
            completions (a dict, or an object with `model_dump()`), or another dict as JSON text.
    """

    remote = True  # so that a cancel does not wait for it

    def __init__(self, function: Callable[[FunctionPrompt], Any]):
        self._function = function
        self._name = str(getattr(function, "__name__", type(function).__name__))

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionBackend:
        return self

    def describe(self) -> str:
        return f"the function {self._name}"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return self._name

    def complete(self, request: ChatRequest) -> RawReply:
        try:
            value = self._function(FunctionPrompt(request))
        except (ModelError, Transient):
            raise
        except Exception as e:
            raise ModelRefused(f"{self.describe()} raised {type(e).__name__}: {e}") from e
        return self._raw_reply(value)

    def _raw_reply(self, value: Any) -> RawReply:
        if isinstance(value, Reply):
            return raw_reply(value)
        if callable(getattr(value, "model_dump", None)):
            value = value.model_dump()
        if isinstance(value, Mapping):
            data = dict(value)
            if isinstance(data.get("choices"), list) and data["choices"]:
                return parse_choice(self.describe(), data["choices"][0], data)
            if "content" in data or "tool_calls" in data:
                return parse_message(data)
            value = json.dumps(data)
        if not isinstance(value, str):
            raise ModelRefused(
                f"{self.describe()} returned {type(value).__name__}; return the reply as text, or "
                "a message of chat completions"
            )
        return RawReply(text=value)


def raw_reply(reply: Reply, model: str = "") -> RawReply:
    """Return a `Reply` that a function or script made, as the reply of a back end."""
    return RawReply(
        text=str(reply),
        reasoning=reply.reasoning,
        tool_calls=reply.tool_calls,
        items=reply.items,
        usage=reply.usage if reply.usage.total_tokens else None,
        finish_reason=reply.finish_reason,
        model=reply.model or model,
    )
