"""`ScriptedLLM`: a model that says what a test tells it to."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ck_pro.exceptions import ModelRefused
from ck_pro.model import LLM, Backend, CallContext, ChatRequest, Message, RawReply, Reply

Scripted = str | Exception
"""A reply (`Reply` for one with tool calls, reasoning, usage), or an error to raise."""
Script = (
    Sequence[Scripted]
    | Mapping[str, Sequence[Scripted]]
    | Callable[[list[Message], CallContext], Scripted]
)


@dataclass
class ScriptedCall:
    """A call that a `ScriptedLLM` answered."""

    messages: list[Message]
    context: CallContext
    params: dict[str, Any]
    reply: Scripted


class ScriptedLLM(LLM):
    """A model that says what a script says; for any number of threads.

    Args:
        replies: the script. A list: replies in order of the calls, whoever asks. A dict: lists by
            "agent/path:phase", by the last agent's "name:phase", or by phase; the step of the
            asking agent is the index, so that agents in many threads do not disturb each other. A
            function of messages and context.
        kwargs: settings of `LLM`.

    A copy is the same script going on: a scripted model can stand among the defaults of a class.
    """

    call_target = "manual"  # never asked; the back end below answers

    def __init__(self, replies: Script = (), **kwargs: Any) -> None:
        self._script = replies if callable(replies) else copy.copy(replies)
        self._next = 0
        self._lock = threading.Lock()
        self._calls: list[ScriptedCall] = []
        super().__init__(**kwargs)
        self.backend = _ScriptedBackend(self)

    @property
    def calls(self) -> list[ScriptedCall]:
        """The calls so far, in order."""
        with self._lock:
            return list(self._calls)

    def updated(self, updates: Mapping[str, Any]) -> ScriptedLLM:
        """The same script under changed settings."""
        changed = super().updated({n: v for n, v in updates.items() if n != "call_target"})
        assert isinstance(changed, ScriptedLLM)
        changed.backend = self.backend
        return changed

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptedLLM:
        return self

    def _answer(self, request: ChatRequest) -> Scripted:
        with self._lock:
            if callable(self._script):
                said = None
            elif isinstance(self._script, Mapping):
                said = self._by_phase(self._script, request.context)
            else:
                said = self._in_order(self._script, request.context)
        if said is None:
            assert callable(self._script)
            said = self._script(request.messages, request.context)
        with self._lock:
            call = ScriptedCall(request.messages, request.context, request.params, said)
            self._calls.append(call)
        return said

    def _in_order(self, script: Sequence[Scripted], context: CallContext) -> Scripted:
        if self._next >= len(script):
            raise ModelRefused(
                f"ScriptedLLM: its {len(script)} replies are used up, and {context.where()} asks"
            )
        self._next += 1
        return script[self._next - 1]

    def _by_phase(self, script: Mapping[str, Sequence[Scripted]], context: CallContext) -> Scripted:
        last = context.agent_path[-1] if context.agent_path else ""
        names = (f"{context.agent}:{context.phase}", f"{last}:{context.phase}", context.phase)
        replies = next((script[n] for n in names if n in script), None)
        if replies is None:
            raise ModelRefused(
                f"ScriptedLLM: nothing for '{names[0]}'; it has: {', '.join(script)}"
            )
        if context.step >= len(replies):
            raise ModelRefused(
                f"ScriptedLLM: {context.where()} asks, but there are {len(replies)} replies for it"
            )
        return replies[context.step]


class _ScriptedBackend(Backend):
    free = True

    def __init__(self, model: ScriptedLLM):
        self._model = model

    def describe(self) -> str:
        return "a script"

    def model_name(self, params: Mapping[str, Any]) -> str:
        return "scripted"

    def complete(self, request: ChatRequest) -> RawReply:
        said = self._model._answer(request)
        if isinstance(said, Exception):
            raise said
        if not isinstance(said, Reply):
            return RawReply(text=said, model="scripted")
        known = said.usage if said.usage.total_tokens else None
        return RawReply(
            text=str(said),
            reasoning=said.reasoning,
            tool_calls=said.tool_calls,
            items=said.items,
            usage=known,
            finish_reason=said.finish_reason,
            model=said.model or "scripted",
        )
