"""`ScriptedLLM`: a model that returns the replies of a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ck_pro.exceptions import ModelRefused
from ck_pro.model import LLM, Backend, CallContext, ChatRequest, Message, RawReply, Reply
from ck_pro.model.backends.function import raw_reply

Scripted = str | Exception
"""A reply (a `Reply` may have tool calls, reasoning, usage), or an error to raise."""
Script = (
    Sequence[Scripted]
    | Mapping[str, Sequence[Scripted]]
    | Callable[[list[Message], CallContext], Scripted]
)


@dataclass
class ScriptedCall:
    """A call that a `ScriptedLLM` received."""

    messages: list[Message]
    context: CallContext
    params: dict[str, Any]
    reply: Scripted


class ScriptedLLM(LLM):
    """A model that returns the replies of a script; thread-safe.

    Args:
        replies: the script. A list: replies in order of the calls, for all callers. A dict: lists
            by "agent/path:phase", by the last agent's "name:phase", or by phase; the step of the
            calling agent is the index, so agents in several threads do not interfere. A function
            of messages and context.
        kwargs: settings of `LLM`.

    A copy shares its script and position, so a scripted model can be a default of a class.
    """

    def __init__(self, replies: Script = (), **kwargs: Any) -> None:
        super().__init__(**{"backend": ScriptedBackend(replies), **kwargs})

    @property
    def calls(self) -> list[ScriptedCall]:
        """All calls so far, in order."""
        assert isinstance(self.backend, ScriptedBackend)
        return self.backend.recorded()


class ScriptedBackend(Backend):
    """The script and its position, shared by a `ScriptedLLM` and its copies."""

    free = True

    def __init__(self, script: Script):
        self._script = script
        self._next = 0
        self._lock = threading.Lock()
        self._calls: list[ScriptedCall] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptedBackend:
        return self

    def describe(self) -> str:
        return "a script"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "scripted"

    def recorded(self) -> list[ScriptedCall]:
        """All calls so far, in order."""
        with self._lock:
            return list(self._calls)

    def complete(self, request: ChatRequest) -> RawReply:
        reply = self._next_reply(request.messages, request.context)
        with self._lock:
            self._calls.append(
                ScriptedCall(request.messages, request.context, request.params, reply)
            )
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, Reply):
            return RawReply(text=reply, model="scripted")
        return raw_reply(reply, "scripted")

    def _next_reply(self, messages: list[Message], context: CallContext) -> Scripted:
        if callable(self._script):  # runs in the callers' threads, without the lock
            return self._script(messages, context)
        if isinstance(self._script, Mapping):
            return _by_phase(self._script, context)
        with self._lock:
            at = self._next
            self._next += 1
        if at >= len(self._script):
            used = len(self._script)
            raise ModelRefused(
                f"ScriptedLLM: all {used} replies are used up; call of {context.where()}"
            )
        return self._script[at]


def _by_phase(script: Mapping[str, Sequence[Scripted]], context: CallContext) -> Scripted:
    last = context.agent_path[-1] if context.agent_path else ""
    names = (f"{context.agent}:{context.phase}", f"{last}:{context.phase}", context.phase)
    replies = next((script[n] for n in names if n in script), None)
    if replies is None:
        raise ModelRefused(f"ScriptedLLM: no replies for '{names[0]}'; it has {', '.join(script)}")
    if context.step >= len(replies):
        raise ModelRefused(f"ScriptedLLM: only {len(replies)} replies; call of {context.where()}")
    return replies[context.step]
